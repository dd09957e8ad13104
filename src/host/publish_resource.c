/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource of a process, by OpenTelemetry's conventions; or of a container, which is what all
 * of its processes say, but for process.*: that, and what they do not agree on, stays with the
 * profiles of each.
 *
 * Of two attributes with one name the later wins; they come in the order of how much is to be
 * believed: what the operator says of all processes, what is known of the process
 * (host/identity_resource.c), what the agent knows of the host, unless the operator says it
 * otherwise.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/when.h"
#include "host/publish_int.h"

enum { KNOWN_MAX = 16 }; /* attributes that the agent knows */

/* How exactly /proc knows when a process began; what is beyond is noise, and takes bytes. */
#define TICK_NS (10 * KILN_NS_PER_MS)

struct list {
    struct run *run;
    uint32_t *attrs; /* room for all */
    uint32_t n;
};

static void put(struct list *list, const char *key, struct kiln_str value)
{
    if (value.len)
        list->attrs[list->n++] = publish_attr(list->run, kiln_str_of(key), value);
}

static void put_int(struct list *list, const char *key, int64_t value)
{
    uint32_t name = kiln_builder_string(list->run->b, kiln_str_of(key));

    if (value)
        list->attrs[list->n++] = kiln_builder_attr(list->run->b, name, kiln_value_int(value), 0);
}

static void put_configured(struct list *list, bool host_alone)
{
    const struct kiln_publish_opts *opts = &list->run->publisher->opts;

    for (uint32_t i = 0; i < opts->n_resource; i++) {
        struct kiln_str name = opts->resource[2 * i], value = opts->resource[2 * i + 1];

        if (name.len && (!host_alone || kiln_str_starts(name, KILN_STR("host."))))
            list->attrs[list->n++] = publish_attr(list->run, name, value);
    }
}

static void put_host(struct list *list)
{
    const struct kiln_publish_opts *opts = &list->run->publisher->opts;

    put(list, "host.name", kiln_str_of(opts->host_name));
    put(list, "host.id", kiln_str_of(opts->host_id));
    put(list, "os.type", KILN_STR("linux"));
    put_configured(list, true);
}

static void put_process(struct list *list, const struct kiln_identity *identity)
{
    struct kiln_buf time;

    put_int(list, "process.pid", identity->pid);
    put_int(list, "process.parent_pid", identity->parent_pid);
    kiln_buf_init(&time, 64);
    if (identity->start_unix_ns)
        kiln_when_format(identity->start_unix_ns / TICK_NS * TICK_NS, &time);
    put(list, "process.creation.time", kiln_buf_str(&time));
    kiln_buf_done(&time);
}

uint32_t publish_resource(struct run *run, const struct kiln_identity *identity)
{
    size_t room = (size_t)2 * run->publisher->opts.n_resource + identity->n_attrs + KNOWN_MAX;
    struct list list = {.run = run, .attrs = kiln_malloc(room * sizeof(uint32_t))};
    uint32_t set = 0;

    if (!list.attrs) {
        kiln_builder_fail(run->b, -ENOMEM);
        return 0;
    }
    put_configured(&list, false);
    for (uint32_t i = 0; i < identity->n_attrs; i++)
        put(&list, identity->attrs[i].key, kiln_str_of(identity->attrs[i].value));
    put_host(&list);
    if (!identity->is_kernel)
        put_process(&list, identity);
    put(&list, "service.name", kiln_identity_service(identity));
    set = kiln_builder_set(run->b, list.attrs, list.n, NULL);
    kiln_free(list.attrs);
    return set;
}

/* ---- containers ---- */

static struct kiln_str key_of(const struct kiln_dict *dict, uint32_t attr)
{
    return dict->strings[dict->attrs[attr].key];
}

static bool is_among(uint32_t attr, const uint32_t *attrs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (attrs[i] == attr)
            return true;
    return false;
}

static void begin_share(struct run *run, struct kiln_range set, struct publish_shared *shared)
{
    const struct kiln_dict *dict = &kiln_builder_peek(run->b)->dict;

    shared->begun = true;
    shared->attrs = kiln_builder_scratch(run->b, ((size_t)set.n + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; shared->attrs && i < set.n; i++) {
        uint32_t attr = dict->members[set.first + i];

        if (!kiln_str_starts(key_of(dict, attr), KILN_STR("process.")))
            shared->attrs[shared->n++] = attr;
    }
}

void publish_share(struct run *run, uint32_t set, struct publish_shared *shared)
{
    const struct kiln_dict *dict = &kiln_builder_peek(run->b)->dict;
    struct kiln_range range = dict->sets[set];
    uint32_t n = 0;

    if (!shared->begun)
        begin_share(run, range, shared);
    for (uint32_t i = 0; i < shared->n; i++)
        if (is_among(shared->attrs[i], dict->members + range.first, range.n))
            shared->attrs[n++] = shared->attrs[i];
    shared->n = n;
}

uint32_t publish_own(struct run *run, uint32_t set, const struct publish_shared *shared)
{
    const struct kiln_dict *dict = &kiln_builder_peek(run->b)->dict;
    struct kiln_range range = dict->sets[set];
    uint32_t *own = kiln_builder_scratch(run->b, ((size_t)range.n + 1) * sizeof(*own)), n = 0;

    for (uint32_t i = 0; own && i < range.n; i++)
        if (!is_among(dict->members[range.first + i], shared->attrs, shared->n))
            own[n++] = dict->members[range.first + i];
    return own ? kiln_builder_set(run->b, own, n, NULL) : 0;
}

/* A container of several services is called by its own name. */
uint32_t publish_shared(struct run *run, const struct kiln_identity *any,
                        const struct publish_shared *shared)
{
    const struct kiln_dict *dict = &kiln_builder_peek(run->b)->dict;
    struct kiln_str name = kiln_identity_container_name(any);
    uint32_t n = shared->n;

    if (!shared->attrs)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (kiln_str_eq(key_of(dict, shared->attrs[i]), KILN_STR("service.name")))
            return kiln_builder_set(run->b, shared->attrs, n, NULL);
    if (!name.len)
        name = kiln_identity_container_id(any);
    shared->attrs[n++] = publish_attr(run, KILN_STR("service.name"), name);
    return kiln_builder_set(run->b, shared->attrs, n, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resource of a process, by OpenTelemetry's conventions.
 *
 * Of two attributes with one name the later wins; they come in the order of how much is to be
 * believed: what the operator says of all processes, what a process says of itself
 * (OTEL_RESOURCE_ATTRIBUTES), what the agent knows of the host (unless the operator says it
 * otherwise) and of the process.  The name of the service is the process' own to choose:
 * OTEL_SERVICE_NAME, else the service.name of OTEL_RESOURCE_ATTRIBUTES, else its executable.
 *
 *   OTEL_RESOURCE_ATTRIBUTES=key=value,key=value    values percent-encoded; a mistake voids it all
 */
#include <errno.h>

#include "base/when.h"
#include "host/publish_int.h"
#include "net/params.h"

enum {
    OWN_MAX = 64,         /* pairs that a process may say of itself */
    OWN_VALUE_MAX = 1024, /* bytes of each */
    KNOWN_MAX = 16,       /* attributes that the agent knows */
};

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

/* ---- what a process says of itself ---- */

static struct kiln_str env_of(const struct kiln_identity *identity, const char *name)
{
    size_t len = strlen(name);

    for (uint32_t i = 0; i < identity->n_env; i++)
        if (strncmp(identity->env[i], name, len) == 0 && identity->env[i][len] == '=')
            return kiln_str_of(identity->env[i] + len + 1);
    return KILN_STR_NONE;
}

/* One pair, unless its value is empty.  Negative: a mistake. */
static int put_pair(struct list *list, struct kiln_str key, struct kiln_str value)
{
    struct run *run = list->run;
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, (size_t)3 * OWN_VALUE_MAX);
    r = kiln_percent_decode(value, false, &text);
    if (r == 0 && text.len > OWN_VALUE_MAX)
        r = KILN_E_LIMIT;
    if (r == 0 && text.len)
        list->attrs[list->n++] =
            kiln_builder_attr(run->b, publish_text(run, key),
                              kiln_value_string(publish_text(run, kiln_buf_str(&text))), 0);
    kiln_buf_done(&text);
    return r;
}

/* Adds the pairs; on a mistake, none of them.  Returns whether service.name was among them. */
static bool put_own(struct list *list, struct kiln_str pairs)
{
    uint32_t first = list->n;
    bool named = false;

    while (pairs.len) {
        struct kiln_str value = kiln_str_cut(&pairs, ',');
        struct kiln_str key = kiln_str_trim(kiln_str_cut(&value, '='));
        uint32_t before = list->n;

        if (!value.ptr || !key.len || list->n - first == OWN_MAX ||
            put_pair(list, key, kiln_str_trim(value)) < 0) {
            list->n = first;
            return false;
        }
        named |= list->n > before && kiln_str_eq(key, KILN_STR("service.name"));
    }
    return named;
}

/* ---- all of it ---- */

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
    put(list, "process.executable.name", kiln_str_of(identity->name));
    put(list, "process.executable.path", kiln_str_of(identity->path));
    put(list, "process.command", kiln_str_of(identity->command));
    put(list, "process.owner", kiln_str_of(identity->owner));
    kiln_buf_init(&time, 64);
    if (identity->start_unix_ns)
        kiln_when_format(identity->start_unix_ns, &time);
    put(list, "process.creation.time", kiln_buf_str(&time));
    kiln_buf_done(&time);
}

uint32_t publish_resource(struct run *run, const struct kiln_identity *identity)
{
    size_t room = (size_t)2 * run->publisher->opts.n_resource + OWN_MAX + KNOWN_MAX;
    struct list list = {.run = run, .attrs = kiln_malloc(room * sizeof(uint32_t))};
    struct kiln_str service = env_of(identity, "OTEL_SERVICE_NAME");
    uint32_t set = 0;
    bool named;

    if (!list.attrs) {
        kiln_builder_fail(run->b, -ENOMEM);
        return 0;
    }
    put_configured(&list, false);
    named = put_own(&list, env_of(identity, "OTEL_RESOURCE_ATTRIBUTES"));
    put_host(&list);
    if (!identity->is_kernel)
        put_process(&list, identity);
    if (service.len || !named)
        put(&list, "service.name",
            service.len ? service : kiln_str_of(identity->is_kernel ? "kernel" : identity->name));
    set = kiln_builder_set(run->b, list.attrs, list.n, NULL);
    kiln_free(list.attrs);
    return set;
}

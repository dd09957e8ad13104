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

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the length, or a negative code. */
static int percent_decode(struct kiln_str text, char out[OWN_VALUE_MAX])
{
    int n = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (n == OWN_VALUE_MAX)
            return KILN_E_LIMIT;
        if (c == '%') {
            if (text.len - i < 3 || digit(text.ptr[i + 1]) < 0 || digit(text.ptr[i + 2]) < 0)
                return KILN_E_MALFORMED;
            c = (char)(digit(text.ptr[i + 1]) << 4 | digit(text.ptr[i + 2]));
            i += 2;
        }
        out[n++] = c;
    }
    return n;
}

/* Adds the pairs; on a mistake, none of them.  Returns whether service.name was among them. */
static bool put_own(struct list *list, struct kiln_str pairs)
{
    uint32_t first = list->n;
    bool named = false;

    while (pairs.len) {
        struct kiln_str value = kiln_str_cut(&pairs, ',');
        struct kiln_str key = kiln_str_trim(kiln_str_cut(&value, '='));
        char decoded[OWN_VALUE_MAX];
        int n = value.ptr ? percent_decode(kiln_str_trim(value), decoded) : KILN_E_MALFORMED;

        if (n < 0 || !key.len || list->n - first == OWN_MAX) {
            list->n = first;
            return false;
        }
        if (n == 0)
            continue;
        list->attrs[list->n++] = kiln_builder_attr(
            list->run->b, publish_text(list->run, key),
            kiln_value_string(publish_text(list->run, (struct kiln_str){decoded, (size_t)n})), 0);
        named |= kiln_str_eq(key, KILN_STR("service.name"));
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

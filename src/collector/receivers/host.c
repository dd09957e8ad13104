/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler of this host (host/host.h), as `kiln agent` has it.  Under the name `profiling` it
 * stands where the receiver of OpenTelemetry's eBPF profiler stood.
 */
#include <errno.h>

#include "base/mem.h"
#include "collector/registry.h"
#include "collector/settings.h"
#include "host/host.h"

struct host_settings {
    uint32_t frequency;
    bool off_cpu, by_container;
    const char *resource_per;
    uint64_t interval_ns;
    uint64_t memory_bytes;
};

struct host_receiver {
    struct kiln_component component; /* first */
    struct kiln_host_opts opts;
    struct kiln_host *host; /* NULL: it does not run */
};

static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct host_receiver *receiver = (struct host_receiver *)component;

    return kiln_host_start(&receiver->opts, &receiver->host, err);
}

static void stop(struct kiln_component *component, uint64_t deadline_ns)
{
    struct host_receiver *receiver = (struct host_receiver *)component;

    (void)deadline_ns; /* exporters let go of what it waits for */
    if (receiver->host)
        kiln_host_stop(receiver->host);
    receiver->host = NULL;
}

static void destroy(struct kiln_component *component)
{
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .stop = stop, .free = destroy};
    const struct host_settings *s = settings;
    struct host_receiver *receiver = kiln_calloc(1, sizeof(*receiver));

    if (!receiver)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    receiver->component.ops = &ops;
    receiver->opts = (struct kiln_host_opts){.hz = s->frequency,
                                             .off_cpu = s->off_cpu,
                                             .by_container = s->by_container,
                                             .every_ns = s->interval_ns,
                                             .memory_bytes = s->memory_bytes,
                                             .consumer = env->next[KILN_SIGNAL_PROFILES],
                                             .metrics = env->metrics,
                                             .log = env->log};
    *ret_component = &receiver->component;
    return 0;
}

static int read(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        key, KILN_FIELD_##kind, offsetof(struct host_settings, member)                             \
    }
    static const struct kiln_field fields[] = {
        FIELD("frequency", COUNT, frequency),
        FIELD("samples_per_second", COUNT, frequency), /* in the words of the eBPF profiler */
        FIELD("off_cpu", BOOL, off_cpu),
        FIELD("interval", DURATION, interval_ns),
        FIELD("reporter_interval", DURATION, interval_ns),
        FIELD("memory_limit", SIZE, memory_bytes),
        FIELD("resource_per", TEXT, resource_per),
    };
#undef FIELD
    struct host_settings *s = settings;
    int r;

    s->interval_ns = KILN_AGENT_EVERY_NS;
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0 && s->frequency > KILN_HOST_HZ_MAX)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "frequency: at most %d a second",
                              KILN_HOST_HZ_MAX);
    s->by_container = s->resource_per && strcmp(s->resource_per, "container") == 0;
    if (r == 0 && s->resource_per && !s->by_container && strcmp(s->resource_per, "process") != 0)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "resource_per: process or container, not \"%.20s\"", s->resource_per);
    return r;
}

const struct kiln_component_type kiln_host_receiver_type = {
    .name = "host",
    .aliases = "profiling",
    .kind = KILN_RECEIVER,
    .signals = KILN_TAKES_PROFILES,
    .stability = "beta",
    .settings_size = sizeof(struct host_settings),
    .read = read,
    .make = make,
};

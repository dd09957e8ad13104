/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses data while memory is short (pipeline/processors/limiter.h):
 *
 *   memory_limiter: {check_interval: 1s, limit_mib: 400, spike_limit_mib: 80}
 *   memory_limiter: {check_interval: 1s, limit_percentage: 75, spike_limit_percentage: 15}
 *
 * Percentages are of what the control group allows, or of the machine's memory.
 */
#include <errno.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/meminfo.h"
#include "collector/processors/changing.h"
#include "collector/registry.h"
#include "pipeline/processors/limiter.h"

#define MIB ((uint64_t)1 << 20)

struct settings {
    uint64_t check_interval_ns, min_gc_soft_ns, min_gc_hard_ns;
    uint32_t limit_mib, spike_limit_mib, limit_percentage, spike_limit_percentage;
};

static const struct kiln_field fields[] = {
    {"check_interval", KILN_FIELD_DURATION, offsetof(struct settings, check_interval_ns)},
    {"limit_mib", KILN_FIELD_COUNT, offsetof(struct settings, limit_mib)},
    {"spike_limit_mib", KILN_FIELD_COUNT, offsetof(struct settings, spike_limit_mib)},
    {"limit_percentage", KILN_FIELD_COUNT, offsetof(struct settings, limit_percentage)},
    {"spike_limit_percentage", KILN_FIELD_COUNT, offsetof(struct settings, spike_limit_percentage)},
    /* For a garbage collector, which there is none of here. */
    {"min_gc_interval_when_soft_limited", KILN_FIELD_DURATION,
     offsetof(struct settings, min_gc_soft_ns)},
    {"min_gc_interval_when_hard_limited", KILN_FIELD_DURATION,
     offsetof(struct settings, min_gc_hard_ns)},
};

static int read(const struct kiln_node *node, void *into, struct kiln_err *err)
{
    struct settings *settings = into;
    const char *why = NULL;
    int r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), settings, err);

    if (r < 0)
        return r;
    if (settings->check_interval_ns == 0)
        why = "'check_interval' must be greater than zero";
    else if (settings->limit_mib == 0 && settings->limit_percentage == 0)
        why = "'limit_mib' or 'limit_percentage' must be greater than zero";
    else if (settings->limit_percentage > 100 || settings->spike_limit_percentage > 100)
        why = "'limit_percentage' and 'spike_limit_percentage' must be less than or equal to 100";
    else if (settings->limit_mib && settings->limit_mib <= settings->spike_limit_mib)
        why = "'spike_limit_mib' must be smaller than 'limit_mib'";
    else if (!settings->limit_mib && settings->limit_percentage <= settings->spike_limit_percentage)
        why = "'spike_limit_percentage' must be smaller than 'limit_percentage'";
    if (!why)
        return 0;
    return node ? kiln_node_fail(node, KILN_E_MALFORMED, err, "%s", why)
                : kiln_err_set(err, KILN_E_MALFORMED, NULL, "%s", why);
}

/* A spike that was not said is a fifth of the limit. */
static void set_limits(const struct settings *settings, struct kiln_limiter_opts *opts)
{
    uint64_t total = kiln_meminfo_total();
    uint64_t spike = settings->spike_limit_mib * MIB;

    opts->hard_bytes = settings->limit_mib * MIB;
    if (settings->limit_mib == 0) {
        opts->hard_bytes = total / 100 * settings->limit_percentage;
        spike = total / 100 * settings->spike_limit_percentage;
    }
    if (spike == 0)
        spike = opts->hard_bytes / 5;
    opts->soft_bytes = opts->hard_bytes - spike;
}

static void destroy(struct kiln_component *component)
{
    kiln_limiter_free(component->in);
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *from,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    const struct settings *settings = from;
    struct kiln_limiter_opts opts = {
        .processor = kiln_processor_opts_of(env),
        .interval_ns = settings->check_interval_ns,
        .pool = env->pool,
    };
    struct kiln_component *component = kiln_calloc(1, sizeof(*component));
    int r = -ENOMEM;

    set_limits(settings, &opts);
    if (component)
        r = kiln_limiter_new(&opts, &component->in);
    return kiln_processor_made(component, r, &ops, ret_component, err);
}

const struct kiln_component_type kiln_memory_limiter_processor_type = {
    .name = "memory_limiter",
    .kind = KILN_PROCESSOR,
    .signals = KILN_TAKES_ALL,
    .stability = "beta",
    .settings_size = sizeof(struct settings),
    .read = read,
    .make = make,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of one question: those of all, but for what its tenant has otherwise; of several tenants,
 * the least of each.
 */
#include "query/query_int.h"

#define TIME_MS   60000
#define BYTES_MAX ((uint64_t)16 << 30)
#define NODES_MAX 1048576

struct kiln_query_limits kiln_query_limits_filled(struct kiln_query_limits limits, size_t memory)
{
    if (!limits.time_ms)
        limits.time_ms = TIME_MS;
    if (!limits.bytes)
        limits.bytes = BYTES_MAX;
    if (!limits.memory_bytes)
        limits.memory_bytes = memory;
    if (!limits.nodes_max)
        limits.nodes_max = NODES_MAX;
    return limits;
}

static uint64_t or_else(uint64_t value, uint64_t instead)
{
    return value ? value : instead;
}

static struct kiln_query_limits of_tenant(const struct kiln_querier *q, struct kiln_str tenant)
{
    for (uint32_t i = 0; i < q->n_tenants; i++) {
        const struct kiln_query_limits *own = &q->tenants[i].limits, *all = &q->limits;

        if (!kiln_str_eq(kiln_str_of(q->tenants[i].tenant), tenant))
            continue;
        return (struct kiln_query_limits){
            .time_ms = or_else(own->time_ms, all->time_ms),
            .bytes = or_else(own->bytes, all->bytes),
            .memory_bytes = (size_t)or_else(own->memory_bytes, all->memory_bytes),
            .range_ns = or_else(own->range_ns, all->range_ns),
            .nodes_max = (uint32_t)or_else(own->nodes_max, all->nodes_max),
        };
    }
    return q->limits;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct kiln_query_limits kiln_querier_limits_of(const struct kiln_querier *querier,
                                                struct kiln_str tenants)
{
    struct kiln_query_limits least = of_tenant(querier, kiln_str_cut(&tenants, '|'));

    while (tenants.ptr) {
        struct kiln_query_limits one = of_tenant(querier, kiln_str_cut(&tenants, '|'));

        least.time_ms = less(least.time_ms, one.time_ms);
        least.bytes = less(least.bytes, one.bytes);
        least.memory_bytes = (size_t)less(least.memory_bytes, one.memory_bytes);
        least.nodes_max = (uint32_t)less(least.nodes_max, one.nodes_max);
        least.range_ns = less(least.range_ns - 1, one.range_ns - 1) + 1; /* 0 is the most */
    }
    return least;
}

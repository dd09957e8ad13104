/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the pools; those of the process are in daemon.c.
 */
#include "cli/daemon.h"
#include "cli/serve.h"

static void set_pool(struct kiln_serve *serve, struct kiln_pool *pool)
{
    const char *const *labels = KILN_LABELS("pool", pool->name);
    struct kiln_metrics *m = serve->metrics;

    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_pool_used_bytes",
                                    "Memory that is taken from a pool.", labels),
                    (double)atomic_load(&pool->used));
    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_pool_peak_bytes",
                                    "The most that was ever taken from a pool.", labels),
                    (double)atomic_load(&pool->peak));
    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_pool_limit_bytes",
                                    "The most that may be taken from a pool.", labels),
                    (double)pool->limit);
    kiln_metric_set(kiln_metric_get(m, KILN_COUNTER, "kiln_pool_refused_total",
                                    "Askings that a pool had not enough left for.", labels),
                    (double)atomic_load(&pool->refused));
}

static void collect(void *context)
{
    struct kiln_serve *serve = context;

    set_pool(serve, &serve->memory.all);
    set_pool(serve, &serve->memory.ingest);
    set_pool(serve, &serve->memory.bodies);
    set_pool(serve, &serve->memory.store);
    set_pool(serve, &serve->memory.query);
    set_pool(serve, &serve->memory.beside);
}

void kiln_serve_measure(struct kiln_serve *serve)
{
    struct kiln_metrics *m = serve->metrics;

    kiln_daemon_measure(m, serve->started_unix_ns);
    kiln_metric_set(kiln_metric_get(m, KILN_GAUGE, "kiln_memory_limit_bytes",
                                    "The memory limit of the whole process.", NULL),
                    (double)serve->memory.limit);
    kiln_metrics_on_collect(m, collect, serve);
}

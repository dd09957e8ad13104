/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever asks: the querier over the store, what people keep in it, and the APIs on the router that
 * has everything.
 */
#include "api/sources.h"
#include "base/clock.h"
#include "cli/serve.h"

#define QUESTION_BYTES ((size_t)128 << 20) /* the flame graph of a busy hour fits */

/* Half of what all questions have together; all of it, where half would be too little. */
static size_t memory_of_one(const struct kiln_pool *pool)
{
    size_t half = pool->limit / 2;

    if (half >= QUESTION_BYTES)
        return half;
    return pool->limit < QUESTION_BYTES ? pool->limit : QUESTION_BYTES;
}

int kiln_serve_query(struct kiln_serve *serve, struct kiln_err *err)
{
    const struct kiln_settings *set = &serve->config->set;
    struct kiln_pool *pool = &serve->memory.query;
    const struct kiln_querier_opts opts = {
        .engine = serve->engine,
        .pool = pool,
        .limits = {.time_ms = set->query_timeout_ns / KILN_NS_PER_MS,
                   .bytes = set->query_bytes,
                   .memory_bytes =
                       set->query_memory ? (size_t)set->query_memory : memory_of_one(pool),
                   .range_ns = set->query_range_ns,
                   .nodes_max = set->query_nodes},
        .tenants = serve->config->query_tenants,
        .n_tenants = serve->config->n_query_tenants,
        .metrics = serve->metrics};
    enum kiln_order_limit anonymous_orders = KILN_ORDERS_OFF;
    int r = kiln_querier_new(&opts, &serve->querier);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = kiln_kept_open(serve->io, &serve->kept, err);
    if (r == 0 && serve->config->source.n)
        r = kiln_sources_new(serve->config->source.items, serve->config->source.n, &serve->sources,
                             err);
    if (r == 0)
        r = kiln_order_limit_parse(set->anonymous_orders, &anonymous_orders);
    if (r < 0)
        return r;
    serve->api = (struct kiln_api){.querier = serve->querier,
                                   .engine = serve->engine,
                                   .kept = serve->kept,
                                   .log = serve->log,
                                   .sources = serve->sources,
                                   .depot = serve->depot,
                                   .naming = serve->naming,
                                   .texts = serve->texts,
                                   .gate = serve->gate,
                                   .metrics = serve->metrics,
                                   .about = &serve->about,
                                   .fleet = &serve->fleet,
                                   .anonymous_orders = anonymous_orders,
                                   .multitenant = serve->config->set.multitenant};
    return 0;
}

int kiln_serve_query_routes(struct kiln_serve *serve)
{
    int r = kiln_api_add_page(&serve->api, serve->full);

    if (r == 0)
        r = kiln_api_add_native(&serve->api, serve->full);
    return r < 0 ? r : kiln_api_add_pyroscope(&serve->api, serve->full);
}

void kiln_serve_query_done(struct kiln_serve *serve)
{
    kiln_sources_free(serve->sources);
    kiln_kept_close(serve->kept);
    kiln_querier_free(serve->querier);
}

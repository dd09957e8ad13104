/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever asks: the querier over the store, what people keep in it, and the APIs on the router that
 * has everything.
 */
#include "cli/serve.h"

int kiln_serve_query(struct kiln_serve *serve, struct kiln_err *err)
{
    int r = kiln_kept_open(serve->io, &serve->kept, err);

    if (r < 0)
        return r;
    serve->api = (struct kiln_api){.querier = serve->querier,
                                   .engine = serve->engine,
                                   .kept = serve->kept,
                                   .log = serve->log,
                                   .multitenant = serve->config->set.multitenant};
    return 0;
}

int kiln_serve_query_routes(struct kiln_serve *serve)
{
    return kiln_api_add_page(&serve->api, serve->full);
}

void kiln_serve_query_done(struct kiln_serve *serve)
{
    kiln_kept_close(serve->kept);
}

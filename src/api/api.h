/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - the questions that clients ask over HTTP, put on a router: Pyroscope's API, our own, and
 * the page.  Handlers run in the lane for long requests (net/server.h), ask through query/, and
 * stop when their client goes away.
 *
 * Threads: made before the server starts, freed after it stopped; handlers run on its workers.
 */
#ifndef KILN_API_API_H
#define KILN_API_API_H

#include "api/about.h"
#include "api/kept.h"
#include "base/log.h"
#include "fleet/order.h"
#include "net/server.h"
#include "query/query.h"

#define KILN_API_TOO_LARGE "the answer is larger than there is memory for now: ask for less"

struct kiln_sources; /* api/sources.h */
struct kiln_gate;    /* pipeline/gate.h */
struct kiln_depot;   /* naming/depot.h */
struct kiln_naming;  /* naming/job.h */
struct kiln_texts;   /* naming/texts.h */
struct kiln_fleet;   /* fleet/fleet.h */

struct kiln_api {
    struct kiln_querier *querier; /* all borrowed */
    struct kiln_engine *engine;
    struct kiln_kept *kept;
    struct kiln_log *log;                   /* NULL: silent */
    struct kiln_gate *gate;                 /* NULL: everybody may do everything */
    struct kiln_metrics *metrics;           /* NULL: nothing is counted */
    const struct kiln_sources *sources;     /* NULL: no directory of source text is configured */
    const struct kiln_about *about;         /* NULL: answers have nothing about the server itself */
    struct kiln_depot *depot;               /* NULL: no debug files are taken */
    struct kiln_naming *naming;             /* NULL: nothing is named here */
    struct kiln_texts *texts;               /* NULL: debug files are not asked for sources */
    struct kiln_fleet *fleet;               /* NULL: no agents report here */
    enum kiln_order_limit anonymous_orders; /* of clients, where there are no tokens */
    bool multitenant;
};

/* querier.v1, settings.v1, capabilities.v1, version.v1, /pyroscope/render...: pyroscope*.c */
KILN_CHECK int kiln_api_add_pyroscope(struct kiln_api *api, struct kiln_router *router);
/* /api/v1/query, diff, labels, ...: native*.c; docs/openapi.yaml */
KILN_CHECK int kiln_api_add_native(struct kiln_api *api, struct kiln_router *router);
/* Of these only what an agent asks, for where it sends its profiles. */
KILN_CHECK int kiln_api_add_link(struct kiln_api *api, struct kiln_router *router);
/* GET / and what it needs: page.c */
KILN_CHECK int kiln_api_add_page(struct kiln_api *api, struct kiln_router *router);

#endif /* KILN_API_API_H */

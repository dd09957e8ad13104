/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receivers - the ways in over HTTP and gRPC: OTLP, Pyroscope, plain uploads.
 *
 *   struct kiln_receivers *receivers;
 *   kiln_receivers_new(&(struct kiln_receivers_opts){.next = store, .pool = &ingest}, &receivers);
 *   kiln_otlp_receiver_add(receivers, router);       4317, 4318 and 4040
 *   kiln_pyroscope_receiver_add(receivers, router);  4040
 *   kiln_pprof_receiver_add(receivers, router);      4040
 *   kiln_router_fallback(router, kiln_rpc_unknown, NULL);
 *
 * A receiver takes memory for a request from the pool before it looks into it, decodes it, and
 * hands a delivery to `next`; the request is answered when the delivery ends, from whatever thread
 * that is.  Unless it `waits`, an empty pool is 429 (HTTP) or UNAVAILABLE with RetryInfo (gRPC).
 *
 * Counted: kiln_receiver_{requests,profiles,samples,bytes}_total{receiver,outcome}.
 *
 * Threads: add before the server starts; free after it has stopped and all deliveries have ended.
 */
#ifndef KILN_PIPELINE_RECEIVERS_H
#define KILN_PIPELINE_RECEIVERS_H

#include "base/log.h"
#include "net/server.h"
#include "pipeline/pipeline.h"

struct kiln_gate;
struct kiln_receivers;

struct kiln_receivers_opts {
    struct kiln_consumer *next; /* borrowed; NULL: profiles are not taken */
    /* Of OTLP's other signals, which are passed on as they are; NULL: not taken. */
    struct kiln_consumer *others[KILN_SIGNALS];
    bool pipelines;         /* who is refused is told that no pipeline takes it */
    struct kiln_pool *pool; /* ingest; NULL: only the limits bound a request */
    bool waits;             /* where it is empty: a few seconds, before a request is refused */
    /*
     * The same without a thread for each that waits (receivers/admission.h); 0: not at all.
     * Refusals of `next` for want of memory wait too, until `has_room` says that there is some.
     */
    uint64_t patience_ns;
    bool (*has_room)(void *context, size_t bytes);
    void *room_context;
    bool include_metadata;        /* deliveries have the headers of their requests */
    bool authenticated;           /* and what they say of who sends them, which was checked */
    struct kiln_gate *gate;       /* counts bytes of tenants; NULL: none */
    size_t content_max;           /* of one request, uncompressed; 0: 64 MiB */
    size_t body_max;              /* of OTLP: as received; 0: the server's */
    struct kiln_metrics *metrics; /* NULL: not measured */
    struct kiln_log *log;         /* NULL: silent */
    /* Shown what comes over a Unix socket, before it goes on; NULL: nobody. */
    void (*local)(void *context, const struct kiln_peer *peer, const struct kiln_batch *batch);
    void *local_context;
};

KILN_CHECK int kiln_receivers_new(const struct kiln_receivers_opts *opts,
                                  struct kiln_receivers **ret_receivers);
/* Before the server stops: requests that wait have their last turn at once. */
void kiln_receivers_stop(struct kiln_receivers *receivers);
void kiln_receivers_free(struct kiln_receivers *receivers);

/*
 * OTLP profiles: POST /v1development/profiles, /v1/profiles, /otlp/v1/profiles, and the gRPC and
 * Connect method ProfilesService/Export.  Traces, metrics and logs go to `others`, or get an answer
 * that says what Kiln takes.  Every one of them may be added to several routers.
 */
KILN_CHECK int kiln_otlp_receiver_add(struct kiln_receivers *receivers, struct kiln_router *router);
/* One signal at one more path of HTTP. */
KILN_CHECK int kiln_otlp_receiver_add_path(struct kiln_receivers *receivers,
                                           struct kiln_router *router, enum kiln_signal signal,
                                           const char *path);

/* Pyroscope: POST /ingest, /pyroscope/ingest, and push.v1.PusherService/Push. */
KILN_CHECK int kiln_pyroscope_receiver_add(struct kiln_receivers *receivers,
                                           struct kiln_router *router);

/* Uploads of any format Kiln reads: POST /api/v1/profiles?service=NAME&... */
KILN_CHECK int kiln_pprof_receiver_add(struct kiln_receivers *receivers,
                                       struct kiln_router *router);
/* The same as the Collector's receiver has it: POST /v1/pprof, answered by 204. */
KILN_CHECK int kiln_pprof_receiver_add_push(struct kiln_receivers *receivers,
                                            struct kiln_router *router);

#endif /* KILN_PIPELINE_RECEIVERS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake - a server with all receivers on a free port, and a consumer that keeps what it gets.
 *
 *   struct intake in;
 *   intake_start(&in, NULL);
 *   intake_post(&in, "/ingest?name=app", "text/plain", KILN_STR("main;read 3\n"));
 *   CHECK_EQ(in.answer.status, 200);
 *   CHECK_TEXT(intake_text(&in, 0), "...");
 *   intake_stop(&in);          fails the test if memory or bytes of the pool are not given back
 *
 * Whatever came with a recipe is made again by it before it is forgotten, and must be the same.
 */
#ifndef KILN_TESTS_SUPPORT_INTAKE_H
#define KILN_TESTS_SUPPORT_INTAKE_H

#include <pthread.h>

#include "drawn.h"
#include "net/client.h"
#include "pipeline/receivers.h"

enum { INTAKE_MAX = 64 };

struct intake_opts {
    size_t pool_bytes;  /* 0: 256 MiB */
    size_t content_max; /* 0: the default */
    struct kiln_guard guard;
    struct kiln_gate *gate;
    const char *token, *tenant; /* of the client */
    uint16_t port;              /* 0: any */
    uint64_t patience_ns;       /* of requests that find no memory; 0: none */
};

struct intake {
    struct kiln_consumer consumer; /* first */
    struct kiln_receivers *receivers;
    struct kiln_server *server;
    struct kiln_router *router;
    struct kiln_client *client;
    struct kiln_metrics *metrics;
    struct kiln_pool pool;
    struct kiln_answer answer; /* the last */

    struct kiln_outcome outcome; /* what every delivery gets */
    bool elsewhere;              /* from another thread */
    /* Deliveries that end with -EAGAIN before one gets `outcome`, and how often receivers must ask
     * for room before there is some. */
    _Atomic uint32_t busy, full, n_asked;

    uint16_t port;

    pthread_mutex_t lock;
    uint32_t n;
    struct intake_got {
        struct kiln_batch *batch;
        struct kiln_buf body, recipe;
        enum kiln_compression compression;
        char tenant[160];
        uint32_t rejected;
        bool sealed; /* it came so; the batch is what it opened to */
    } got[INTAKE_MAX];
};

void intake_start(struct intake *in, const struct intake_opts *opts);
void intake_stop(struct intake *in);
/* Forgets what was got. */
void intake_clear(struct intake *in);

/* One call; the answer is in in->answer. */
void intake_call(struct intake *in, const struct kiln_call *call);
void intake_grpc(struct intake *in, const char *path, struct kiln_str message);
void intake_post(struct intake *in, const char *path, const char *content_type,
                 struct kiln_str body);

/* A pprof of drawn profiles, and one of CPU time ("main;read 3"); the buffer is the caller's. */
struct kiln_str intake_pprof(struct kiln_buf *out, const struct kiln_drawn *drawn, uint32_t n);
struct kiln_str intake_cpu_pprof(struct kiln_buf *out);

/*
 * What delivery `i` said, a line for each profile and each of its samples, in a static buffer:
 *
 *   {service.name=app} process_cpu:cpu:nanoseconds:cpu:nanoseconds *1 @1700000000000000000+10s
 *     main;read 3 {thread=a} 4bf9.../00f0...
 */
const char *intake_text(struct intake *in, uint32_t i);

/* The value of a counter, by its line in /metrics up to the value. */
double intake_count(struct intake *in, const char *series);

#endif /* KILN_TESTS_SUPPORT_INTAKE_H */

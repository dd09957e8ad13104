/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay - both ends of a pipeline in a test: deliveries that know how they ended, and a consumer
 * that keeps what comes until it is told how to end it.
 *
 *   struct relay_sink sink = RELAY_SINK;
 *   struct relay_post post = {0};
 *
 *   relay_send(&post, consumer, batch, "tenant");
 *   relay_wait(&sink, 1);                      sink.kept[0]->batch ...
 *   relay_end(&sink, 0);                       post.ended, post.outcome
 */
#ifndef KILN_TESTS_SUPPORT_RELAY_H
#define KILN_TESTS_SUPPORT_RELAY_H

#include <pthread.h>

#include "pipeline/pipeline.h"

enum { RELAY_MAX = 256 };

struct relay_sink {
    struct kiln_consumer consumer; /* first */
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct kiln_delivery *kept[RELAY_MAX];
    uint32_t n;
};
void relay_keep(struct kiln_consumer *consumer, struct kiln_delivery *delivery);
#define RELAY_SINK                                                                                 \
    {                                                                                              \
        {.consume = relay_keep}, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {NULL}, 0    \
    }

struct relay_post {
    struct kiln_delivery delivery;
    struct kiln_outcome outcome;
    _Atomic int ended; /* how often */
};

/* Sends a batch, which it takes over; with a body, where `batch` is one of profiles. */
void relay_send(struct relay_post *post, struct kiln_consumer *to, struct kiln_batch *batch,
                const char *tenant);
/* The same of a delivery that is filled in but for its end. */
void relay_post(struct relay_post *post, struct kiln_consumer *to);
/* Waits until so many deliveries are kept. */
void relay_wait(struct relay_sink *sink, uint32_t n);
/* Ends all that are kept with this code, and forgets them. */
void relay_end(struct relay_sink *sink, int code);

#endif /* KILN_TESTS_SUPPORT_RELAY_H */

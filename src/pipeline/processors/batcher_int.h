/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batcher_int - what batcher.c (who waits, and for how long), batcher_send.c (how they go on) and
 * batcher_join.c (as what) share.
 *
 * Threads: those that wait are the batcher's, under its lock; those that go on are nobody else's.
 */
#ifndef KILN_PIPELINE_PROCESSORS_BATCHER_INT_H
#define KILN_PIPELINE_PROCESSORS_BATCHER_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/processors/batcher.h"
#include "pipeline/processors/turnout.h"

enum { KILN_CROWD_HEADERS = 32 };

/* Who may go on together: the same tenant, and the same metadata where it counts. */
struct kiln_crowd_kind {
    const char *tenant; /* NULL: none */
    struct kiln_str metadata;
};

/* Deliveries that go on together. */
struct kiln_crowd {
    struct kiln_crowd *next; /* of those that wait */
    struct kiln_batcher *batcher;
    struct kiln_delivery **all;
    uint32_t n, cap;
    uint64_t samples;
    uint64_t began_ns, last_ns; /* monotonic: when the first and the last one came */
    bool is_all;                /* with those that wait elsewhere: nobody else is expected */
    char *tenant;               /* a copy; NULL: none */
    struct kiln_buf metadata;   /* a copy */

    /* Once they are on their way: */
    pthread_mutex_t lock;
    struct kiln_outcome worst;
    uint32_t *n_profiles;                           /* that each of them had */
    struct kiln_header headers[KILN_CROWD_HEADERS]; /* that all of them had */
    struct kiln_delivery *parts;
    uint32_t n_parts, left; /* that have not ended */
    void (*done)(struct kiln_delivery *delivery, const struct kiln_outcome *outcome);
    void *context; /* and that: whom one that goes on alone will tell */
};

struct kiln_batcher {
    struct kiln_consumer consumer; /* first */
    struct kiln_batcher_opts opts;
    struct kiln_processor_counts counts;
    struct kiln_metric *by_size, *by_time, *send_size, *send_size_bytes, *cardinality;
    _Atomic uint64_t wary_until_ns; /* some were not as the decoder wants them */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    struct kiln_crowd *crowds;
    uint32_t n_crowds;
    uint32_t waiting; /* in all of them */
    struct kiln_turnout turnout;
    uint64_t wakes_ns; /* when the thread looks again */
    bool stopping;
    bool running; /* there is a thread */
    pthread_t thread;
};

bool kiln_crowd_is_checked(const struct kiln_crowd *crowd);
/* The batch of all of them; some may be opened for it.  Where not all are checked it may fail for
 * one of them. */
KILN_CHECK int kiln_crowd_join(const struct kiln_crowd *crowd, struct kiln_batch **ret_batch);
/* Counts it, and hands it on. */
void kiln_batcher_hand_on(struct kiln_batcher *batcher, struct kiln_delivery *delivery);
/* Hands them on, and frees the crowd when they have ended. */
void kiln_crowd_send(struct kiln_batcher *batcher, struct kiln_crowd *crowd);
void kiln_crowd_free(struct kiln_crowd *crowd);

#endif /* KILN_PIPELINE_PROCESSORS_BATCHER_INT_H */

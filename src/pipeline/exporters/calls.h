/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - a sender of threads, each with a client of its own (net/client.h) whose calls wait.
 *
 * Threads are started as they are needed, up to as many as requests may be sent at once.
 *
 * Threads: as sender.h.
 */
#ifndef KILN_PIPELINE_EXPORTERS_CALLS_H
#define KILN_PIPELINE_EXPORTERS_CALLS_H

#include <pthread.h>

#include "pipeline/exporters/outgoing.h"

enum { KILN_CALLS_THREADS_MAX = 256 };

struct kiln_calls {
    struct kiln_outgoing out; /* first */
    struct kiln_client_opts client;
    uint32_t threads_max;
    _Atomic bool cancel;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    struct kiln_send *first, **last;
    uint32_t n_waiting; /* sends */
    uint32_t n_idle, n_threads;
    bool end;
    pthread_t threads[KILN_CALLS_THREADS_MAX];
};

/* `out` was opened by the same options; what they point to outlives it. */
void kiln_calls_init(struct kiln_calls *calls, const struct kiln_otlp_sender_opts *opts);
void kiln_calls_done(struct kiln_calls *calls); /* and `out`; nothing is under way */
void kiln_calls_send(struct kiln_sender *sender, struct kiln_send *send);
void kiln_calls_cancel(struct kiln_sender *sender);

#endif /* KILN_PIPELINE_EXPORTERS_CALLS_H */

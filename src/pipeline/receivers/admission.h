/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admission - requests that wait until there is memory for them.
 *
 *   handler ──▶ may_try ──▶ decode, store ──▶ answer
 *      ▲           │ others wait    │ no memory (-EAGAIN)
 *      │           ▼                ▼
 *      └──────── first in, first out, in order of arrival
 *
 * A request that waits has no thread.  It keeps its body, and everything else that was made of it
 * is freed.  When it is its turn its handler is called again, as if the client had sent it again.
 * It has its turn when the pool has what the last attempt lacked and the store has room for it, and
 * once more when its time is over: that attempt is answered, whatever comes of it.  A request whose
 * client disconnects leaves the queue.
 *
 * One thread watches the pool while requests wait, since memory is given back in many places and
 * under locks.  A request that is larger than the pool never gets here: it is refused at once.
 *
 * Threads: all functions may be called from anywhere; start and stop by one thread.
 */
#ifndef KILN_PIPELINE_RECEIVERS_ADMISSION_H
#define KILN_PIPELINE_RECEIVERS_ADMISSION_H

#include <pthread.h>

#include "base/metric.h"
#include "base/pool.h"
#include "net/server.h"

struct kiln_admission_opts {
    struct kiln_pool *pool; /* what decoding takes memory from */
    /* Whether the store would take so many bytes more; NULL: always. */
    bool (*has_room)(void *context, size_t bytes);
    void *context;
    void (*again)(struct kiln_request *request); /* calls its handler again, on another thread */
    uint64_t patience_ns;                        /* how long a request waits at most */
    uint32_t max;                                /* requests that wait at once */
    struct kiln_metrics *metrics;                /* NULL: not measured */
};

struct kiln_admission {
    struct kiln_admission_opts opts;
    pthread_mutex_t lock; /* for what follows, and for the turns of requests that wait */
    pthread_cond_t wake;
    struct kiln_request *first;
    uint32_t n;
    struct kiln_request *called; /* had its turn, and has not begun to try yet */
    uint64_t called_ns;
    bool stopped, running;
    pthread_t thread;
    struct kiln_metric *waiting, *seconds, *full, *late;
};

/* What the last attempt of a request lacked. */
struct kiln_lack {
    size_t memory; /* bytes of the pool, for all of the attempt */
    size_t store;  /* bytes in the store; 0: not known */
};

void kiln_admission_init(struct kiln_admission *admission, const struct kiln_admission_opts *opts);
KILN_CHECK int kiln_admission_start(struct kiln_admission *admission);
/* Calls every request that waits a last time; from then on none waits. */
void kiln_admission_stop(struct kiln_admission *admission);
void kiln_admission_done(struct kiln_admission *admission);

/* At the start of every attempt: false where earlier requests wait, and this one has to. */
bool kiln_admission_may_try(struct kiln_admission *admission, struct kiln_request *request);

/*
 * After an attempt that failed for want of memory.  True: the request waits, and must not be
 * touched any more, for another thread may handle it already.  False: it has waited long enough, or
 * too many wait, and is to be answered.
 */
bool kiln_admission_wait(struct kiln_admission *admission, struct kiln_request *request,
                         struct kiln_lack lack);

/* Takes the next request whose turn it is off the queue, or NULL; what the thread calls. */
struct kiln_request *kiln_admission_next(struct kiln_admission *admission, uint64_t now_ns);

#endif /* KILN_PIPELINE_RECEIVERS_ADMISSION_H */

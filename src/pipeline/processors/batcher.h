/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batcher - deliveries wait for others, and go on as one.
 *
 * They go on when they have enough samples together, when the first has waited for the timeout,
 * when nobody has joined them for a tenth of it (20 ms at most), or as soon as all wait that can be
 * expected (turnout.h): senders wait for their answer, most of them with one request at a time, so
 * that nobody else will come as long as they wait.
 *
 * What goes on is one batch with one dictionary (core/concat.h): nothing is added up.  Every
 * delivery ends when the one that it went on in ends, with its outcome, so that nobody is told that
 * something is safe which is not, and whoever is held back further on holds the senders back.  One
 * that goes on alone goes on as it came.  Those of different tenants are kept apart, and those with
 * different metadata where that is asked for; of their headers only those go on that are alike.
 *
 * Where there is no memory to put them together they go on one by one.
 *
 * Threads: consume() from anywhere; a thread of its own keeps the time.
 */
#ifndef KILN_PIPELINE_PROCESSORS_BATCHER_H
#define KILN_PIPELINE_PROCESSORS_BATCHER_H

#include "pipeline/metadata.h"
#include "pipeline/processors/counts.h"

struct kiln_batcher_opts {
    struct kiln_processor_opts processor;
    uint64_t samples;       /* that are enough; 0: none waits for more */
    uint32_t samples_max;   /* of what goes on: more are split; 0: no limit */
    uint64_t timeout_ns;    /* 0: nobody waits */
    uint64_t quiet_ns;      /* 0: as above */
    struct kiln_pool *pool; /* what goes on is charged to it; NULL: none */
    /* Deliveries with other values of these wait apart, for so many different ones at a time (0: no
     * limit); who is one more goes on alone. */
    struct kiln_metadata_keys keys;
    uint32_t keys_max;
};

struct kiln_batcher;

KILN_CHECK int kiln_batcher_new(const struct kiln_batcher_opts *opts,
                                struct kiln_batcher **ret_batcher);
KILN_CHECK int kiln_batcher_start(struct kiln_batcher *batcher);
/* Hands on all that wait; whoever comes later goes on at once. */
void kiln_batcher_stop(struct kiln_batcher *batcher);
void kiln_batcher_free(struct kiln_batcher *batcher);

struct kiln_consumer *kiln_batcher_consumer(struct kiln_batcher *batcher);

#endif /* KILN_PIPELINE_PROCESSORS_BATCHER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape - keeps every batch of a recording and makes one of them.
 *
 * What came so far is added up every few batches, so that a long recording takes the memory of its
 * distinct stacks and not of its length.
 *
 * Threads: deliveries from anywhere; the rest from the main thread, when nobody delivers any more.
 */
#ifndef KILN_CLI_TAPE_H
#define KILN_CLI_TAPE_H

#include <pthread.h>

#include "pipeline/pipeline.h"

enum { KILN_TAPE_PENDING = 16 };

struct kiln_tape {
    struct kiln_consumer consumer;
    pthread_mutex_t lock;
    struct kiln_batch *batches[KILN_TAPE_PENDING];
    uint32_t n;
    uint32_t lost;       /* batches that did not fit */
    struct kiln_err why; /* the first of them did not */
};

void kiln_tape_init(struct kiln_tape *tape);
void kiln_tape_done(struct kiln_tape *tape);

/* As if it had been delivered; the batch stays the caller's too. */
KILN_CHECK int kiln_tape_add(struct kiln_tape *tape, struct kiln_batch *batch,
                             struct kiln_err *err);

/* Everything as one batch, the caller's; NULL in *ret_batch: nothing came. */
KILN_CHECK int kiln_tape_take(struct kiln_tape *tape, struct kiln_batch **ret_batch,
                              struct kiln_err *err);

#endif /* KILN_CLI_TAPE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changer - the frame of processors that change what profiles say.
 *
 * A processor gives a function that makes one batch of another.  The frame hands on what it makes
 * in the place of what came, without the bytes it came as; it charges the delivery, counts, and
 * refuses what cannot be changed: nothing goes on as it should not.  A batch that is left without a
 * profile ends here, well.  Other signals pass.
 *
 * Threads: consume() from anywhere; `change` is called by one thread at a time.
 */
#ifndef KILN_PIPELINE_PROCESSORS_CHANGER_H
#define KILN_PIPELINE_PROCESSORS_CHANGER_H

#include "pipeline/processors/counts.h"

struct kiln_change {
    void *context;
    /*
     * Returns 0 where it left *batch as it was, and 1 where it changed it, or put another one in
     * its place; the reference is its own.  On failure (a code of struct kiln_outcome) *batch is
     * one to be unrefed, or NULL.
     */
    int (*change)(void *context, struct kiln_batch **batch, struct kiln_err *err);
    /* Told before each change who sent the batch; NULL: it need not know. */
    void (*meet)(void *context, const struct kiln_remote *remote);
    bool copies; /* it makes a second batch before it lets go of the first */
};

KILN_CHECK int kiln_changer_new(const struct kiln_processor_opts *opts,
                                const struct kiln_change *change,
                                struct kiln_consumer **ret_changer);
void kiln_changer_free(struct kiln_consumer *changer);

#endif /* KILN_PIPELINE_PROCESSORS_CHANGER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limiter - refuses deliveries while the process takes too much memory, so that senders try again
 * when there is some.
 *
 * From the soft limit on it refuses; above the hard one free memory also goes back to the kernel.
 * What the process takes is what the kernel says, or what the pool has given out where that is
 * more.  Whoever comes looks, where nobody has for the interval: an idle process is not woken.
 *
 * Threads: consume() from anywhere.
 */
#ifndef KILN_PIPELINE_PROCESSORS_LIMITER_H
#define KILN_PIPELINE_PROCESSORS_LIMITER_H

#include "pipeline/processors/counts.h"

struct kiln_limiter_opts {
    struct kiln_processor_opts processor;
    uint64_t soft_bytes, hard_bytes;
    uint64_t interval_ns;   /* 0: always look */
    struct kiln_pool *pool; /* NULL: none */
};

KILN_CHECK int kiln_limiter_new(const struct kiln_limiter_opts *opts,
                                struct kiln_consumer **ret_limiter);
void kiln_limiter_free(struct kiln_consumer *limiter);

#endif /* KILN_PIPELINE_PROCESSORS_LIMITER_H */

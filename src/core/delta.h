/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta - what happened between two readings of the same counters.
 *
 * Many programs count allocations and contention since their start; what they show grows for ever.
 * Given the reading before and the one now, profiles of flow types (core/type.h: alloc_*,
 * contentions, delay) become their differences: they start when the one before was read, last until
 * now, and carry the attribute `profile.delta` = true.  Samples that did not grow are left out, and
 * so are profiles without samples.  Profiles of level types (inuse_*, goroutine) stay as they are,
 * but for samples of zero.
 *
 * The first reading is a baseline: its flows are left out.  Where a sum is below the one before, or
 * the program's first mapping has moved or is another file, the program began anew: all it shows
 * now happened since then.  While nothing begins anew, the differences of many readings add up to
 * the last less the first.
 *
 * Samples are the same if stack, attributes and link are.
 *
 * Threads: no state; batches are only read.
 */
#ifndef KILN_CORE_DELTA_H
#define KILN_CORE_DELTA_H

#include "core/builder.h"

struct kiln_delta_opts {
    struct kiln_limits limits; /* zero: the default */
    bool no_levels;            /* leave profiles of level types out */
};

/* `before` and `opts` may be NULL.  The batch may be without profiles.  `ret_reset`, if not NULL,
 * is whether the program began anew. */
KILN_CHECK int kiln_delta(const struct kiln_batch *before, const struct kiln_batch *now,
                          const struct kiln_delta_opts *opts, struct kiln_batch **ret_batch,
                          bool *ret_reset, struct kiln_err *err);

#endif /* KILN_CORE_DELTA_H */

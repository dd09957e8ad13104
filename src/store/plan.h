/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - which blocks of a tenant are merged next: pure decisions, no files.
 *
 * A profile is rewritten once or twice in its life: fresh blocks (level 0) become a block of level
 * 1 when there are as many as one merge can take, or 32, or the oldest has waited for an hour;
 * blocks of level 1 whose data ends on the same day become one of level 2 when there are eight, or
 * the oldest has waited for a day.  What comes late joins the block of its day once it is an eighth
 * of it.
 *
 * A merge never needs more than its share of memory, and never makes a block larger than a bound:
 * where all that is due does not fit, the oldest data that does is taken, and the rest later.  A
 * block that fills half of either bound is full, and is left alone.
 *
 * Threads: no state.
 */
#ifndef KILN_STORE_PLAN_H
#define KILN_STORE_PLAN_H

#include "store/block.h"

enum {
    KILN_PLAN_FRESH = 32,   /* blocks of level 0 that make a merge */
    KILN_PLAN_DAY = 8,      /* of level 1 */
    KILN_PLAN_FAN_MAX = 64, /* blocks of one merge at most */
};

struct kiln_plan_opts {
    uint64_t now_ns;
    size_t memory_bytes; /* for the dictionaries of all inputs together; 0: no bound */
    uint64_t out_bytes;  /* of the inputs together; 0: 256 MiB */
    bool all;            /* merge whatever may be merged, whatever its level and age */
};

/* A merge: indexes into the array of infos, in the order of data. */
struct kiln_plan {
    uint32_t blocks[KILN_PLAN_FAN_MAX];
    uint32_t n;
    uint32_t level; /* of the result */
    uint64_t bytes, dict_bytes;
};

/*
 * The next merge among the `n` blocks of one tenant; `skip` marks blocks that are not to be touched
 * (NULL: none).  Returns 1, 0 where nothing is due, or -ENOMEM.
 */
KILN_CHECK int kiln_plan_next(const struct kiln_block_info *const *blocks, const bool *skip,
                              uint32_t n, const struct kiln_plan_opts *opts,
                              struct kiln_plan *ret_plan);

/* How much is due and not merged yet: blocks, and their bytes. */
struct kiln_backlog {
    uint64_t blocks, bytes;
};
struct kiln_backlog kiln_plan_backlog(const struct kiln_block_info *const *blocks, uint32_t n,
                                      const struct kiln_plan_opts *opts);

#endif /* KILN_STORE_PLAN_H */

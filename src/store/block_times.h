/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_times - the series and times of the profiles in a block, without its dictionary, stacks and
 * samples: of a page of rows, three columns are unpacked.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_BLOCK_TIMES_H
#define KILN_STORE_BLOCK_TIMES_H

#include "store/block_int.h"

#define KILN_TIME_LOST UINT64_MAX /* the page of moments with it is damaged */

struct kiln_block_times {
    struct kiln_block *block; /* borrowed */
    struct kiln_budget budget;
    struct kiln_page_in in;
    struct kiln_column columns[KILN_ROWS_EXTRA + 1]; /* SERIES: of each profile */
    struct kiln_column times;                        /* likewise; or KILN_TIME_LOST */
};

KILN_CHECK int kiln_block_times_init(struct kiln_block_times *t, struct kiln_block *block);
void kiln_block_times_done(struct kiln_block_times *t);

/* The moments of the block, `n` times by number - 1; the caller frees them. */
KILN_CHECK int kiln_block_read_clock(struct kiln_block_times *t, uint64_t **ret_clock,
                                     uint32_t *ret_n);
/* Reads a page of rows, by its number among these: afterwards the two columns have one number for
 * each profile. */
KILN_CHECK int kiln_block_read_times(struct kiln_block_times *t, uint32_t page,
                                     const uint64_t *clock, uint32_t n_clock);

#endif /* KILN_STORE_BLOCK_TIMES_H */

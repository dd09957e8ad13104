/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_wide - a merge of more sources than fit into the memory of its query: sources are collected
 * until they fill a share of it, then replaced by one summary (store/wide.h).  The answer is made
 * of the summaries.  Totals are exact; the bounds of nodes and functions are in the answer.
 *
 * Each whole block has a summary of its own, which is cached.
 *
 * Threads: one owner.
 */
#ifndef KILN_STORE_MERGE_WIDE_H
#define KILN_STORE_MERGE_WIDE_H

#include "store/merge_roll.h"
#include "store/wide.h"

/* What the sources so far come to. */
struct kiln_merge_sums_so_far {
    int64_t total;
    double count;
};

struct kiln_merge_wide {
    struct kiln_store *store; /* NULL: the merge is not wide */
    struct kiln_merging *m;   /* borrowed, like the next */
    struct kiln_merge_rolls *rolls;
    struct kiln_merge_sums_so_far *sums;
    uint32_t nodes_max; /* of a summary */
    size_t bytes_max;   /* of the sources at hand, and of summaries that are not cached */
    size_t bytes;       /* of the sources at hand, */
    uint32_t n_counted; /* which are so many */
    size_t charged;     /* to the query, of these */
    size_t own_bytes;   /* of summaries, charged to the query */
    int error;          /* of the first failure: nothing can be added any more */
    struct kiln_wide **all;
    uint32_t n, cap;
    /* of the whole block at hand */
    uint32_t first;
    struct kiln_merge_sums_so_far before;
};

/* `bytes`: what the query may use. */
void kiln_merge_wide_begin(struct kiln_merge_wide *wide, size_t bytes);
void kiln_merge_wide_done(struct kiln_merge_wide *wide);
/* Forgets all sources and summaries. */
void kiln_merge_wide_restart(struct kiln_merge_wide *wide);

/* A source was added to the merge, or some of a roll-up: makes room where it was too much. */
KILN_CHECK int kiln_merge_wide_added(struct kiln_merge_wide *wide);

/* 1: the whole block was added from the cache.  0: its rows are needed, and then end. */
KILN_CHECK int kiln_merge_wide_begin_block(struct kiln_merge_wide *wide, struct kiln_scan *scan,
                                           const struct kiln_scan_source *source,
                                           struct kiln_err *err);
KILN_CHECK int kiln_merge_wide_end_block(struct kiln_merge_wide *wide,
                                         const struct kiln_scan_source *source,
                                         struct kiln_err *err);

/* All summaries become the sources of the merge; their bounds. */
KILN_CHECK int kiln_merge_wide_finish(struct kiln_merge_wide *wide, int64_t *ret_nodes,
                                      int64_t *ret_functions, bool *ret_pruned);

#endif /* KILN_STORE_MERGE_WIDE_H */

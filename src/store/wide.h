/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide - a summary of many sources of a merge (store/merge_int.h): their tree pruned to its largest
 * nodes, their functions, and the largest error of either.  Its size depends on neither the number
 * of services nor that of stacks.
 *
 * Queries that are too wide for their memory are answered from summaries.  That of a whole block
 * never changes and is cached: the next query of the same series reads no row of the block.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_STORE_WIDE_H
#define KILN_STORE_WIDE_H

#include "store/merge_int.h"
#include "store/whole.h"
#include "store/wide_names.h"

/* Of a summary, and of a query.  For tests alone: smaller ones prune more. */
struct kiln_wide_limits {
    uint32_t nodes_max, functions_max; /* of a summary: those with the largest totals */
    uint32_t summaries_max;            /* of a query, before they are merged into one */
    size_t bytes_max;                  /* of sources that become a summary */
    bool always;                       /* every query that can be is wide */
};
extern struct kiln_wide_limits kiln_wide_limits;

struct kiln_wide {
    struct kiln_cached cached; /* first */
    struct kiln_wide_names *names;
    struct kiln_forest *forest;            /* of numbers of `names`; 0 stands for pruned nodes */
    int64_t *upto;                         /* as those of a source */
    struct kiln_merge_function *functions; /* by number */
    uint32_t n_functions;
    int64_t error_bound;     /* no node lacks more, nor has more that is not in the tree */
    int64_t functions_bound; /* the same for functions */
    bool is_pruned;          /* some node or function is missing */
    size_t bytes;            /* of it, and of the names that came with it */
    /* of a whole block: */
    struct kiln_whole whole;
    int64_t total;
    double count;
};

/* Of a flame with all nodes and functions that shall stay; its bound is taken over.  A reference.
 */
KILN_CHECK int kiln_wide_of_flame(struct kiln_wide_shelf *shelf, struct kiln_flame *flame,
                                  struct kiln_wide **ret_wide);
static inline void kiln_wide_unref(struct kiln_wide *wide)
{
    kiln_cached_unref((struct kiln_cached *)wide);
}

/* Of a whole block; `age`: of its names (store/census.h).  A reference, or NULL. */
struct kiln_wide *kiln_wide_find(struct kiln_cache *cache, const struct kiln_scan_source *source,
                                 uint64_t age);
/* Notes which block it is of, before it is shared; keeps it where there is room: false if not. */
KILN_CHECK int kiln_wide_note(struct kiln_wide *wide, const struct kiln_scan_source *source);
bool kiln_wide_keep(struct kiln_cache *cache, const struct kiln_scan_source *source, uint64_t age,
                    struct kiln_wide *wide);

/* Adds it as a source; takes the reference over, also on failure. */
KILN_CHECK int kiln_merging_add_wide(struct kiln_merging *m, struct kiln_wide *wide);

#endif /* KILN_STORE_WIDE_H */

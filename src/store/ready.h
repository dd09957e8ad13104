/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready - what all rows of some series of a service of a block add up to: they never change, so the
 * next question that wants just these finds them in the cache (store/cache.h), and reads no row.
 *
 * Sums are by the ranks and names of one forest (store/forest.h): with another one, as after
 * symbols came, they are of no use, and are not found.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_STORE_READY_H
#define KILN_STORE_READY_H

#include "store/cache.h"
#include "store/merge_int.h"
#include "store/whole.h"

struct kiln_ready {
    struct kiln_cached cached; /* first */
    uint64_t forest;           /* its serial */
    struct kiln_whole whole;   /* whose rows */
    uint32_t n_functions;
    int64_t *upto;                         /* as those of a source (store/merge_int.h) */
    struct kiln_merge_function *functions; /* NULL: nobody asked for them */
    double count;
};

/* For the source at hand, all of whose rows are meant; a reference, or NULL. */
struct kiln_ready *kiln_ready_find(struct kiln_cache *cache, const struct kiln_scan_source *source,
                                   const struct kiln_forest *forest, bool functions);
/* One of the source at hand, a reference; takes `upto` over, also on failure.  The caller adds the
 * count and functions, */
KILN_CHECK int kiln_ready_new(const struct kiln_scan_source *source,
                              const struct kiln_forest *forest, int64_t *upto,
                              struct kiln_ready **ret_ready);
/* and keeps it, where there is room. */
void kiln_ready_keep(struct kiln_cache *cache, const struct kiln_scan_source *source,
                     const struct kiln_forest *forest, struct kiln_ready *ready);

#endif /* KILN_STORE_READY_H */

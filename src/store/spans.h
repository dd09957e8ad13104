/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans - the blocks of a tenant by the time they cover.
 *
 * Finds the blocks that cover a moment without looking at the others: an interval tree, laid out in
 * one array.  It is built anew when the catalog changes.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_SPANS_H
#define KILN_STORE_SPANS_H

#include "store/block.h"

struct kiln_span {
    uint64_t min_ns, max_ns;
    uint64_t reach; /* the largest max_ns of the subtree whose root this is */
    struct kiln_block *block;
};

struct kiln_spans {
    struct kiln_span *all; /* by min_ns */
    uint32_t n;
};

/* Replaces the contents; blocks are borrowed.  On failure the tree is empty. */
KILN_CHECK int kiln_spans_set(struct kiln_spans *spans, struct kiln_block *const *blocks,
                              uint32_t n);
void kiln_spans_done(struct kiln_spans *spans);

/* Calls `each` for every block with min_ns <= time_ns <= max_ns, until it returns other than 0,
 * which is returned. */
int kiln_spans_at(const struct kiln_spans *spans, uint64_t time_ns,
                  int (*each)(void *context, struct kiln_block *block), void *context);

#endif /* KILN_STORE_SPANS_H */

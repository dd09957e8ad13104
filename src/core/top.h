/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top - each frame once, with what it spent itself and what it and its callees spent; and the
 * callers and callees of one frame (the sandwich).
 *
 * A frame that occurs several times in a stack (recursion) counts once in the total.
 * Threads: plain results, owned by the caller.
 */
#ifndef KILN_CORE_TOP_H
#define KILN_CORE_TOP_H

#include "core/tree.h"
#include "core/view.h"

struct kiln_top_row {
    uint32_t frame; /* into view->frames */
    int64_t self;
    int64_t total;
    double count_self, count_total; /* observations behind them */
};

enum kiln_top_order { KILN_TOP_BY_SELF, KILN_TOP_BY_TOTAL, KILN_TOP_BY_NAME };

/* All frames, sorted (ties by total, then name).  The caller frees *ret_rows with kiln_free(). */
KILN_CHECK int kiln_top(const struct kiln_view *view, enum kiln_top_order order,
                        struct kiln_top_row **ret_rows, uint32_t *ret_n);

/*
 * The sandwich of the frames whose name matches: two trees, one upwards (callers, inverted) and one
 * downwards (callees), both rooted at the matching frames.  Either may be NULL.
 */
KILN_CHECK int kiln_sandwich(const struct kiln_view *view, struct kiln_str name_regex,
                             const struct kiln_tree_opts *opts, struct kiln_tree **ret_callers,
                             struct kiln_tree **ret_callees, struct kiln_err *err);

#endif /* KILN_CORE_TOP_H */

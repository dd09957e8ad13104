/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_tree - flames and their diffs as views and trees, for whoever draws those (codec/svg,
 * codec/text_tree) or counts by them (core/top, core/graph).
 *
 * Observations are not known by node; each has its share of all.
 * Threads: as views and trees.
 */
#ifndef KILN_CORE_FLAME_TREE_H
#define KILN_CORE_FLAME_TREE_H

#include "core/flame.h"
#include "core/flame_diff.h"
#include "core/tree.h"

/* What a flame itself does not say. */
struct kiln_flame_facts {
    struct kiln_type type;
    double count, count_left; /* observations; the second of a diff's left side */
    uint64_t time_ns, duration_ns;
    uint32_t n_profiles;
    size_t memory_bytes; /* of the view; 0: 1 GiB */
};

/* A view of a flame with nodes, which must outlive it; its batch is NULL.  kiln_view_free(). */
KILN_CHECK int kiln_flame_view_new(const struct kiln_flame *flame,
                                   const struct kiln_flame_facts *facts,
                                   struct kiln_view **ret_view, struct kiln_err *err);

/* The right side of a diff as a view, and both as a tree of which it is the new view (left values
 * scaled).  The diff must outlive both, the view the tree. */
KILN_CHECK int kiln_flame_diff_view_new(const struct kiln_flame_diff *diff,
                                        const struct kiln_flame_facts *facts,
                                        struct kiln_view **ret_view, struct kiln_err *err);
KILN_CHECK int kiln_flame_diff_tree_new(const struct kiln_flame_diff *diff,
                                        const struct kiln_view *view,
                                        const struct kiln_flame_facts *facts,
                                        const struct kiln_tree_opts *opts,
                                        struct kiln_tree **ret_tree, struct kiln_err *err);

/* What is wanted of the flame of a view. */
struct kiln_flame_wants {
    uint32_t nodes_max; /* the root and "other" not counted; 0: no tree */
    bool functions;
    size_t memory_bytes; /* 0: 1 GiB */
};

/* The way back: a view as a flame, which borrows its texts from the view. */
KILN_CHECK int kiln_flame_of_view(const struct kiln_view *view,
                                  const struct kiln_flame_wants *wants,
                                  struct kiln_flame **ret_flame, struct kiln_err *err);

#endif /* KILN_CORE_FLAME_TREE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - a view as a call tree: every node is a frame in the context of its callers.
 *
 * Nodes lie in preorder: a node's subtree follows it directly, and nodes[0] is the root, which has
 * no frame.  Children are in the order asked for.  A tree of two views (a diff) has numbers for
 * both: `a` is the base, `b` what is compared with it; a plain tree uses `b` alone.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_CORE_TREE_H
#define KILN_CORE_TREE_H

#include "core/view.h"

#define KILN_TREE_ROOT UINT32_MAX /* the frame of the root */

struct kiln_tree_node {
    uint32_t frame;   /* into tree->frames, or KILN_TREE_ROOT */
    uint32_t parent;  /* node; the root's is itself */
    uint32_t subtree; /* nodes in the subtree, itself included: next sibling = this + subtree */
    uint32_t depth;   /* the root's is 0 */
    int64_t self_a, total_a;
    int64_t self_b, total_b;
    double count_a, count_b; /* observations behind the totals */
};

struct kiln_tree {
    const struct kiln_frame *frames; /* borrowed from the view, or owned */
    struct kiln_frame *owned_frames;
    struct kiln_tree_node *nodes;
    uint32_t n_frames, n_nodes, max_depth;
    uint32_t n_all; /* nodes before folding */
    bool is_diff;
};

enum kiln_tree_order {
    KILN_TREE_BY_VALUE, /* largest total first, then by name */
    KILN_TREE_BY_NAME,
};

struct kiln_tree_opts {
    enum kiln_tree_order order;
    bool from_leaf; /* callers below callees: the inverted tree */
    /*
     * Small nodes are folded: those beyond the nodes_max largest (0: no limit), and those below
     * this share of the total.  Each node that stays gets one last child "(other)" for what was
     * folded below it, so that its total is exact; those children are not counted in nodes_max.
     */
    uint32_t nodes_max;
    double min_share;
    size_t memory_bytes; /* 0: 1 GiB */
};

/* A plain tree.  The view must outlive it. */
KILN_CHECK int kiln_tree_new(const struct kiln_view *view, const struct kiln_tree_opts *opts,
                             struct kiln_tree **ret_tree, struct kiln_err *err);

/*
 * A tree over two views, frames matched by name.  Both views must outlive it.  Values of
 * `a` are multiplied by `scale_a` (normalisation), rounded at the leaves so that sums stay sums.
 */
KILN_CHECK int kiln_tree_new_diff(const struct kiln_view *a, const struct kiln_view *b,
                                  double scale_a, const struct kiln_tree_opts *opts,
                                  struct kiln_tree **ret_tree, struct kiln_err *err);
void kiln_tree_free(struct kiln_tree *tree);

#endif /* KILN_CORE_TREE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_int - growing a tree path by path, for tree.c (whole views) and top.c (the sandwich).
 */
#ifndef KILN_CORE_TREE_INT_H
#define KILN_CORE_TREE_INT_H

#include "core/intern.h"
#include "core/tree.h"

/* A node while the tree grows: numbers are of the node itself until the tree is finished. */
struct kiln_twig {
    uint32_t frame, parent;
    int64_t self_a, total_a;
    int64_t self_b, total_b;
    double count_a, count_b;
};

/* A tree that grows.  twigs[0] is the root, and a parent comes before its children. */
struct kiln_grower {
    struct kiln_budget budget;
    struct kiln_intern children; /* twigs by parent and frame */
    struct kiln_twig *twigs;
    uint32_t *last; /* the twigs of the path that was added last */
    uint32_t *last_frames;
    uint32_t n, cap, last_cap, last_frames_cap, n_last;
};

/* What a path adds to its end, and to the totals on the way. */
struct kiln_weight {
    int64_t a, b;
    double count_a, count_b;
};

KILN_CHECK int kiln_grower_init(struct kiln_grower *grower, size_t memory_bytes);
void kiln_grower_done(struct kiln_grower *grower);

/* Adds a path of `n` frames from the root on; `step` 1 reads them forwards from `path`, -1
 * backwards. */
KILN_CHECK int kiln_grower_add(struct kiln_grower *grower, const uint32_t *path, uint32_t n,
                               int step, const struct kiln_weight *weight);

/*
 * Sums up, folds, sorts and lays out the tree.  `frames` are borrowed; a tree that needs another
 * one for what was folded owns a copy.
 */
KILN_CHECK int kiln_grower_finish(struct kiln_grower *grower, const struct kiln_frame *frames,
                                  uint32_t n_frames, const struct kiln_tree_opts *opts,
                                  struct kiln_tree **ret_tree);

#endif /* KILN_CORE_TREE_INT_H */

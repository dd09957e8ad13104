/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_int - a tree out of weighted paths, for tree.c (whole views) and top.c (the sandwich).
 */
#ifndef KILN_CORE_TREE_INT_H
#define KILN_CORE_TREE_INT_H

#include "base/mem.h"
#include "core/tree.h"

struct kiln_tree_path {
    const uint32_t *frames; /* from the root on */
    uint32_t n;
    uint32_t weight; /* index */
};

/* What a path adds to its end, and to the totals on the way. */
struct kiln_tree_weight {
    int64_t a, b;
    double count_a, count_b;
};

/* The paths of a tree to be. */
struct kiln_grower {
    struct kiln_budget budget;
    struct kiln_tree_path *paths;
    struct kiln_tree_weight *weights;
    uint32_t *pool; /* frames of paths that could not be borrowed */
    uint32_t n, n_pool, paths_cap, weights_cap, pool_cap;
    bool two_sided; /* something has a weight of `a` */
};

/* Room for `n_paths` paths, of which `n_copied` frames have to be copied.  0 bytes: 1 GiB. */
KILN_CHECK int kiln_grower_init(struct kiln_grower *grower, size_t memory_bytes, uint64_t n_paths,
                                uint64_t n_copied);
void kiln_grower_done(struct kiln_grower *grower);

/* Adds a path; its frames must stay until the tree is made. */
void kiln_grower_add(struct kiln_grower *grower, const uint32_t *frames, uint32_t n,
                     const struct kiln_tree_weight *weight);
/* Adds a path of frames that are copied, mapped (unless `map` is NULL) and reversed if asked. */
void kiln_grower_copy(struct kiln_grower *grower, const struct kiln_tree_path *path,
                      const uint32_t *map, bool reversed, const struct kiln_tree_weight *weight);

/*
 * Makes the tree.  `frames` are borrowed; a tree that needs another one for what was folded owns a
 * copy of them.
 */
KILN_CHECK int kiln_grower_finish(struct kiln_grower *grower, const struct kiln_frame *frames,
                                  uint32_t n_frames, const struct kiln_tree_opts *opts,
                                  struct kiln_tree **ret_tree);

#endif /* KILN_CORE_TREE_INT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_diff - two flames laid over each other: every node and function with both its numbers, and
 * whether sampling noise alone could explain the difference.
 *
 * Nodes are aligned by the names from the root.  Where a side has folded something ("other") below
 * a node, a child that only the other side has may be in there: it joins "other" on its own side
 * too, unless it is larger than all that was folded.  So nothing looks new, or gone, that was only
 * too small to be kept; whoever wants more detail gives flames with more nodes, and cuts here.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_CORE_FLAME_DIFF_H
#define KILN_CORE_FLAME_DIFF_H

#include "base/err.h"
#include "core/flame.h"

struct kiln_flame_pair {
    int64_t left, right;
};

struct kiln_flame_diff_node {
    uint32_t name, parent, end, depth; /* as kiln_flame_node */
    struct kiln_flame_pair self, total;
};

struct kiln_flame_diff_function {
    uint32_t name;
    struct kiln_flame_pair self, total;
    double self_change, total_change; /* right - left, left scaled by `scale` */
    double self_noise, total_noise;   /* half-width of the 95 % interval of the change */
    bool self_is_noise, total_is_noise;
};

struct kiln_flame_diff_opts {
    double scale;                   /* of left values, for changes: 0: 1 */
    bool against_total;             /* `scale` makes both totals equal: shares are compared */
    double count_left, count_right; /* observations behind each */
    uint32_t nodes_max;             /* 0: all; those with the largest of both totals stay */
    size_t memory_bytes;            /* 0: 1 GiB */
};

struct kiln_flame_diff {
    struct kiln_flame_name *names;              /* [0]: "total" */
    struct kiln_flame_diff_node *nodes;         /* NULL unless both flames have nodes */
    struct kiln_flame_diff_function *functions; /* real changes first, the largest before; NULL
                                                   unless both flames have functions */
    uint32_t n_names, n_nodes, n_functions, other;
    struct kiln_flame_pair total;
    double scale, change, noise;
    struct kiln_budget budget;
    struct kiln_arena arena; /* texts are copied: the flames may go */
};

KILN_CHECK int kiln_flame_diff_new(const struct kiln_flame *left, const struct kiln_flame *right,
                                   const struct kiln_flame_diff_opts *opts,
                                   struct kiln_flame_diff **ret_diff, struct kiln_err *err);
void kiln_flame_diff_free(struct kiln_flame_diff *diff);

#endif /* KILN_CORE_FLAME_DIFF_H */

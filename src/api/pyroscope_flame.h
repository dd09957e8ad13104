/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyroscope_flame - flames in Pyroscope's encodings.
 *
 * A flame graph is a list of levels, each a flat list of boxes from left to right; a box is (x,
 * total, self, name), of a diff (x, total, self, x, total, self, name) for left and right.  x
 * counts from where the box before it ends.  names[0] is "total".
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_API_PYROSCOPE_FLAME_H
#define KILN_API_PYROSCOPE_FLAME_H

#include "base/json.h"
#include "base/leash.h"
#include "codec/pb.h"
#include "core/flame.h"
#include "core/flame_diff.h"
#include "core/tree.h"

struct kiln_box {
    struct {
        int64_t x, total, self;
    } side[2];
    uint32_t name;
};

struct kiln_levels {
    struct kiln_box *boxes; /* level by level */
    uint32_t *first;        /* of each level, and one past the last */
    uint32_t n_levels;
    uint32_t n_sides;             /* 1, of a diff 2 */
    const struct kiln_str *names; /* borrowed from the flame */
    uint32_t n_names;
    int64_t total, max_self;
    int64_t ticks[2]; /* of a diff: the totals of both sides */
    struct kiln_leash *leash;
    size_t memory; /* taken from it */
};

/* 0, -ENOMEM or KILN_E_LIMIT (of the leash).  What it is made of (with nodes) must outlive it. */
KILN_CHECK int kiln_levels_init(struct kiln_levels *levels, const struct kiln_flame *flame,
                                struct kiln_leash *leash);
KILN_CHECK int kiln_levels_init_diff(struct kiln_levels *levels, const struct kiln_flame_diff *diff,
                                     struct kiln_leash *leash);
/* Of a tree, or of a tree of two views: left is the base. */
KILN_CHECK int kiln_levels_init_tree(struct kiln_levels *levels, const struct kiln_tree *tree,
                                     struct kiln_leash *leash);
void kiln_levels_done(struct kiln_levels *levels);

/* The fields of FlameGraph and FlameGraphDiff. */
void kiln_levels_put(const struct kiln_levels *levels, struct kiln_pb_out *w);
/* "names", "levels", "numTicks", "maxSelf": the members of the older endpoints' flamebearer. */
void kiln_levels_put_flamebearer(const struct kiln_levels *levels, struct kiln_json_out *w);

/* The bytes of Pyroscope's TREE format. */
void kiln_tree_bytes_put(const struct kiln_flame *flame, struct kiln_pb_out *w);

#endif /* KILN_API_PYROSCOPE_FLAME_H */

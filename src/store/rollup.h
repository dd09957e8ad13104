/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup - what a block adds up beforehand (docs/formats/block.md, "Roll-ups"): for each group of
 * series of one service, type and version the sums of functions by hour and day, exact, and call
 * trees of names by hour and day that are pruned to their largest nodes.
 *
 * A roll-up covers exactly its block: every observation of the group's series is in one hour and in
 * one day.  A block need not have any, and one that is damaged or too large to be read is no loss:
 * the samples say the same.
 *
 * Names are those of core/frame.h, told by a location and line of the block that has the name, and
 * by a hash, so that who adds up many blocks reads the texts of the first alone.
 *
 * Threads: one owner at a time; the block may be shared.
 */
#ifndef KILN_STORE_ROLLUP_H
#define KILN_STORE_ROLLUP_H

#include "base/arena.h"
#include "base/hash.h"
#include "store/block.h"

enum kiln_rollup_level { KILN_ROLLUP_HOURS, KILN_ROLLUP_DAYS, KILN_N_ROLLUP_LEVELS };

enum {
    KILN_ROLLUP_NODES = 65536,   /* of a tree at most */
    KILN_ROLLUP_SPANS_MAX = 1024 /* of a group and level */
};

/* When a roll-up is worth its bytes.  For tests alone: what is smaller makes more of them. */
struct kiln_rollup_limits {
    uint64_t rows_min;     /* of a group */
    uint64_t rows_name;    /* for each name of its service */
    uint64_t rows_each;    /* for each sum of a function that is written */
    uint64_t tree_rows;    /* of a span with a tree */
    uint64_t node_rows;    /* for each node of a tree */
    uint32_t nodes_min;    /* of a tree, if it has so many */
    uint32_t nodes_max;    /* likewise, up to KILN_ROLLUP_NODES */
    uint32_t nodes_coarse; /* of smaller trees beside it, a quarter and a thirty-second */
    uint64_t range_ns;     /* of a question that may use them */
    uint64_t hour_ns;
};
extern struct kiln_rollup_limits kiln_rollup_limits;

/* An hour or a day of a group. */
struct kiln_rollup_span {
    uint64_t start_ns, end_ns;    /* start <= t < end: of the clock, UTC */
    uint64_t first_ns, last_ns;   /* of its observations */
    int64_t total;                /* of values, in the unit of the type */
    uint64_t n_profiles;          /* whose first observation is in it */
    uint64_t n_continued;         /* that have something in it and in one before */
    uint64_t n_rows;              /* observations, as written */
    uint64_t n_time_set;          /* profiles that have the time they came */
    uint64_t count;               /* observations, as far as they can be known */
    uint64_t covered_ns;          /* by the profiles that begin in it, about */
    uint32_t first_tree, n_trees; /* of it: the largest first */
};

struct kiln_rollup_tree {
    uint32_t span;       /* of all spans of the group */
    uint32_t n_nodes;    /* with the root */
    int64_t error_bound; /* no node that is not in it is larger */
    uint64_t at;         /* its first node, among those of all trees of the group */
};

struct kiln_rollup_group {
    uint32_t *series; /* of the block, ascending */
    uint32_t n_series;
    uint64_t n_rows;
    uint64_t divisor;               /* of all values */
    struct kiln_rollup_span *spans; /* hours, then days; ascending each */
    struct kiln_rollup_tree *trees;
    uint32_t n_spans, n_hours, n_trees;
    uint32_t functions, nodes; /* sections and 1; 0: none */
};

struct kiln_rollup_name {
    uint64_t hash;
    uint32_t location; /* number of the block */
    uint32_t line;     /* of it; 0 where it has none */
};

struct kiln_rollup;

/*
 * The roll-ups of a service (its number in the block); NULL where it has none.  What is read is
 * charged to `budget`, which must live as long.
 */
KILN_CHECK int kiln_rollup_open(struct kiln_block *block, uint32_t service,
                                struct kiln_budget *budget, struct kiln_rollup **ret_rollup,
                                struct kiln_err *err);
void kiln_rollup_free(struct kiln_rollup *rollup);

const struct kiln_rollup_group *kiln_rollup_groups(const struct kiln_rollup *rollup, uint32_t *n);

/* Of all pages that the roll-ups of the service have. */
uint64_t kiln_rollup_bytes(const struct kiln_rollup *rollup);

/* The names of the service, by number. */
KILN_CHECK int kiln_rollup_names(struct kiln_rollup *rollup, const struct kiln_rollup_name **ret,
                                 uint32_t *ret_n, struct kiln_err *err);

/*
 * Adds up the sums of functions in the spans of a level that are marked (parallel to the spans of
 * the level) in `self` and `total`, which have a number for each name.  Sums saturate.
 */
KILN_CHECK int kiln_rollup_functions(struct kiln_rollup *rollup, uint32_t group,
                                     enum kiln_rollup_level level, const bool *wanted,
                                     int64_t *self, int64_t *total, struct kiln_err *err);

/* A tree in preorder; node 0 is the root, whose name means nothing. */
struct kiln_rollup_nodes {
    uint32_t *names;
    uint32_t *ends; /* the node behind the subtree */
    int64_t *self;
    int64_t *folded; /* the totals of children that are not here */
    uint32_t n;
    uint32_t cap_names, cap_ends, cap_self, cap_folded;
};
/* Reads a tree into `nodes`, which is used again and again, and freed with done. */
KILN_CHECK int kiln_rollup_tree(struct kiln_rollup *rollup, uint32_t group, uint32_t tree,
                                struct kiln_rollup_nodes *nodes, struct kiln_err *err);
void kiln_rollup_nodes_done(struct kiln_rollup *rollup, struct kiln_rollup_nodes *nodes);

/* Reads all roll-ups of a block and holds every number against what it belongs to. */
KILN_CHECK int kiln_rollup_verify(struct kiln_block *block, struct kiln_budget *budget,
                                  struct kiln_err *err);

/* The hash of a name.  On disk: never change it. */
static inline uint64_t kiln_rollup_hash(struct kiln_str name)
{
    return XXH3_64bits(name.ptr, name.len);
}

#endif /* KILN_STORE_ROLLUP_H */

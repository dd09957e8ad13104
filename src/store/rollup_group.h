/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup_group - the roll-ups of one service while they are made: between rollup_make.c, which adds
 * up, and rollup_write.c, which writes.
 *
 * Threads: as the writer.
 */
#ifndef KILN_STORE_ROLLUP_GROUP_H
#define KILN_STORE_ROLLUP_GROUP_H

#include "store/rollup_make.h"

/* An hour or day of the group at hand. */
struct kiln_rollup_summed {
    uint64_t number;   /* hours or days since 1970 */
    uint32_t first, n; /* of the order of runs */
    struct kiln_rollup_basis basis;
    int64_t total;
    size_t at; /* of the packed functions */
    uint32_t n_functions;
};

/* A tree that was written. */
struct kiln_rollup_planted {
    uint32_t span, n_nodes;
    uint64_t error_bound; /* divided */
};
#define KILN_ROLLUP_TREES_MAX (3 * KILN_N_ROLLUP_LEVELS * KILN_ROLLUP_SPANS_MAX)

struct kiln_rollup_work {
    struct kiln_block_writer *w;
    struct kiln_rollup_maker *m;
    struct kiln_budget *budget;
    const uint32_t *stacks; /* of the service, by number - 1 */
    uint32_t n_stacks, service;
    uint64_t service_rows;
    struct kiln_rollup_naming naming;
    struct kiln_keyed *keyed; /* runs by group and hour */
    uint32_t *order;          /* the same: their indexes alone */
    int64_t *sums;            /* by rank; all 0 between two spans */
    struct kiln_rollup_active active;
    struct kiln_rollup_drawn drawn;
    int64_t *self, *total;         /* by name */
    int64_t *day_self, *day_total; /* likewise, of the hours of a day so far */
    uint32_t *on_path;             /* by name: how often */
    uint32_t *path;                /* names from the root */
    uint32_t *ends;                /* by depth of locations: of the path before it */
    uint32_t n_path, depth;
    uint32_t cap_keyed, cap_order, cap_sums, cap_self, cap_total, cap_on_path, cap_path, cap_ends;
    uint32_t cap_day_self, cap_day_total;
    uint32_t n_written; /* groups */

    /* the group at hand */
    uint32_t first_run, end_run; /* of the order */
    uint64_t n_rows, divisor;
    struct kiln_rollup_summed spans[KILN_N_ROLLUP_LEVELS][KILN_ROLLUP_SPANS_MAX];
    uint32_t n_spans[KILN_N_ROLLUP_LEVELS];
    uint64_t n_functions[KILN_N_ROLLUP_LEVELS]; /* of all spans */
    struct kiln_buf packed[KILN_N_ROLLUP_LEVELS];

    /* the one whose functions and trees were written last */
    uint32_t last_group, last_first_run, last_end_run, last_n_spans[KILN_N_ROLLUP_LEVELS];
    uint64_t last_divisor;
    struct kiln_rollup_planted trees[KILN_ROLLUP_TREES_MAX];
    uint32_t n_trees;
};

/* Names all locations of the stacks, by the numbers of locations.  -ERANGE where there are more
 * than is worth it. */
KILN_CHECK int kiln_rollup_name_all(struct kiln_rollup_work *k);

/* Leaves the tree of a span in k->drawn. */
KILN_CHECK int kiln_rollup_span_tree(struct kiln_rollup_work *k,
                                     const struct kiln_rollup_summed *span, uint32_t nodes_max);

/* Writes the group at hand, with its functions and trees unless they are like those of the last
 * one; failures of the file stick to the writer. */
void kiln_rollup_write_group(struct kiln_rollup_work *k, bool is_like_last);
void kiln_rollup_write_names(struct kiln_rollup_work *k);

#endif /* KILN_STORE_ROLLUP_GROUP_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_int - the inside of a merge (store/engine.h): what each source gives, and the answer made
 * of all of them.
 *
 * A source is a forest (store/forest.h) with a sum for each of its stacks.  merge.c makes one of
 * each service of a block and of each head; a roll-up is one as well: its pruned tree as a forest,
 * its sums, and, since those of pruned functions would lie, function sums of its own (`functions`).
 *
 * Threads: one owner.
 */
#ifndef KILN_STORE_MERGE_INT_H
#define KILN_STORE_MERGE_INT_H

#include "core/flame.h"
#include "store/scan.h"

struct kiln_fund;
struct kiln_wide_names;

struct kiln_merge_function {
    uint32_t name; /* of the forest */
    int64_t self, total;
};

struct kiln_merge_source {
    struct kiln_forest *forest; /* a reference */
    const int64_t *upto;        /* n_stacks + 1, by rank: the sum of all stacks before it */
    int64_t *own_upto;          /* the same, if they are its own, */
    struct kiln_cached *ready;  /* else a reference to whose they are (store/ready.h) */
    uint32_t *names; /* by name of the forest: 1 + its number in the answer; 0: not there yet */
    /* Ready sums instead of those of the forest; NULL: none. */
    const struct kiln_merge_function *functions;
    uint32_t n_functions;
    bool is_rolled; /* a roll-up: its names are not its own (store/merge_roll.h) */
    const struct kiln_wide_names *wide_names; /* a summary: those of its forest (store/wide.h) */
};

/* A name of the answer. */
struct kiln_merge_name {
    const struct kiln_function_name *name;
    uint64_t hash;
    uint64_t in_path; /* kiln_node_name(); 0: not yet */
    int64_t self, total;
    uint32_t number; /* in the flame; 0: not there */
};

struct kiln_merging {
    struct kiln_fund *fund;
    struct kiln_budget budget;
    struct kiln_merge_source *sources;
    struct kiln_merge_name *names;
    struct kiln_intern index; /* of names */
    uint32_t n_sources, cap_sources, n_names, cap_names;
    uint32_t n_rolled_names; /* of all roll-ups together; 0: not yet theirs */
    int64_t cut_bound;       /* no node that the last tree lacks is larger; 0: it lacks none */
};

/*
 * Adds a source; takes `forest` and `sums` over, also on failure.  `sums` are by rank, with room
 * for one more.
 */
KILN_CHECK int kiln_merging_add(struct kiln_merging *m, struct kiln_forest *forest, int64_t *sums);
/* The same, of sums that were added up already, and may have functions. */
struct kiln_ready;
KILN_CHECK int kiln_merging_add_ready(struct kiln_merging *m, struct kiln_forest *forest,
                                      struct kiln_ready *ready);
/* Forgets all sources but the first `n`; before names were asked for. */
void kiln_merging_cut_back(struct kiln_merging *m, uint32_t n);
void kiln_merging_done(struct kiln_merging *m);

/* The number in the answer of a name of a source. */
KILN_CHECK int kiln_merging_new_name(struct kiln_merging *m, struct kiln_merge_source *source,
                                     uint32_t name);
static inline KILN_CHECK int kiln_merging_name(struct kiln_merging *m,
                                               struct kiln_merge_source *source, uint32_t name,
                                               uint32_t *ret)
{
    if (source->names[name] == 0) {
        int r = kiln_merging_new_name(m, source, name);

        if (r < 0)
            return r;
    }
    *ret = source->names[name] - 1;
    return 0;
}

/* The answer: a tree of at most `nodes_max` (0: none), functions. */
KILN_CHECK int kiln_merging_flame(struct kiln_merging *m, uint32_t nodes_max, bool functions,
                                  struct kiln_flame **ret_flame);
/* The same with functions in any order, and bounds: error_bound of nodes that are not in it, and in
 * functions_bound one for all functions where values may be negative, else 0. */
KILN_CHECK int kiln_merging_unsorted(struct kiln_merging *m, uint32_t nodes_max,
                                     struct kiln_flame **ret_flame);

/* ---- its parts ---- */

/* Adds up the functions of all sources, in m->names. */
KILN_CHECK int kiln_merging_functions(struct kiln_merging *m);
/* Those of a forest that have a sum, allocated. */
KILN_CHECK int kiln_merging_list(struct kiln_merging *m, const struct kiln_forest *forest,
                                 const int64_t *upto, struct kiln_merge_function **ret_list,
                                 uint32_t *ret_n);
/* Sums by rank, and room for one more, to what they come to before each. */
void kiln_merging_add_up(int64_t *sums, uint32_t n);
/* Fills flame->nodes. */
KILN_CHECK int kiln_merging_cut(struct kiln_merging *m, uint32_t nodes_max,
                                struct kiln_flame *flame);
/* The number of a name in the flame. */
KILN_CHECK int kiln_flame_name(struct kiln_merging *m, struct kiln_flame *flame, uint32_t name,
                               uint32_t *ret);
/* The same for the name of what was folded. */
KILN_CHECK int kiln_flame_other(struct kiln_flame *flame);

#endif /* KILN_STORE_MERGE_INT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_roll - roll-ups (store/rollup.h) in a merge: functions of all of them added up, and a
 * pruned tree each as a source.
 *
 * All of them share one table of names, found by the hashes that roll-ups have: the texts of a
 * block are read only for names that no block before it had.
 *
 * Threads: one owner.
 */
#ifndef KILN_STORE_MERGE_ROLL_H
#define KILN_STORE_MERGE_ROLL_H

#include "store/merge_int.h"
#include "store/rollup.h"

struct kiln_merge_rolls {
    struct kiln_merging *m; /* borrowed, like the next two */
    struct kiln_store *store;
    const struct kiln_question *q;
    uint32_t nodes_max; /* 0: no tree */
    bool functions;

    struct kiln_budget budget;
    struct kiln_arena arena; /* texts */
    struct kiln_intern index;
    uint64_t *ids;    /* by name, like all that follow: its hash in roll-ups; the first one is the
                         name of what was folded */
    uint64_t *hashes; /* base/hash.h */
    struct kiln_function_name *names;
    int64_t *self, *total;
    uint32_t *numbers; /* 1 + the number in the answer; 0: not there yet */
    struct kiln_merge_function *list;
    uint32_t n, cap_ids, cap_hashes, cap_names, cap_self, cap_total, cap_numbers, cap_list;

    /* of the roll-up at hand */
    uint32_t *name_of; /* by its names */
    uint32_t cap_name_of;
    int64_t *rolled_self, *rolled_total; /* by its names */
    uint32_t cap_rolled_self, cap_rolled_total;
    struct kiln_rollup_nodes nodes;

    /* of all */
    int64_t sum, error_bound;
    double count;
    uint32_t n_rolled;
};

void kiln_merge_rolls_init(struct kiln_merge_rolls *rolls, struct kiln_merging *m);
void kiln_merge_rolls_done(struct kiln_merge_rolls *rolls);

/* Forgets all that was added. */
void kiln_merge_rolls_restart(struct kiln_merge_rolls *rolls);

/* Adds one; on failure nothing is added. */
KILN_CHECK int kiln_merge_roll(struct kiln_merge_rolls *rolls,
                               const struct kiln_scan_rolled *rolled);
/* After the last one: everything is in the merge then, which must not outlive this. */
KILN_CHECK int kiln_merge_rolls_finish(struct kiln_merge_rolls *rolls);

#endif /* KILN_STORE_MERGE_ROLL_H */

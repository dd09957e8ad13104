/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census - which build ids the blocks and heads of a tenant refer to, which of them have locations
 * that could be named better (store/lacks.h), and what of a block is named worse than what came
 * later (store/book.h) would name it.
 *
 * Blocks never change: each is looked at once, by its dictionary alone, when somebody first asks;
 * what was found is kept with the block (block->names).  Only the names of its own build
 * ids make a block stale, and it stays so until it is rewritten with them.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_STORE_CENSUS_H
#define KILN_STORE_CENSUS_H

#include "store/book.h"
#include "store/dict.h"

struct kiln_census;
struct kiln_head;
struct kiln_store;
struct kiln_tenant;

/* The names of a block that would now be others: roll-ups that have one of them are of no use. */
struct kiln_stale {
    _Atomic uint32_t refs;
    bool all; /* there are too many to list */
    uint32_t n;
    uint64_t hashes[]; /* kiln_rollup_hash(), ascending */
};
void kiln_stale_unref(struct kiln_stale *stale); /* may be NULL */
bool kiln_stale_has(const struct kiln_stale *stale, uint64_t hash);

KILN_CHECK int kiln_census_new(struct kiln_book *book, struct kiln_census **ret_census);
void kiln_census_free(struct kiln_census *census); /* may be NULL */

/* What is looked at.  It is not counted as a question's: others find it done. */
struct kiln_census_look {
    struct kiln_store *store;
    struct kiln_tenant *tenant;
    struct kiln_block *block;
};

/*
 * The age of the names that count for a block: what was made of its names holds as long as it has
 * this age.  Blocks are looked at only where the tenant has names at all.
 */
KILN_CHECK int kiln_census_age(const struct kiln_census_look *look, uint64_t *ret_age,
                               struct kiln_err *err);
/* What of a block is stale, a reference; NULL: nothing. */
KILN_CHECK int kiln_census_stale(const struct kiln_census_look *look, struct kiln_stale **ret_stale,
                                 struct kiln_err *err);
/* Whether somebody found that something is, when he last looked. */
bool kiln_census_is_stale(struct kiln_tenant *tenant, const struct kiln_block *block);
/* When the names that count for a block last changed, by the clock that never jumps; 0: never, or
 * it was not looked at. */
uint64_t kiln_census_changed(const struct kiln_census_look *look);
bool kiln_census_is_looked_at(const struct kiln_census_look *look);

/* As kiln_engine_ops; a part of the blocks that nobody looked at is left for the next call. */
KILN_CHECK int kiln_census_unnamed(struct kiln_store *store, struct kiln_tenant *tenant,
                                   int (*each)(void *context, const struct kiln_unnamed *unnamed),
                                   void *context, struct kiln_err *err);
/* The symbols of a build id were dropped: its addresses are told again. */
void kiln_census_restart(struct kiln_census *census, struct kiln_str build_id);

/* Removes the symbols of build ids that nothing has referred to since a day before `now_ns`. */
KILN_CHECK int kiln_census_retire(struct kiln_store *store, struct kiln_tenant *tenant,
                                  uint64_t now_ns, struct kiln_err *err);

/* Calls `each` for every build id that something refers to; -EAGAIN: not all blocks were looked at.
 */
KILN_CHECK int kiln_census_used(struct kiln_store *store, struct kiln_tenant *tenant,
                                int (*each)(void *context, struct kiln_str build_id), void *context,
                                struct kiln_err *err);

#endif /* KILN_STORE_CENSUS_H */

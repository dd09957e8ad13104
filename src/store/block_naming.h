/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_naming - function names of a block's locations, for the forests (store/forest.h) of several
 * of its services: each location is named once for all of them, and a forest gets only the names
 * that its own stacks have.  So a forest costs what its service has, not what its block has.
 *
 * A query keeps one while it reads a block.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_BLOCK_NAMING_H
#define KILN_STORE_BLOCK_NAMING_H

#include "store/dict.h"
#include "store/forest.h"

struct kiln_forest_place;
struct kiln_block_naming;

/* In *naming, which may hold one already: of another block, or with names of another age
 * (store/census.h), it is replaced. */
KILN_CHECK int kiln_block_naming_open(const struct kiln_forest_place *place,
                                      struct kiln_block *block, uint64_t age,
                                      struct kiln_block_naming **naming, struct kiln_err *err);
void kiln_block_naming_free(struct kiln_block_naming *naming); /* may be NULL */

uint32_t kiln_block_naming_locations(const struct kiln_block_naming *naming);

/* Names that are asked for from now on become those of this forest. */
void kiln_block_naming_begin(struct kiln_block_naming *naming, struct kiln_forest *forest);

/* The names of a location, outermost first: appends their numbers in the forest to `names`, which
 * grows as by kiln_grow(). */
struct kiln_block_names_out {
    struct kiln_budget *budget;
    uint32_t *names;
    uint32_t n, cap;
};
KILN_CHECK int kiln_block_naming_get(struct kiln_block_naming *naming, uint32_t location,
                                     struct kiln_block_names_out *out);

#endif /* KILN_STORE_BLOCK_NAMING_H */

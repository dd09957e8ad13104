/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe - all that a sender said about a pprof beside its bytes, and what follows from it.
 *
 * The log keeps a pprof as it was received, and its recipe with it; following that gives the same
 * batch again, bit for bit.  Receivers make their batches by the same function.  Whatever depends
 * on the moment (times that were not given) is in the tags already.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_RECEIVERS_RECIPE_H
#define KILN_PIPELINE_RECEIVERS_RECIPE_H

#include "base/buf.h"
#include "pipeline/receivers/pyroscope_types.h"

enum { KILN_RECIPE_MAX = 64 << 10 }; /* bytes; what takes more is not kept as received */

/* All of it is borrowed. */
struct kiln_recipe {
    struct kiln_tags *tags;
    const struct kiln_type_config *names; /* of types, by which the family is found where the tags
                                             have none; NULL: then it has none */
    bool repairs_types;                   /* "alloc-size" means alloc_size */
};

/* Makes a batch of an uncompressed pprof, which the batch points into. */
KILN_CHECK int kiln_recipe_decode(const struct kiln_recipe *recipe, struct kiln_str content,
                                  struct kiln_builder *b, struct kiln_err *err);

/* Appends the recipe as bytes (recipe.c says which). */
KILN_CHECK int kiln_recipe_encode(const struct kiln_recipe *recipe, struct kiln_buf *out);
/* The same as kiln_recipe_decode(), by a recipe's bytes: for kiln_store_opts.follow. */
KILN_CHECK int kiln_recipe_follow(struct kiln_str recipe, struct kiln_str content,
                                  struct kiln_builder *b, struct kiln_err *err);

#endif /* KILN_PIPELINE_RECEIVERS_RECIPE_H */

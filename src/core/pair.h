/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair - the frames of two views as one table, matched by name: what a diff compares.
 *
 * The name alone decides: files and addresses move from build to build, and a function that moved
 * is still the same function to whoever compares.
 *
 * Threads: plain data.
 */
#ifndef KILN_CORE_PAIR_H
#define KILN_CORE_PAIR_H

#include "core/view.h"

struct kiln_pair {
    struct kiln_frame *frames; /* of b, then those that only a has; texts are the views' */
    uint32_t *map_a, *map_b;   /* frames of the views -> frames here */
    uint32_t n_frames;
};

/* Returns 0, KILN_E_LIMIT or -ENOMEM; on failure nothing needs to be done. */
KILN_CHECK int kiln_pair_init(struct kiln_pair *pair, const struct kiln_view *a,
                              const struct kiln_view *b);
void kiln_pair_done(struct kiln_pair *pair);

#endif /* KILN_CORE_PAIR_H */

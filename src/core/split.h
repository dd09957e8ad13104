/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split - one batch into several, each small enough to send.
 *
 * Parts follow the order of the batch and are as full as they can be.  A cut may go through a
 * resource, a scope, a profile, and through a sample with many observations: each part repeats the
 * heads of what it goes on with.  A profile's id is repeated, so that a merge puts its parts
 * together again; its original payload is not, it stays with the first of its parts.
 *
 * Threads: no state; the batch is only read.
 */
#ifndef KILN_CORE_SPLIT_H
#define KILN_CORE_SPLIT_H

#include "core/builder.h"

struct kiln_split_opts {
    uint64_t bytes_max;   /* of an encoded part (OTLP, uncompressed); 0: no limit */
    uint32_t samples_max; /* observations of a part; 0: no limit */
    uint32_t parts_max;   /* 0: 65,536 */
    uint32_t *left_out;   /* counts samples that are too large, which no part has; NULL: an error */
};

/*
 * Cuts a batch into parts within the limits.  Each part is a whole batch with only its own
 * dictionary; together they hold every observation once.  A single observation that is too large
 * for bytes_max, with all it needs, is an error (KILN_E_LIMIT) that says where it stands; or, where
 * they are counted, left out, and `err` says how large the first of them was.  The
 * caller unrefs the parts and frees *ret_parts with kiln_free().
 */
KILN_CHECK int kiln_split(const struct kiln_batch *batch, const struct kiln_split_opts *opts,
                          struct kiln_batch ***ret_parts, uint32_t *ret_n, struct kiln_err *err);

#endif /* KILN_CORE_SPLIT_H */

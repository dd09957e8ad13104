/* SPDX-License-Identifier: Apache-2.0 */
/*
 * concat - batches behind each other, as one: a dictionary for all of them, equal resources and
 * equal scopes of them once, and every profile and sample as it was.
 *
 * Nothing is added up (core/merge.h does that): what comes out has as many profiles, samples and
 * observations as went in, in the order in which they came.  Of two counts of dropped attributes
 * the larger stays.
 *
 * Everything is linear in the input.
 *
 * Threads: no state; the batches are only read.
 */
#ifndef KILN_CORE_CONCAT_H
#define KILN_CORE_CONCAT_H

#include "core/builder.h"

/* `limits` may be NULL. */
KILN_CHECK int kiln_concat(struct kiln_batch *const *batches, uint32_t n,
                           const struct kiln_limits *limits, struct kiln_batch **ret_batch,
                           struct kiln_err *err);

#endif /* KILN_CORE_CONCAT_H */

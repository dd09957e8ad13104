/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part - one scope of a batch as a batch of its own, with its resource and nothing else: what makes
 * one file, for formats that have no resources.
 *
 * Threads: no state; the batch is only read.
 */
#ifndef KILN_CORE_PART_H
#define KILN_CORE_PART_H

#include "base/err.h"
#include "core/batch.h"

KILN_CHECK int kiln_part_scope(const struct kiln_batch *batch, uint32_t resource, uint32_t scope,
                               struct kiln_batch **ret_part, struct kiln_err *err);
/* One profile of a scope, without its resource. */
KILN_CHECK int kiln_part_profile(const struct kiln_batch *batch, uint32_t scope, uint32_t profile,
                                 struct kiln_batch **ret_part, struct kiln_err *err);
/* Whether a scope has no sample. */
bool kiln_part_is_empty(const struct kiln_batch *batch, uint32_t scope);

#endif /* KILN_CORE_PART_H */

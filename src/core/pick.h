/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick - a batch without some of its profiles and samples.
 *
 * A profile that had samples and is left without goes too, and so does a scope or resource that is
 * left without a profile.  Dictionary entries that nothing refers to stay behind.
 *
 * Threads: no state; the batch is only read.
 */
#ifndef KILN_CORE_PICK_H
#define KILN_CORE_PICK_H

#include "core/builder.h"

/* 1 for each profile, and each sample, that goes. */
KILN_CHECK int kiln_pick(const struct kiln_batch *batch, const uint8_t *without_profiles,
                         const uint8_t *without_samples, struct kiln_batch **ret_batch,
                         struct kiln_err *err);

#endif /* KILN_CORE_PICK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep - what was sampled, added up: counts since the start, and the window until the next export.
 *
 * A helper thread empties the rings of all threads every 100 ms.  Counts (kind, reason, stack) are
 * for ever and never shrink, so that the difference of two snapshots is what happened between them,
 * for any number of readers.  The window also keeps links, labels and times apart, and is closed by
 * whoever exports.
 *
 * Batches have addresses and mappings with build ids, no names: inproc/out/names.h has those.
 * Values are whole numbers: what a fraction of a weight leaves over is carried to the next batch,
 * so that sums over time are right.
 *
 * Threads: from any of our own; everything here takes the keeper's lock for moments.
 */
#ifndef KILN_INPROC_KEEP_KEEP_H
#define KILN_INPROC_KEEP_KEEP_H

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "core/batch.h"
#include "inproc/thread/ring.h"

/* A snapshot. */
struct kiln_in_counts;

/* Empties the rings first. */
KILN_CHECK int kiln_in_keep_counts(struct kiln_in_counts **ret_counts);
void kiln_in_counts_free(struct kiln_in_counts *counts);

/* What a profile is made of: bits for `types`, 1u << enum kiln_in_kind. */
#define KILN_IN_TYPE(kind) (1u << KILN_IN_##kind)

/*
 * What happened between two snapshots (`from` NULL: since the start), as pprof has it: one profile
 * for each value of each kind in `types` (samples and cpu; contentions and delay; alloc_objects and
 * alloc_space...), in one scope for each kind.
 */
KILN_CHECK int kiln_in_keep_profile(const struct kiln_in_counts *from,
                                    const struct kiln_in_counts *to, uint32_t types,
                                    struct kiln_batch **ret_batch, struct kiln_err *err);

/* alloc_* since the start (or since `from`) and inuse_* now, in one scope. */
KILN_CHECK int kiln_in_keep_heap(const struct kiln_in_counts *from, struct kiln_batch **ret_batch,
                                 struct kiln_err *err);

/* Threads that are, by the stack they were last seen at. */
KILN_CHECK int kiln_in_keep_threads(struct kiln_batch **ret_batch, struct kiln_err *err);

/*
 * All that was sampled since the last call, with links, labels and times, and inuse_* and threads
 * as they are where `levels`; the resource is the process'.  Closes the window.
 */
KILN_CHECK int kiln_in_keep_window(bool levels, struct kiln_batch **ret_batch,
                                   struct kiln_err *err);

/* Empties the rings now. */
void kiln_in_keep_drain(void);

#endif /* KILN_INPROC_KEEP_KEEP_H */

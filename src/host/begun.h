/* SPDX-License-Identifier: Apache-2.0 */
/*
 * begun - waits that have begun: the stack of a thread, kept until it is known how long it
 * waited.
 *
 * Where the kernel has no hook in the thread that runs again, a wait comes as two records
 * (KILN_RECORD_BEGINS, KILN_RECORD_ENDS).  A thread has one wait at a time: a second one that
 * begins takes the place of the first, whose end was lost.  Beyond the bound the oldest goes
 * (counted).
 *
 * Threads: one owner.
 */
#ifndef KILN_HOST_BEGUN_H
#define KILN_HOST_BEGUN_H

#include "host/gather.h"

struct kiln_begun;

/* `bytes_max`: what may be kept; 0: 4 MiB. */
KILN_CHECK int kiln_begun_new(size_t bytes_max, struct kiln_begun **ret_begun);
void kiln_begun_free(struct kiln_begun *begun);

/* Copies the sample, with its frames. */
KILN_CHECK int kiln_begun_add(struct kiln_begun *begun, const struct kiln_record *record,
                              const struct kiln_gather_sample *sample);
/*
 * The wait that this record ends: what was begun, valid until the next call; NULL: nothing was, or
 * another one.
 */
const struct kiln_gather_sample *kiln_begun_take(struct kiln_begun *begun,
                                                 const struct kiln_record *record);

size_t kiln_begun_bytes(const struct kiln_begun *begun);
/* Those that were never ended, or had no room. */
uint64_t kiln_begun_lost(const struct kiln_begun *begun);

#endif /* KILN_HOST_BEGUN_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sideband_int - one record of perf's, read.
 *
 * Threads: no state.
 */
#ifndef KILN_HOST_SIDEBAND_INT_H
#define KILN_HOST_SIDEBAND_INT_H

#include <stddef.h>

#include "host/sideband.h"

enum { KILN_SIDEBAND_TIME = 16 }; /* of each record, before its end: when it was */

/*
 * Reads a record of `size` bytes with its header, as the kernel wrote it; its texts end in NUL in
 * the record itself.  1: it is an event; 0: it is none that we look at, or not a whole one.
 */
int kiln_sideband_parse(const void *record, size_t size, struct kiln_event *ret_event);

/* The bytes from `position` on in a ring, which `size` (a power of two) is the length of. */
void kiln_sideband_copy(const uint8_t *ring, uint64_t size, uint64_t position, void *to,
                        size_t length);

#endif /* KILN_HOST_SIDEBAND_INT_H */

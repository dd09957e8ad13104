/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out - the thread that everything leaves by: every interval it closes the window (keep/keep.h),
 * prepares it (prepare.h), writes files (files.h) and sends it to the receiver (call.h).
 *
 *   where to     OTLP's endpoint where one is stated; else the socket of a Kiln on this host
 *                (KILN_SOCKET, /run/kiln/kiln.sock) where it is; else nowhere
 *   away         what cannot be sent waits, KILN_IN_QUEUE_BYTES of it at most, the oldest goes
 *                first; tries are 0.5 s apart, then twice as long each time up to 30 s, or as long
 *                as the receiver says
 *   at the end   one more window, for at most a second (0.2 s where the receiver was away)
 *
 * The program waits for none of it but kiln_flush() and its own end.
 *
 * Threads: start, stop and forked as inproc/start.h says; flush from anywhere.
 */
#ifndef KILN_INPROC_OUT_OUT_H
#define KILN_INPROC_OUT_OUT_H

#include <stdint.h>

#include "base/attr.h"
#include "inproc/start.h"

enum {
    KILN_IN_QUEUE_BYTES = 8 << 20,
    KILN_IN_REQUEST_BYTES = 4 << 20, /* before gzip; a larger window is split */
};

/* What went out so far, and what did not. */
struct kiln_in_out_counts {
    uint64_t requests, bytes; /* that the receiver has taken */
    uint64_t refused;         /* requests it does not want */
    uint64_t rejected;        /* profiles of those it took */
    uint64_t dropped;         /* requests that waited for too long */
    uint64_t tries;           /* that had no answer, or were put off */
};
void kiln_in_out_counts(struct kiln_in_out_counts *ret_counts);

#endif /* KILN_INPROC_OUT_OUT_H */

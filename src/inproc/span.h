/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span - which span the thread works for, as its samples tell it.
 *
 * Threads: of the thread that asks; in handlers of signals too.
 */
#ifndef KILN_INPROC_SPAN_H
#define KILN_INPROC_SPAN_H

#include <stdint.h>

/* Fills both where the thread works for a span, and leaves them alone where not. */
void kiln_in_span_now(uint8_t trace[16], uint8_t span[8]);

#endif /* KILN_INPROC_SPAN_H */

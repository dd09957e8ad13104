/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stretch - for how long something was sampled, where it is switched on and off: what was found in
 * fifteen seconds of five minutes is a profile of fifteen seconds.
 *
 * Threads: one at a time.
 */
#ifndef KILN_INPROC_KEEP_STRETCH_H
#define KILN_INPROC_KEEP_STRETCH_H

#include <stdbool.h>
#include <stdint.h>

struct kiln_in_stretch {
    uint64_t first_ns; /* when it was on first, since it was asked; 0: it was not */
    uint64_t on_ns;    /* since when it is on; 0: it is not */
    uint64_t sum_ns;   /* for how long it was on before */
};

/* Times are those of one clock that does not go back. */
void kiln_in_stretch_note(struct kiln_in_stretch *stretch, bool on, uint64_t now_ns);

/* For how long it was on since this was asked before, and how long ago it began; begins anew. */
uint64_t kiln_in_stretch_take(struct kiln_in_stretch *stretch, uint64_t now_ns,
                              uint64_t *ret_ago_ns);

#endif /* KILN_INPROC_KEEP_STRETCH_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin - waiting for a lock that is held for moments, on paths that must not wait for ever: first
 * in place, then by offering the processor to whoever has it, then not at all.
 *
 *   for (unsigned turn = 0; turn < KILN_IN_SPIN_TURNS; turn++) {
 *       if (... it is free ...)
 *           return true;
 *       kiln_in_spin(turn);
 *   }
 *   return false;
 *
 * Threads: from anywhere, handlers of signals included.  errno is kept.
 */
#ifndef KILN_INPROC_SAMPLE_SPIN_H
#define KILN_INPROC_SAMPLE_SPIN_H

#include <sched.h>

enum { KILN_IN_SPIN_IN_PLACE = 128, KILN_IN_SPIN_TURNS = 192 };

static inline void kiln_in_spin(unsigned turn)
{
    if (turn >= KILN_IN_SPIN_IN_PLACE)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

#endif /* KILN_INPROC_SAMPLE_SPIN_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes one thread: a counter, and a futex to wait for it to change.
 *
 * Unlike a condition variable it can be rung in a signal handler and needs no mutex.  errno stays
 * as it is, and waiting is no cancellation point.  A bell of all zeroes is ready for use.
 *
 *   uint32_t rung = atomic_load(&bell.rung);
 *   while (!is_done() && kiln_in_bell_wait(&bell, rung, &until))
 *       rung = atomic_load(&bell.rung);
 *
 * Threads: from any, signal handlers included.
 */
#ifndef KILN_INPROC_THREAD_BELL_H
#define KILN_INPROC_THREAD_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct kiln_in_bell {
    _Atomic uint32_t rung; /* how often */
};

/* Waits until the bell has been rung more often than `rung`; it may return early.  `until` is a
 * time of CLOCK_MONOTONIC.  Returns false if that time came first. */
bool kiln_in_bell_wait(struct kiln_in_bell *bell, uint32_t rung, const struct timespec *until);
void kiln_in_bell_ring(struct kiln_in_bell *bell);

#endif /* KILN_INPROC_THREAD_BELL_H */

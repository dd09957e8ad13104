/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latch - a mutex and a condition of one word each, on the kernel's futex.
 *
 * The C library's own leave the atomic instructions out where it believes the program to have one
 * thread (inproc/thread/single.h), which is not the number of those that meet here.  The linker
 * leads our own calls of those here (inproc/hook/own.c).
 *
 * All zeroes is a good beginning of both.  errno stays as it is; nothing is a point of
 * cancellation.
 *
 * Threads: from any; in handlers of signals bells alone may be rung and heard.
 */
#ifndef KILN_INPROC_THREAD_LATCH_H
#define KILN_INPROC_THREAD_LATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* 0: free, 1: taken, 2: taken, and somebody may wait. */
struct kiln_in_latch {
    _Atomic uint32_t word;
};

void kiln_in_latch_take(struct kiln_in_latch *latch);
bool kiln_in_latch_try(struct kiln_in_latch *latch);
void kiln_in_latch_give(struct kiln_in_latch *latch);

struct kiln_in_bell {
    _Atomic uint32_t rung; /* how often */
};

/* Waits, without the latch, until it is rung; it may return for no reason.  `until` is a time of
 * CLOCK_MONOTONIC, or NULL.  False: it came first. */
bool kiln_in_bell_wait(struct kiln_in_bell *bell, struct kiln_in_latch *latch,
                       const struct timespec *until);
/* The same without a latch, until it has been rung more often than `rung`. */
bool kiln_in_bell_hear(struct kiln_in_bell *bell, uint32_t rung, const struct timespec *until);
/* For `most` of those that wait. */
void kiln_in_bell_ring(struct kiln_in_bell *bell, int most);

#endif /* KILN_INPROC_THREAD_LATCH_H */

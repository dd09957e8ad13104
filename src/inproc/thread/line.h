/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line - what a thread has at hand without a call: one cache line of its own storage, at a fixed
 * distance from the thread pointer.
 *
 * A new thread has all zeroes, so that its first allocation takes the slow path.
 *
 * Threads: each has its own; handlers of signals share the one of the thread they interrupt.
 */
#ifndef KILN_INPROC_THREAD_LINE_H
#define KILN_INPROC_THREAD_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct kiln_in_thread;
struct kiln_in_visit;

struct kiln_in_line {
    int64_t alloc_left;            /* bytes until the next sampled allocation */
    struct kiln_in_thread *thread; /* NULL until the first slow path */
    uint32_t hushed;               /* > 0: this library is at work here, hooks pass through */
    uint32_t missed;      /* ticks of the CPU clock that came meanwhile: the next one counts them */
    uint64_t alloc_mean;  /* by which alloc_left was drawn; 0: it was not (inproc/sample/alloc.c) */
    bool alloc_cut;       /* the distance is longer than alloc_left says */
    bool narrow;          /* its alternate stack is too small (inproc/sample/narrow.h) */
    uint16_t live_locked; /* bucket + 1 (inproc/sample/live.c); 0: none */
    uint32_t forking;     /* it has the keeper's lock, for a fork (inproc/keep/keep.c) */
    uint64_t wait_random; /* which waits are told, by chance; 0: no number yet */
    struct kiln_in_visit *visit; /* the same, for as long as a frame is there (visit.h) */
};

extern _Thread_local struct kiln_in_line kiln_in_line
    __attribute__((tls_model("initial-exec"), aligned(64)));

#endif /* KILN_INPROC_THREAD_LINE_H */

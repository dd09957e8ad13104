/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the time, on hook paths too: a call into the vDSO.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_CLOCK_H
#define KILN_INPROC_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t kiln_in_clock_ns(clockid_t clock)
{
    struct timespec now = {0};

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t kiln_in_now_ns(void)
{
    return kiln_in_clock_ns(CLOCK_MONOTONIC);
}

#endif /* KILN_INPROC_CLOCK_H */

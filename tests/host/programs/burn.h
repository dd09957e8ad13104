/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burn - what the programs share: a loop that costs one cycle a turn whoever runs it, so that
 * shares of time are known, and functions that stay functions.
 *
 * A program runs for as many seconds as its first argument says (1 without), and prints nothing.
 */
#ifndef KILN_TESTS_HOST_PROGRAMS_BURN_H
#define KILN_TESTS_HOST_PROGRAMS_BURN_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#ifdef __cplusplus
#define KEPT extern "C" __attribute__((noinline, used))
#else
#define KEPT __attribute__((noinline, noclone, used))
#endif

/* A call followed by this is no tail call, and its caller stays on the stack. */
#define STAY __asm__ volatile("" ::: "memory")

/* Turns that take something like a tenth of a millisecond. */
enum { TURN = 300000 };

static inline __attribute__((always_inline)) void spin(uint64_t turns)
{
    for (; turns > 0; turns--)
        __asm__ volatile("" : "+r"(turns));
}

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t end_ns(int argc, char **argv)
{
    return now_ns() + (uint64_t)((argc > 1 ? strtod(argv[1], NULL) : 1) * 1e9);
}

#endif

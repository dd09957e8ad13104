/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burn - what the programs share: a loop that costs one cycle a turn whoever runs it, so that
 * shares of time are known, and functions that stay functions.
 *
 * A program burns as many seconds of CPU time as its first argument says (1 without), and prints
 * nothing: how often it is met by samples does not depend on what else the machine does.
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

/*
 * Turns of anything from half to one and a half of these, another number each time: what repeats in
 * just the rhythm of the samples is met in the same place again and again.
 */
static inline uint64_t about(uint64_t turns)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return turns / 2 + turns * (state >> 40) / (1u << 24);
}

static inline __attribute__((always_inline)) uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t cpu_ns(void)
{
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline uint64_t span_ns(int argc, char **argv)
{
    return (uint64_t)((argc > 1 ? strtod(argv[1], NULL) : 1) * 1e9);
}

/* Of CPU time. */
static inline uint64_t end_ns(int argc, char **argv)
{
    return cpu_ns() + span_ns(argc, argv);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - what time it is, and a clock that tests can set.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_BASE_CLOCK_H
#define KILN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define KILN_NS_PER_S  UINT64_C(1000000000)
#define KILN_NS_PER_MS UINT64_C(1000000)

static inline uint64_t kiln_timespec_ns(struct timespec t)
{
    return (uint64_t)t.tv_sec * KILN_NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline struct timespec kiln_timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / KILN_NS_PER_S), (long)(ns % KILN_NS_PER_S)};
}

/* Unix time, and time since some start that never jumps, in nanoseconds. */
uint64_t kiln_clock_unix_ns(void);
uint64_t kiln_clock_mono_ns(void);
/* Time since the machine booted, sleep included. */
uint64_t kiln_clock_boot_ns(void);

/* For tests: Unix time stands still at `unix_ns` from now on; 0: it runs again. */
void kiln_clock_set(uint64_t unix_ns);

#endif /* KILN_BASE_CLOCK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - what time it is, and a clock that tests can set.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_BASE_CLOCK_H
#define KILN_BASE_CLOCK_H

#include <stdint.h>

#define KILN_NS_PER_S  UINT64_C(1000000000)
#define KILN_NS_PER_MS UINT64_C(1000000)

/* Unix time, and time since some start that never jumps, in nanoseconds. */
uint64_t kiln_clock_unix_ns(void);
uint64_t kiln_clock_mono_ns(void);

/* For tests: Unix time stands still at `unix_ns` from now on; 0: it runs again. */
void kiln_clock_set(uint64_t unix_ns);

#endif /* KILN_BASE_CLOCK_H */

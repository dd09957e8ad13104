/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look - one look at memory that other threads write, compared with a number: a single instruction
 * on x86-64, where compilers make two of an atomic load and a comparison.  Hooks count them.
 *
 * Threads: from anywhere; relaxed.
 */
#ifndef KILN_INPROC_LOOK_H
#define KILN_INPROC_LOOK_H

#include <stdbool.h>
#include <stdint.h>

static inline bool kiln_in_is_zero(const uint8_t *at)
{
#if defined(__x86_64__)
    bool zero;

    __asm__ volatile("cmpb $0, %[at]" : "=@cce"(zero) : [at] "m"(*at));
    return zero;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED) == 0;
#endif
}

static inline bool kiln_in_is_zero_int(const int *at)
{
#if defined(__x86_64__)
    bool zero;

    __asm__ volatile("cmpl $0, %[at]" : "=@cce"(zero) : [at] "m"(*at));
    return zero;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED) == 0;
#endif
}

#endif /* KILN_INPROC_LOOK_H */

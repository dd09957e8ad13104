/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc - which allocations are sampled, and what becomes of them.
 *
 * Hooks count down (kiln_in_alloc_passes), hand the call on, and come here when the count has run
 * out, after the block was made and before the program has it; and before a block is freed whose
 * address the filter knows.
 *
 * Allocations of no bytes are never sampled: an instruction of every call would be their price.
 *
 * Threads: from anywhere.  errno is kept.
 */
#ifndef KILN_INPROC_SAMPLE_ALLOC_H
#define KILN_INPROC_SAMPLE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inproc/thread/line.h"

/*
 * Counts down.  False: the count has run out, below zero, and kiln_in_alloc_made() must follow, or
 * kiln_in_alloc_begins(); where that is left out by a jump, the next call does not pass either.  On
 * x86-64 it is one instruction on memory and one jump, which compilers do not find by themselves.
 */
static inline bool kiln_in_alloc_passes(size_t size)
{
    bool below;

#if defined(__x86_64__)
    __asm__ volatile("subq %[need], %[left]"
                     : [left] "+m"(kiln_in_line.alloc_left), "=@ccs"(below)
                     : [need] "r"(size));
#else
    kiln_in_line.alloc_left = (int64_t)((uint64_t)kiln_in_line.alloc_left - size);
    below = kiln_in_line.alloc_left < 0;
#endif
    return __builtin_expect(!below, 1);
}

/* The block of the call that did not pass. */
void kiln_in_alloc_made(void *block, size_t size);

/*
 * Of a call that did not pass: the count is as it was while the allocator is at work, which may
 * fail, throw, or be left by a jump; then the same once more.
 */
static inline void kiln_in_alloc_begins(size_t size)
{
    kiln_in_line.alloc_left = (int64_t)((uint64_t)kiln_in_line.alloc_left + size);
}

static inline void kiln_in_alloc_ends(void *block, size_t size)
{
    if (block && !kiln_in_alloc_passes(size))
        kiln_in_alloc_made(block, size);
}

/* The block is about to be freed. */
void kiln_in_alloc_freed(void *block);

/* Around realloc(): `mark` is what the first returns, 0 where nobody need be told of the end. */
uint64_t kiln_in_alloc_moving(void *block);
void kiln_in_alloc_moved(void *block, uint64_t mark);

/* Bytes between two samples, now; the base is among the settings. */
uint64_t kiln_in_alloc_mean(void);

#endif /* KILN_INPROC_SAMPLE_ALLOC_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places - where sampled blocks lie.
 *
 * Hooks ask the allocator for them at multiples of 1 KiB (hook/place.h), where few others are: of
 * nearly every block free() knows by one look at its address that nobody need be told.  Blocks that
 * the C library has from the kernel alone begin 16 bytes behind a page: they are at a place too.
 *
 * Some are elsewhere, where the allocator or the program wanted them.  Those are counted, and while
 * there are any each address is taken for a place: then the filter alone tells them apart.
 *
 * One word is both, so that it changes at once: the lowest 16 bits are those that are 0 in the
 * address of a place, the others are the count.
 *
 * Threads: asking from anywhere; counting is sample/live.c's.
 */
#ifndef KILN_INPROC_SAMPLE_PLACES_H
#define KILN_INPROC_SAMPLE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "inproc/look.h"

enum { KILN_IN_PLACE_STEP = 1024, KILN_IN_PLACE_BITS = (KILN_IN_PLACE_STEP - 1) & ~16 };

extern uint64_t kiln_in_places __attribute__((visibility("hidden")));

/* Whether it lies at one. */
static inline bool kiln_in_is_placed(const void *address)
{
    return !((uintptr_t)address & KILN_IN_PLACE_BITS);
}

/* Whether a sampled block may lie there, now. */
static inline bool kiln_in_is_place(const void *address)
{
    return kiln_in_has_none_of(&kiln_in_places, (uint16_t)(uintptr_t)address);
}

/* A block that may be elsewhere: before the program has it, and after it is none any more. */
void kiln_in_places_add(uint64_t address);
void kiln_in_places_remove(uint64_t address);

#endif /* KILN_INPROC_SAMPLE_PLACES_H */

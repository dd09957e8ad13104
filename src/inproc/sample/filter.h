/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter - whether an address may be one that free() must tell us of: a byte for each hash, which
 * counts the addresses that have it.  0 is certain.
 *
 * What free() reads is one word: where the bytes begin, and in the lowest five bits of that address
 * how far a hash is shifted down to be their index.  So the filter is exchanged for a larger one by
 * one store, and readers never see half of each.  A hash is one instruction, of an address' lower
 * half, by the factor that of thousands did best with blocks of one size, one after the other.
 *
 * Threads: asking from anywhere; counting is sample/live.c's and hook/next_pool.c's.
 */
#ifndef KILN_INPROC_SAMPLE_FILTER_H
#define KILN_INPROC_SAMPLE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "inproc/look.h"

#define KILN_IN_FILTER_FACTOR 0x297a2d39

extern uintptr_t kiln_in_filter __attribute__((visibility("hidden")));

static inline uint8_t *kiln_in_filter_at(uintptr_t filter, const void *address)
{
    uint32_t hash = (uint32_t)(uintptr_t)address * KILN_IN_FILTER_FACTOR;

    return (uint8_t *)(filter + (hash >> (filter & 31)));
}

static inline bool kiln_in_filter_has(const void *address)
{
    uintptr_t filter = __atomic_load_n(&kiln_in_filter, __ATOMIC_RELAXED);

    return !kiln_in_is_zero(kiln_in_filter_at(filter, address));
}

/* A count that has reached its end stays there. */
void kiln_in_filter_add(uintptr_t filter, const void *address);
void kiln_in_filter_remove(uintptr_t filter, const void *address);
/* An address that stays for ever, in larger ones as well: a multiple of 16, near the others. */
void kiln_in_filter_keep(const void *address);

/* Addresses that the filter of now is made for: one in sixteen bytes. */
uint32_t kiln_in_filter_room(void);

/* One of four times the size, empty and not yet in use; 0: it is as large as it gets, or no memory.
 */
uintptr_t kiln_in_filter_larger(void);

#endif /* KILN_INPROC_SAMPLE_FILTER_H */

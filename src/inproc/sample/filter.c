/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first filter is there from the beginning, so that free() needs no test for one.  Filters that
 * were exchanged are never unmapped: a thread may be between the load of the word and the load of
 * the byte.
 */
#include "inproc/sample/filter.h"

#include "inproc/thread/map.h"

enum {
    BITS_MIN = 14, /* stays in the first cache beside what the program has there */
    BITS_MAX = 24,
    BITS_STEP = 2,
    FULL = 255,
    PER_ADDRESS_BITS = 4,
    ALIGN = 64,
    HASH_BITS = 32,
    KEPT_STEP = 16
};

static uint8_t first[(1 << BITS_MIN) + ALIGN] __attribute__((aligned(64)));
static uintptr_t kept_low, kept_high; /* 0: none */
uintptr_t kiln_in_filter = (uintptr_t)first + (HASH_BITS - BITS_MIN);

static unsigned bits_of(uintptr_t filter)
{
    return HASH_BITS - (unsigned)(filter & 31);
}

void kiln_in_filter_add(uintptr_t filter, const void *address)
{
    uint8_t *at = kiln_in_filter_at(filter, address);
    uint8_t n = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (n != FULL && !__atomic_compare_exchange_n(at, &n, (uint8_t)(n + 1), true,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void kiln_in_filter_remove(uintptr_t filter, const void *address)
{
    uint8_t *at = kiln_in_filter_at(filter, address);
    uint8_t n = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (n != FULL && n != 0 &&
           !__atomic_compare_exchange_n(at, &n, (uint8_t)(n - 1), true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

/* Before anything was sampled, so that no larger one is being made. */
void kiln_in_filter_keep(const void *address)
{
    uintptr_t at = (uintptr_t)address;

    kept_low = !kept_low || at < kept_low ? at : kept_low;
    kept_high = at > kept_high ? at : kept_high;
    kiln_in_filter_add(kiln_in_filter, address);
}

uint32_t kiln_in_filter_room(void)
{
    return 1U << (bits_of(__atomic_load_n(&kiln_in_filter, __ATOMIC_RELAXED)) - PER_ADDRESS_BITS);
}

uintptr_t kiln_in_filter_larger(void)
{
    unsigned bits = bits_of(__atomic_load_n(&kiln_in_filter, __ATOMIC_RELAXED)) + BITS_STEP;
    uintptr_t at = bits <= BITS_MAX ? (uintptr_t)kiln_in_map((1UL << bits) + ALIGN) : 0;

    if (!at)
        return 0;
    at += HASH_BITS - bits;
    for (uintptr_t kept = kept_low; kept && kept <= kept_high; kept += KEPT_STEP)
        kiln_in_filter_add(at, (const void *)kept); /* NOLINT(performance-no-int-to-ptr) */
    return at;
}

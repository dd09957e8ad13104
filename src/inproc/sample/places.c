/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/places.h"

enum { COUNT_SHIFT = 16 };

uint64_t kiln_in_places = KILN_IN_PLACE_BITS;

/* Who frees a block has it from who was given it: no order but that is needed. */
static void count(uint64_t address, uint64_t change)
{
    uint64_t was = __atomic_load_n(&kiln_in_places, __ATOMIC_RELAXED), now;

    if (!(address & KILN_IN_PLACE_BITS))
        return;
    do
        now = (was >> COUNT_SHIFT) + change;
    while (!__atomic_compare_exchange_n(&kiln_in_places, &was,
                                        now ? now << COUNT_SHIFT : KILN_IN_PLACE_BITS, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void kiln_in_places_add(uint64_t address)
{
    count(address, 1);
}

void kiln_in_places_remove(uint64_t address)
{
    count(address, (uint64_t)-1);
}

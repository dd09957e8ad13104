/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/unwind/room.h"

#include <stdatomic.h>
#include <stddef.h>

static struct kiln_in_room rooms[KILN_IN_ROOMS];
static _Atomic uint32_t lent; /* a bit each */

struct kiln_in_room *kiln_in_room_take(void)
{
    uint32_t seen = atomic_load_explicit(&lent, memory_order_relaxed);

    while (seen != UINT32_MAX) {
        int i = __builtin_ctz(~seen);

        if (!atomic_compare_exchange_weak_explicit(&lent, &seen, seen | 1u << i,
                                                   memory_order_acquire, memory_order_relaxed))
            continue;
        rooms[i].stack_bytes = 0;
        return &rooms[i];
    }
    return NULL;
}

void kiln_in_room_give(struct kiln_in_room *room)
{
    if (room)
        atomic_fetch_and_explicit(&lent, ~(1u << (room - rooms)), memory_order_release);
}

void kiln_in_rooms_forked(void)
{
    atomic_store_explicit(&lent, 0, memory_order_relaxed);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/unwind/room.h"

#include <stdatomic.h>
#include <stddef.h>

#include "inproc/thread/line.h"

static struct kiln_in_room rooms[KILN_IN_ROOMS];
static _Atomic uintptr_t lent[KILN_IN_ROOMS]; /* the line of the thread that has it; 0: nobody */

struct kiln_in_room *kiln_in_room_take(void)
{
    for (unsigned i = 0; i < KILN_IN_ROOMS; i++) {
        uintptr_t nobody = 0;

        if (atomic_load_explicit(&lent[i], memory_order_relaxed) == nobody &&
            atomic_compare_exchange_strong(&lent[i], &nobody, (uintptr_t)&kiln_in_line)) {
            rooms[i].stack_bytes = 0;
            return &rooms[i];
        }
    }
    return NULL;
}

void kiln_in_room_give(struct kiln_in_room *room)
{
    if (room)
        atomic_store_explicit(&lent[room - rooms], 0, memory_order_release);
}

void kiln_in_rooms_left(void)
{
    for (unsigned i = 0; i < KILN_IN_ROOMS; i++) {
        uintptr_t own = (uintptr_t)&kiln_in_line;

        atomic_compare_exchange_strong(&lent[i], &own, 0);
    }
}

void kiln_in_rooms_forked(void)
{
    for (unsigned i = 0; i < KILN_IN_ROOMS; i++)
        atomic_store_explicit(&lent[i], 0, memory_order_relaxed);
}

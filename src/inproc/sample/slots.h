/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots - who waits for which lock right now, for those who let go of one: how long have others
 * waited while it was held?
 *
 * A waiter joins the slot of its lock and leaves it again; whoever unlocks settles it and is told
 * the time that all waiters together have waited since the lock was got, or settled, before.  Slots
 * are found by the lock's address; where more locks are waited for than there are slots, some waits
 * are nobody's.
 *
 * Threads: from anywhere, without a lock.
 */
#ifndef KILN_INPROC_SAMPLE_SLOTS_H
#define KILN_INPROC_SAMPLE_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "inproc/look.h"

enum { KILN_IN_SLOT_PAIRS = 256, KILN_IN_SLOT_WAITERS_MAX = 255, KILN_IN_SLOT_TAG_BITS = 12 };

struct kiln_in_slot {
    _Atomic uint64_t word;
};

enum kiln_in_left {
    KILN_IN_LEFT_WITHOUT,     /* gave up: the holder still owes it the wait */
    KILN_IN_LEFT_WITH_OTHERS, /* reads, and others that wait may too */
    KILN_IN_LEFT_ALONE        /* has the lock for itself */
};

extern struct kiln_in_slot kiln_in_slots[KILN_IN_SLOT_PAIRS][2]
    __attribute__((visibility("hidden"), aligned(64)));
/* Not 0 from the first wait of the process on: most have none, and look no further. */
extern uint8_t kiln_in_slots_used __attribute__((visibility("hidden")));

/* NULL: there is no slot left for this lock. */
struct kiln_in_slot *kiln_in_slot_join(const void *lock, uint64_t now_ns);
/* What waiters waited between the unlock and now is nobody's. */
void kiln_in_slot_leave(struct kiln_in_slot *slot, uint64_t now_ns, enum kiln_in_left how);
/* The holder's, before it lets go: nanoseconds. */
uint64_t kiln_in_slot_settle(const void *lock, uint64_t now_ns);
/* In a forked child: nobody waits. */
void kiln_in_slots_forget(void);

static inline uint64_t kiln_in_slot_hash(const void *lock)
{
    return ((uint64_t)(uintptr_t)lock >> 2) * 0x9e3779b97f4a7c15;
}

static inline struct kiln_in_slot *kiln_in_slot_pair(const void *lock)
{
    return kiln_in_slots[kiln_in_slot_hash(lock) >> 56];
}

/* Whether it may be that somebody waits, or has and gave up: cheap, for each lock and unlock. */
static inline bool kiln_in_slot_is_waited(const void *lock)
{
    struct kiln_in_slot *pair;
    uint64_t either;

    if (__builtin_expect(kiln_in_is_zero(&kiln_in_slots_used), 1))
        return false;
    pair = kiln_in_slot_pair(lock);
    either = atomic_load_explicit(&pair[0].word, memory_order_relaxed) |
             atomic_load_explicit(&pair[1].word, memory_order_relaxed);
    return either << KILN_IN_SLOT_TAG_BITS != 0;
}

#endif /* KILN_INPROC_SAMPLE_SLOTS_H */

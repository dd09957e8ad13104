/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot is one word, so that it changes as a whole:
 *
 *   bits 63-52  tag: more bits of the lock's hash
 *        51-44  n: threads that wait
 *         43-0  balance, in units of 16 ns, modulo its width
 *
 * What n threads have waited together until time t is n * t + balance: who joins at s takes s off
 * the balance, who leaves at e gives e back, and what it was is settled by setting the balance to
 * -n * t.  The sum is exact whoever comes and goes, up to 2^43 units (39 hours of one thread).
 *
 * A lock has two slots to choose from, and they are beside each other.
 */
#include "inproc/sample/slots.h"

#include <stddef.h>

enum { BALANCE_BITS = 44, TAG_SHIFT = 64 - KILN_IN_SLOT_TAG_BITS, UNIT_SHIFT = 4 };

#define BALANCE_MASK ((UINT64_C(1) << BALANCE_BITS) - 1)

struct kiln_in_slot kiln_in_slots[KILN_IN_SLOT_PAIRS][2];
uint8_t kiln_in_slots_used;

static uint64_t tag_of(const void *lock)
{
    return kiln_in_slot_hash(lock) >> 44 & 0xfff;
}

static uint64_t tag_in(uint64_t word)
{
    return word >> TAG_SHIFT;
}

static uint64_t n_in(uint64_t word)
{
    return word >> BALANCE_BITS & KILN_IN_SLOT_WAITERS_MAX;
}

static uint64_t packed(uint64_t tag, uint64_t n, uint64_t balance)
{
    return tag << TAG_SHIFT | n << BALANCE_BITS | (balance & BALANCE_MASK);
}

static bool try_join(struct kiln_in_slot *slot, uint64_t tag, uint64_t units, bool may_claim)
{
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed), joined;

    do {
        if (tag_in(word) == tag && n_in(word) < KILN_IN_SLOT_WAITERS_MAX)
            joined = packed(tag, n_in(word) + 1, word - units);
        else if (may_claim && n_in(word) == 0)
            joined = packed(tag, 1, -units);
        else
            return false;
    } while (!atomic_compare_exchange_weak(&slot->word, &word, joined));
    return true;
}

struct kiln_in_slot *kiln_in_slot_join(const void *lock, uint64_t now_ns)
{
    struct kiln_in_slot *pair = kiln_in_slot_pair(lock);

    /* Written once: it is in every processor's cache. */
    if (kiln_in_is_zero(&kiln_in_slots_used))
        __atomic_store_n(&kiln_in_slots_used, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 4; i++) {
        if (try_join(&pair[i & 1], tag_of(lock), now_ns >> UNIT_SHIFT, i >= 2))
            return &pair[i & 1];
    }
    return NULL;
}

void kiln_in_slot_leave(struct kiln_in_slot *slot, uint64_t now_ns, enum kiln_in_left how)
{
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    uint64_t units = now_ns >> UNIT_SHIFT, others, left;

    do {
        if (n_in(word) == 0)
            return;
        others = n_in(word) - 1;
        if (how == KILN_IN_LEFT_ALONE || (how == KILN_IN_LEFT_WITH_OTHERS && others == 0))
            left = -others * units;
        else
            left = word + units;
    } while (!atomic_compare_exchange_weak(&slot->word, &word, packed(tag_in(word), others, left)));
}

static uint64_t settle_one(struct kiln_in_slot *slot, uint64_t tag, uint64_t units)
{
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed), waited;

    do {
        if (tag_in(word) != tag)
            return 0;
        waited = (n_in(word) * units + word) & BALANCE_MASK;
        /* The clocks of two processors may differ by a moment: it has been settled until later. */
        if (waited >> (BALANCE_BITS - 1))
            return 0;
    } while (!atomic_compare_exchange_weak(&slot->word, &word,
                                           packed(tag, n_in(word), -n_in(word) * units)));
    return waited << UNIT_SHIFT;
}

uint64_t kiln_in_slot_settle(const void *lock, uint64_t now_ns)
{
    struct kiln_in_slot *pair = kiln_in_slot_pair(lock);
    uint64_t units = now_ns >> UNIT_SHIFT;

    return settle_one(&pair[0], tag_of(lock), units) + settle_one(&pair[1], tag_of(lock), units);
}

void kiln_in_slots_forget(void)
{
    __atomic_store_n(&kiln_in_slots_used, 0, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < KILN_IN_SLOT_PAIRS; i++) {
        atomic_store(&kiln_in_slots[i][0].word, 0);
        atomic_store(&kiln_in_slots[i][1].word, 0);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Times are made up, in nanoseconds; slots count in units of 16. */
#include "inproc/sample/slots.h"

#include <pthread.h>

#include "test.h"

/* Locks are only addresses here. */
static const void *lock_at(uintptr_t n)
{
    return (const void *)(0x7f0000001000 + n * 40);
}

TEST(slots, a_holder_is_told_how_long_one_other_waited)
{
    struct kiln_in_slot *slot = kiln_in_slot_join(lock_at(1), 16000);

    CHECK(slot);
    CHECK(kiln_in_slot_is_waited(lock_at(1)));
    CHECK_EQ(kiln_in_slot_settle(lock_at(1), 48000), 32000);
    kiln_in_slot_leave(slot, 48000, KILN_IN_LEFT_ALONE);
    CHECK(!kiln_in_slot_is_waited(lock_at(1)));
    CHECK_EQ(kiln_in_slot_settle(lock_at(1), 99200), 0);
}

TEST(slots, waits_of_several_add_up_and_each_holder_has_its_share)
{
    struct kiln_in_slot *first = kiln_in_slot_join(lock_at(2), 16000);
    struct kiln_in_slot *second = kiln_in_slot_join(lock_at(2), 32000);
    struct kiln_in_slot *third = kiln_in_slot_join(lock_at(2), 40000);

    CHECK(first == second && second == third);
    CHECK_EQ(kiln_in_slot_settle(lock_at(2), 48000), 32000 + 16000 + 8000);
    /* The first goes on a little later, which is nobody's; two are left. */
    kiln_in_slot_leave(first, 64000, KILN_IN_LEFT_ALONE);
    CHECK_EQ(kiln_in_slot_settle(lock_at(2), 80000), 2 * 16000);
    kiln_in_slot_leave(second, 80000, KILN_IN_LEFT_ALONE);
    kiln_in_slot_leave(third, 80000, KILN_IN_LEFT_ALONE);
    CHECK(!kiln_in_slot_is_waited(lock_at(2)));
}

TEST(slots, who_gave_up_has_waited_for_the_holder_too)
{
    struct kiln_in_slot *slot = kiln_in_slot_join(lock_at(3), 16000);

    kiln_in_slot_leave(slot, 32000, KILN_IN_LEFT_WITHOUT);
    CHECK(kiln_in_slot_is_waited(lock_at(3)));
    CHECK_EQ(kiln_in_slot_settle(lock_at(3), 160000), 16000);
    CHECK(!kiln_in_slot_is_waited(lock_at(3)));
}

TEST(slots, readers_that_go_on_a_little_later_owe_nobody_anything)
{
    struct kiln_in_slot *first = kiln_in_slot_join(lock_at(10), 16000);
    struct kiln_in_slot *second = kiln_in_slot_join(lock_at(10), 16000);

    CHECK_EQ(kiln_in_slot_settle(lock_at(10), 32000), 2 * 16000);
    kiln_in_slot_leave(first, 48000, KILN_IN_LEFT_WITH_OTHERS);
    CHECK(kiln_in_slot_is_waited(lock_at(10)));
    kiln_in_slot_leave(second, 64000, KILN_IN_LEFT_WITH_OTHERS);
    CHECK(!kiln_in_slot_is_waited(lock_at(10)));
    CHECK_EQ(kiln_in_slot_settle(lock_at(10), 80000), 0);
}

TEST(slots, a_process_in_which_nobody_has_waited_looks_no_further)
{
    kiln_in_slots_forget();
    CHECK_EQ(kiln_in_slots_used, 0);
    kiln_in_slot_leave(kiln_in_slot_join(lock_at(11), 16000), 32000, KILN_IN_LEFT_ALONE);
    CHECK_EQ(kiln_in_slots_used, 1);
}

TEST(slots, nobody_is_told_of_a_lock_that_nobody_waits_for)
{
    struct kiln_in_slot *slot = kiln_in_slot_join(lock_at(4), 16000);

    CHECK_EQ(kiln_in_slot_settle(lock_at(5), 32000), 0);
    CHECK_EQ(kiln_in_slot_settle(lock_at(4), 32000), 16000);
    kiln_in_slot_leave(slot, 32000, KILN_IN_LEFT_ALONE);
}

TEST(slots, a_clock_that_is_a_moment_behind_makes_no_waits)
{
    struct kiln_in_slot *slot = kiln_in_slot_join(lock_at(6), 16000);

    CHECK_EQ(kiln_in_slot_settle(lock_at(6), 8000), 0);
    kiln_in_slot_leave(slot, 16000, KILN_IN_LEFT_ALONE);
}

TEST(slots, two_locks_share_a_pair_and_a_third_finds_no_room)
{
    const void *same[3] = {lock_at(0)};
    unsigned n = 1;
    struct kiln_in_slot *slots[2];

    for (uintptr_t i = 1; n < 3; i++) {
        if (kiln_in_slot_pair(lock_at(i)) == kiln_in_slot_pair(same[0]))
            same[n++] = lock_at(i);
    }
    slots[0] = kiln_in_slot_join(same[0], 16000);
    slots[1] = kiln_in_slot_join(same[1], 16000);
    CHECK(slots[0] && slots[1] && slots[0] != slots[1]);
    CHECK(!kiln_in_slot_join(same[2], 16000));
    CHECK_EQ(kiln_in_slot_settle(same[1], 32000), 16000);
    kiln_in_slot_leave(slots[0], 48000, KILN_IN_LEFT_WITHOUT);
    /* What was not settled of the first lock is not the third's. */
    slots[0] = kiln_in_slot_join(same[2], 64000);
    CHECK(slots[0]);
    CHECK_EQ(kiln_in_slot_settle(same[2], 80000), 16000);
    kiln_in_slot_leave(slots[0], 80000, KILN_IN_LEFT_ALONE);
    kiln_in_slot_leave(slots[1], 80000, KILN_IN_LEFT_ALONE);
}

TEST(slots, more_waiters_than_a_slot_counts_take_the_other_one_and_then_none)
{
    struct kiln_in_slot *slots[2 * KILN_IN_SLOT_WAITERS_MAX];

    for (unsigned i = 0; i < 2 * KILN_IN_SLOT_WAITERS_MAX; i++)
        CHECK((slots[i] = kiln_in_slot_join(lock_at(7), 1600)));
    CHECK(!kiln_in_slot_join(lock_at(7), 1600));
    CHECK_EQ(kiln_in_slot_settle(lock_at(7), 3200), 2 * KILN_IN_SLOT_WAITERS_MAX * 1600);
    for (unsigned i = 0; i < 2 * KILN_IN_SLOT_WAITERS_MAX; i++)
        kiln_in_slot_leave(slots[i], 3200, KILN_IN_LEFT_ALONE);
    CHECK(!kiln_in_slot_is_waited(lock_at(7)));
}

TEST(slots, after_a_fork_nobody_waits)
{
    CHECK(kiln_in_slot_join(lock_at(8), 16000));
    kiln_in_slots_forget();
    CHECK(!kiln_in_slot_is_waited(lock_at(8)));
    CHECK_EQ(kiln_in_slot_settle(lock_at(8), 32000), 0);
}

/* ---- many at once ---- */

enum { THREADS = 4, ROUNDS = 20000, LONG_NS = 1600000000 };

struct crowd {
    _Atomic uint64_t clock;
    _Atomic uint64_t waited, settled;
};

static uint64_t tick(struct crowd *crowd)
{
    return atomic_fetch_add(&crowd->clock, 16) + 16;
}

static void *wait_and_settle(void *arg)
{
    struct crowd *crowd = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t since = tick(crowd), until;
        struct kiln_in_slot *slot = kiln_in_slot_join(lock_at(9), since);

        if (i % 3 == 0)
            atomic_fetch_add(&crowd->settled, kiln_in_slot_settle(lock_at(9), tick(crowd)));
        until = tick(crowd);
        kiln_in_slot_leave(slot, until, KILN_IN_LEFT_WITHOUT);
        atomic_fetch_add(&crowd->waited, until - since);
    }
    return NULL;
}

TEST(slots, what_holders_are_told_is_what_waiters_waited_whoever_comes_and_goes)
{
    struct crowd crowd = {0};
    pthread_t threads[THREADS];
    struct kiln_in_slot *slot;
    uint64_t since;

    for (unsigned i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, wait_and_settle, &crowd));
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    /* A thread may have been stopped between its look at the clock and leaving, and settled too far
     * by others: one more, long wait makes up for it. */
    since = tick(&crowd);
    slot = kiln_in_slot_join(lock_at(9), since);
    crowd.settled += kiln_in_slot_settle(lock_at(9), since + LONG_NS);
    kiln_in_slot_leave(slot, since + LONG_NS, KILN_IN_LEFT_ALONE);
    CHECK_EQ(crowd.settled, crowd.waited + LONG_NS);
    CHECK(!kiln_in_slot_is_waited(lock_at(9)));
}

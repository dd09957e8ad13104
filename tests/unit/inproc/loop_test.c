/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of an event loop by a clock of the test's own. */
#include "inproc/sample/loop.h"

#include <math.h>

#include "inproc/sample/wait.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"
#include "test.h"

#define MS UINT64_C(1000000)

static uint64_t now_ns;

static struct kiln_in_thread *begin(void)
{
    struct kiln_in_thread *thread;
    struct kiln_in_record record;

    kiln_in_settings.lag_ns = 20 * MS;
    kiln_in_settings.wait_rate_ns = 10 * MS;
    kiln_in_settings.depth = 16;
    CHECK_OK(kiln_in_threads_init(7));
    atomic_store(&kiln_in_on, 1);
    atomic_store(&kiln_in_measures, KILN_IN_LOOPS);
    thread = kiln_in_enter();
    CHECK(thread);
    kiln_in_leave(thread);
    thread->loop = (struct kiln_in_loop){0};
    while (kiln_in_ring_take(&thread->ring, &record))
        continue;
    now_ns = 1000 * MS;
    return thread;
}

/* The loop is busy for so long, and polls for a while. */
static void turn(int64_t key, uint64_t busy_ms)
{
    now_ns += busy_ms * MS;
    kiln_in_loop_polls(key, now_ns);
    now_ns += 5 * MS;
    kiln_in_loop_turns(key, now_ns);
}

static void settle(int64_t key)
{
    for (int i = 0; i < KILN_IN_LOOP_TURNS; i++)
        turn(key, 1);
}

static int told(struct kiln_in_thread *thread, double *ret_ms)
{
    struct kiln_in_record record;
    int n = 0;

    for (*ret_ms = 0; kiln_in_ring_take(&thread->ring, &record); n++) {
        CHECK_EQ(record.kind, KILN_IN_LOOP);
        *ret_ms += record.value / (double)MS;
    }
    return n;
}

TEST(loop, a_turn_that_takes_long_is_told_and_a_short_one_is_not)
{
    struct kiln_in_thread *thread = begin();
    int64_t key = kiln_in_loop_of_epoll(5);
    double ms;

    settle(key);
    turn(key, 19);
    CHECK_EQ(told(thread, &ms), 0);
    turn(key, 50);
    CHECK_EQ(told(thread, &ms), 1);
    CHECK(ms == 50);
}

TEST(loop, who_calls_poll_once_or_twice_is_no_loop)
{
    struct kiln_in_thread *thread = begin();
    int64_t key = kiln_in_loop_of_call(&now_ns);
    double ms;

    turn(key, 100);
    turn(key, 100);
    turn(key, 100);
    CHECK_EQ(told(thread, &ms), 0);
    turn(key, 100);
    CHECK_EQ(told(thread, &ms), 1);
}

TEST(loop, the_first_turn_of_epoll_is_one_of_a_loop)
{
    struct kiln_in_thread *thread = begin();
    int64_t key = kiln_in_loop_of_epoll(5);
    double ms;

    turn(key, 100); /* before its first poll it was none */
    CHECK(kiln_in_loop_is_held(&thread->loop));
    CHECK_EQ(told(thread, &ms), 0);
    turn(key, 100);
    CHECK_EQ(told(thread, &ms), 1);
    CHECK(ms == 100);
}

TEST(loop, stacks_that_were_caught_share_the_time_by_their_weights)
{
    struct kiln_in_thread *thread = begin();
    int64_t key = kiln_in_loop_of_epoll(5);
    struct kiln_in_record record;

    settle(key);
    CHECK(kiln_in_loop_is_held(&thread->loop));
    kiln_in_loop_caught(thread, 11, 30 * MS);
    kiln_in_loop_caught(thread, 12, 10 * MS);
    turn(key, 60);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &record), 1);
    CHECK_EQ(record.stack, 11);
    CHECK(fabs(record.value - 45.0 * (double)MS) < 1);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &record), 1);
    CHECK_EQ(record.stack, 12);
    CHECK(fabs(record.count - 0.25) < 1e-6);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &record), 0);
    turn(key, 60); /* of another turn they say nothing */
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &record), 1);
    CHECK(record.stack != 11 && record.stack != 12);
}

TEST(loop, of_many_stacks_a_few_are_kept_and_the_time_is_whole)
{
    struct kiln_in_thread *thread = begin();
    int64_t key = kiln_in_loop_of_epoll(5);
    double ms;

    settle(key);
    for (uint32_t i = 1; i <= 1000; i++)
        kiln_in_loop_caught(thread, i, 10 * MS);
    turn(key, 10000);
    CHECK_EQ(told(thread, &ms), KILN_IN_LOOP_STACKS);
    CHECK(fabs(ms - 10000) < 0.001);
}

TEST(loop, polls_of_others_inside_of_a_turn_are_part_of_it)
{
    struct kiln_in_thread *thread = begin();
    int64_t outer = kiln_in_loop_of_epoll(5);
    double ms;

    settle(outer);
    turn(kiln_in_loop_of_call(&ms), 10); /* 10 ms, and 5 ms in that poll */
    turn(kiln_in_loop_of_epoll(6), 10);
    turn(outer, 10);
    CHECK_EQ(told(thread, &ms), 1);
    CHECK(ms == 40);
}

TEST(loop, epoll_takes_the_place_of_poll)
{
    struct kiln_in_thread *thread = begin();
    double ms;

    settle(kiln_in_loop_of_call(&ms));
    settle(kiln_in_loop_of_epoll(5));
    CHECK_EQ(told(thread, &ms), 0);
    turn(kiln_in_loop_of_epoll(5), 30);
    CHECK_EQ(told(thread, &ms), 1);
}

TEST(loop, a_long_wait_inside_of_a_turn_is_caught)
{
    struct kiln_in_thread *thread = begin();
    int64_t key = kiln_in_loop_of_epoll(5);

    settle(key);
    kiln_in_wait_took(1 * MS, KILN_IN_REASON_SLEEP);
    CHECK_EQ(thread->loop.caught, 0);
    kiln_in_wait_took(30 * MS, KILN_IN_REASON_SLEEP);
    CHECK_EQ(thread->loop.caught, 1);
}

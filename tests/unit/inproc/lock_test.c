/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/lock.h"

#include <errno.h>
#include <pthread.h>

#include "inproc/clock.h"
#include "inproc/sample/slots.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "test.h"

/* Sampling is on in each test, and all records of the thread are in `got` in the end. */
struct got {
    unsigned n[KILN_IN_KINDS];
    double count[KILN_IN_KINDS], value[KILN_IN_KINDS];
    struct kiln_in_record last;
};

static void begin(uint64_t rate_ns)
{
    kiln_in_settings.profiles = KILN_PROFILE_LOCK;
    kiln_in_settings.depth = 64;
    kiln_in_settings.lock_rate_ns = rate_ns;
    CHECK_OK(kiln_in_threads_init(7));
    CHECK_OK(kiln_in_lock_start());
    atomic_store(&kiln_in_on, 1);
}

static void end(void)
{
    atomic_store(&kiln_in_on, 0);
    kiln_in_thread_end();
}

static void take(struct got *got)
{
    struct kiln_in_record record;

    while (kiln_in_line.thread && kiln_in_ring_take(&kiln_in_line.thread->ring, &record)) {
        got->n[record.kind]++;
        got->count[record.kind] += record.count;
        got->value[record.kind] += record.value;
        got->last = record;
    }
}

TEST(lock, nothing_is_measured_while_nothing_is_sampled)
{
    struct kiln_in_stay stay;

    begin(1);
    atomic_store(&kiln_in_on, 0);
    CHECK(!kiln_in_stay_begin(&stay, KILN_IN_STAY_MUTEX, &stay, 0));
    atomic_store(&kiln_in_on, 1);
    kiln_in_settings.profiles = KILN_PROFILE_CPU;
    CHECK(!kiln_in_stay_begin(&stay, KILN_IN_STAY_MUTEX, &stay, 0));
    end();
}

TEST(lock, the_library_does_not_measure_itself)
{
    struct kiln_in_stay stay;

    begin(1);
    kiln_in_hush();
    CHECK(!kiln_in_stay_begin(&stay, KILN_IN_STAY_CONDITION, &stay, 0));
    CHECK_EQ(kiln_in_holder_settle(&stay), 0);
    kiln_in_unhush();
    end();
}

TEST(lock, a_wait_longer_than_the_rate_is_one_sample_of_itself)
{
    struct kiln_in_stay stay;
    struct got got = {0};
    uint64_t until;

    begin(1000);
    errno = 99;
    CHECK(kiln_in_stay_begin(&stay, KILN_IN_STAY_MUTEX, &stay, 0));
    for (until = kiln_in_now_ns() + 2000; kiln_in_now_ns() < until;)
        continue;
    kiln_in_stay_end(&stay, true);
    CHECK_EQ(errno, 99);
    take(&got);
    CHECK_EQ(got.n[KILN_IN_MUTEX], 1);
    CHECK(got.count[KILN_IN_MUTEX] == 1);
    CHECK(got.value[KILN_IN_MUTEX] >= 2000);
    CHECK_EQ(got.last.reason, KILN_IN_STAY_MUTEX);
    CHECK_NE(got.last.stack, 0);
    end();
}

TEST(lock, conditions_semaphores_and_ends_of_threads_block)
{
    static const enum kiln_in_stay_for reasons[] = {KILN_IN_STAY_CONDITION, KILN_IN_STAY_SEMAPHORE,
                                                    KILN_IN_STAY_JOIN};
    struct kiln_in_stay stay;
    struct got got = {0};

    begin(1);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(kiln_in_stay_begin(&stay, reasons[i], &got, 0));
        kiln_in_stay_end(&stay, true);
        take(&got);
        CHECK_EQ(got.last.reason, reasons[i]);
    }
    CHECK_EQ(got.n[KILN_IN_BLOCK], 3);
    CHECK_EQ(got.n[KILN_IN_MUTEX], 0);
    CHECK_TEXT(kiln_in_stay_word(KILN_IN_STAY_JOIN), "join");
    CHECK(!kiln_in_stay_word(KILN_IN_STAYS));
    end();
}

TEST(lock, who_waits_shows_where_and_a_handler_in_between_leaves_it_so)
{
    struct kiln_in_stay outer, inner;
    struct kiln_in_thread *thread;

    begin(1);
    CHECK(kiln_in_stay_begin(&outer, KILN_IN_STAY_CONDITION, &outer, 0x1000));
    thread = kiln_in_line.thread;
    CHECK_EQ(thread->waits_in, 0x1000);
    CHECK(kiln_in_stay_begin(&inner, KILN_IN_STAY_MUTEX, &inner, 0x800));
    CHECK_EQ(thread->waits_in, 0x800);
    kiln_in_stay_end(&inner, true);
    CHECK_EQ(thread->waits_in, 0x1000);
    kiln_in_stay_end(&outer, true);
    CHECK_EQ(thread->waits_in, 0);
    end();
}

TEST(lock, a_stack_is_taken_before_the_wait_where_the_last_one_was_long)
{
    const uint64_t rate_ns = UINT64_C(1) << 33; /* less than a machine runs before its tests */
    struct kiln_in_stay stay;
    int object = 0;

    begin(rate_ns);
    CHECK(kiln_in_stay_begin(&stay, KILN_IN_STAY_MUTEX, &object, 0));
    CHECK_NE(stay.stack, 0); /* nobody knows yet */
    kiln_in_stay_end(&stay, true);
    CHECK(kiln_in_stay_begin(&stay, KILN_IN_STAY_MUTEX, &object, 0));
    CHECK_EQ(stay.stack, 0);
    stay.since_ns -= rate_ns;
    kiln_in_stay_end(&stay, true);
    CHECK(kiln_in_stay_begin(&stay, KILN_IN_STAY_MUTEX, &object, 0));
    CHECK_NE(stay.stack, 0);
    kiln_in_stay_end(&stay, true);
    end();
}

TEST(lock, who_let_go_is_one_sample_of_what_others_waited)
{
    struct got got = {0};

    begin(1000);
    kiln_in_holder_tell(5000, KILN_IN_STAY_MUTEX);
    take(&got);
    CHECK_EQ(got.n[KILN_IN_HOLDER], 1);
    CHECK(got.count[KILN_IN_HOLDER] == 1);
    CHECK(got.value[KILN_IN_HOLDER] == 5000);
    CHECK_NE(got.last.stack, 0);
    end();
}

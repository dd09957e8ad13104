/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records from one thread to another, in order, none twice, and losses counted.  A thread whose
 * random numbers were not sown has only zeroes: all of its records are chosen.
 */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "inproc/thread/line.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/thread.h"
#include "test.h"

static struct kiln_in_record record(uint64_t number)
{
    return (struct kiln_in_record){.kind = KILN_IN_ALLOC, .at_ns = number, .count = 1};
}

TEST(ring, gives_records_back_in_order)
{
    struct kiln_in_thread *thread = calloc(1, sizeof(*thread));
    struct kiln_in_record one = record(1), two = record(2), taken;

    CHECK_OK(kiln_in_ring_put(thread, &one));
    CHECK_OK(kiln_in_ring_put(thread, &two));
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &taken), 1);
    CHECK_EQ(taken.at_ns, 1);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &taken), 1);
    CHECK_EQ(taken.at_ns, 2);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &taken), 0);
    free(thread);
}

TEST(ring, counts_what_finds_no_room)
{
    struct kiln_in_thread *thread = calloc(1, sizeof(*thread));
    struct kiln_in_record one = record(1), taken;

    for (unsigned i = 0; i < KILN_IN_RING_RECORDS; i++)
        CHECK_OK(kiln_in_ring_put(thread, &one));
    CHECK_EQ(kiln_in_ring_put(thread, &one), -1);
    CHECK_EQ(thread->lost[KILN_IN_LOST_RING], 1);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &taken), 1);
    CHECK_OK(kiln_in_ring_put(thread, &one));
    free(thread);
}

TEST(ring, calls_the_keeper_when_it_is_half_full)
{
    struct kiln_in_thread *thread = calloc(1, sizeof(*thread));
    uint32_t before = atomic_load(&kiln_in_keeper_bell.rung);
    struct kiln_in_record one = record(1), taken;

    for (int turn = 1; turn <= 3; turn++) {
        for (unsigned i = 1; i < KILN_IN_RING_RECORDS / 2; i++)
            CHECK_OK(kiln_in_ring_put(thread, &one));
        CHECK_EQ(kiln_in_keeper_bell.rung - before, turn - 1);
        CHECK_OK(kiln_in_ring_put(thread, &one));
        CHECK_OK(kiln_in_ring_put(thread, &one));
        CHECK_EQ(kiln_in_keeper_bell.rung - before, turn);
        while (kiln_in_ring_take(&thread->ring, &taken))
            continue;
    }
    free(thread);
}

static double sum_of_all(struct kiln_in_thread *thread, double *variance)
{
    struct kiln_in_record taken;
    double sum = 0;

    while (kiln_in_ring_take(&thread->ring, &taken)) {
        CHECK(taken.value == 3 * taken.count);
        sum += taken.count;
        *variance += taken.count * (taken.count - 1);
    }
    return sum;
}

/* Bursts of all lengths, each of which nobody reads before it is over. */
TEST(ring, a_burst_counts_for_what_it_was)
{
    struct kiln_in_thread *thread = calloc(1, sizeof(*thread));
    double sum = 0, variance = 0;
    uint64_t n = 0, thinned = 0;

    thread->random = 7;
    for (uint64_t burst = 10; burst < 70000; burst += burst / 16 + 1) {
        for (uint64_t i = 0; i < burst; i++) {
            struct kiln_in_record one = record(i);

            one.value = 3;
            (void)kiln_in_ring_put(thread, &one);
        }
        sum += sum_of_all(thread, &variance);
        n += burst;
        thinned += burst > KILN_IN_RING_RECORDS / 4 * 3 ? burst - KILN_IN_RING_RECORDS / 4 * 3 : 0;
    }
    CHECK_EQ(thread->lost[KILN_IN_LOST_RING], 0);
    CHECK_EQ(thread->lost[KILN_IN_LOST_THINNED], thinned);
    CHECK(sqrt(variance) < 0.1 * (double)n);
    CHECK(fabs(sum - (double)n) < 5 * sqrt(variance));
    free(thread);
}

TEST(ring, what_is_read_in_time_counts_once)
{
    struct kiln_in_thread *thread = calloc(1, sizeof(*thread));
    double variance = 0;

    thread->random = 7;
    for (unsigned i = 0; i < 1000; i++) {
        for (unsigned j = 0; j < KILN_IN_RING_RECORDS / 4; j++) {
            struct kiln_in_record one = record(j);

            one.value = 3;
            CHECK_OK(kiln_in_ring_put(thread, &one));
        }
        CHECK(sum_of_all(thread, &variance) == KILN_IN_RING_RECORDS / 4);
    }
    CHECK_EQ(thread->lost[KILN_IN_LOST_THINNED], 0);
    free(thread);
}

TEST(ring, goes_on_when_its_counters_wrap)
{
    struct kiln_in_thread *thread = calloc(1, sizeof(*thread));
    struct kiln_in_record taken;

    thread->ring.written = thread->ring.read = UINT32_MAX - 2;
    for (uint64_t i = 0; i < 6; i++) {
        struct kiln_in_record next = record(i);

        CHECK_OK(kiln_in_ring_put(thread, &next));
    }
    for (uint64_t i = 0; i < 6; i++) {
        CHECK_EQ(kiln_in_ring_take(&thread->ring, &taken), 1);
        CHECK_EQ(taken.at_ns, i);
    }
    free(thread);
}

enum { MANY = 200000 };

static void *write_many(void *arg)
{
    struct kiln_in_thread *thread = arg;

    for (uint64_t i = 0; i < MANY; i++) {
        struct kiln_in_record next = record(i);

        while (kiln_in_ring_put(thread, &next) != 0)
            sched_yield();
    }
    return NULL;
}

TEST(ring, is_read_while_it_is_written)
{
    struct kiln_in_thread *thread = calloc(1, sizeof(*thread));
    struct kiln_in_record taken;
    uint64_t next = 0;
    pthread_t writer;

    CHECK_OK(pthread_create(&writer, NULL, write_many, thread));
    while (next < MANY) {
        if (kiln_in_ring_take(&thread->ring, &taken))
            CHECK_EQ(taken.at_ns, next++);
        else
            sched_yield();
    }
    CHECK_OK(pthread_join(writer, NULL));
    free(thread);
}

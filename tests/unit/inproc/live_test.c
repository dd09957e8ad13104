/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/live.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inproc/sample/filter.h"
#include "test.h"

static void *at(uint64_t n)
{
    return (void *)(uintptr_t)(0x7f0000000000 + n * 48);
}

static int add(uint64_t n, uint64_t size, uint64_t at_ns)
{
    struct kiln_in_live block = {.address = (uint64_t)(uintptr_t)at(n),
                                 .size = size,
                                 .count = 2,
                                 .at_ns = at_ns,
                                 .stack = (uint32_t)n};

    CHECK_OK(kiln_in_live_init());
    return kiln_in_live_add(&block);
}

struct sum {
    uint64_t blocks, bytes, stacks;
};

static void sum_up(const struct kiln_in_live *block, void *arg)
{
    struct sum *sum = arg;

    sum->blocks++;
    sum->bytes += block->size;
    sum->stacks += block->stack;
}

static struct sum all(void)
{
    struct sum sum = {0};

    kiln_in_live_each(sum_up, &sum);
    CHECK_EQ(sum.blocks, kiln_in_live_count());
    return sum;
}

enum { THREADS = 4, EACH = 8000 };

enum { TRIES = 10000 };

/* Nobody waits for long for who has a bucket and not a processor: it is tried again. */
static bool added(uint64_t n, uint64_t size, uint64_t at_ns)
{
    for (int i = 0; i < TRIES; i++) {
        if (add(n, size, at_ns) == 0)
            return true;
        sched_yield();
    }
    return false;
}

static bool removed(uint64_t n)
{
    for (int i = 0; i < TRIES; i++) {
        if (kiln_in_live_remove(at(n)))
            return true;
        sched_yield();
    }
    return false;
}

/* Adds so many that the filter must grow twice, and looks for each and for an older one. */
static void *fill_up(void *arg)
{
    uint64_t first = (uint64_t)(uintptr_t)arg * EACH + 1;
    uint64_t failures = 0;

    for (uint64_t n = first; n < first + EACH; n++) {
        failures += !added(n, 1, n);
        failures += !kiln_in_filter_has(at(n));
        failures += !kiln_in_filter_has(at(first + (n - first) / 2));
        if (n % 4 == 0)
            failures += !removed(n - 1) || !added(n - 1, 1, n);
    }
    return (void *)(uintptr_t)failures;
}

/* The first test: afterwards the filter is large enough. */
TEST(live, the_filter_grows_under_the_feet_of_threads)
{
    static char pool[64] __attribute__((aligned(16)));
    uint32_t room = kiln_in_filter_room();
    pthread_t threads[THREADS];
    void *failures;

    kiln_in_filter_keep(pool + 48); /* which are in no table */
    kiln_in_filter_keep(pool);
    CHECK_OK(kiln_in_live_init());
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, fill_up, (void *)i));
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(pthread_join(threads[i], &failures));
        CHECK_EQ((uintptr_t)failures, 0);
    }
    CHECK(kiln_in_filter_room() >= 16 * room);
    CHECK(kiln_in_filter_has(pool) && kiln_in_filter_has(pool + 48));
    for (uint64_t n = 1; n <= THREADS * EACH; n++)
        CHECK(kiln_in_filter_has(at(n)) && kiln_in_live_remove(at(n)));
    CHECK_EQ(kiln_in_live_count(), 0);
}

TEST(live, a_block_is_there_until_it_is_removed)
{
    kiln_in_live_forget();
    CHECK_OK(add(1, 100, 1));
    CHECK(kiln_in_filter_has(at(1)));
    CHECK_EQ(all().bytes, 100);
    CHECK(kiln_in_live_remove(at(1)));
    CHECK(!kiln_in_filter_has(at(1)));
    CHECK(!kiln_in_live_remove(at(1)));
    CHECK_EQ(all().blocks, 0);
}

TEST(live, nobody_has_the_address_zero)
{
    CHECK(!kiln_in_live_remove(NULL));
    CHECK_EQ(kiln_in_live_mark(NULL), 0);
}

TEST(live, a_stale_block_gives_way_to_a_new_one_at_its_address)
{
    kiln_in_live_forget();
    CHECK_OK(add(5, 100, 1));
    CHECK_OK(add(5, 300, 2));
    CHECK_EQ(all().blocks, 1);
    CHECK_EQ(all().bytes, 300);
    CHECK(kiln_in_live_remove(at(5)));
    CHECK(!kiln_in_filter_has(at(5)));
}

TEST(live, a_mark_is_of_one_block_and_not_of_the_next_at_its_address)
{
    uint64_t mark;

    kiln_in_live_forget();
    CHECK_OK(add(6, 100, 11));
    mark = kiln_in_live_mark(at(6));
    CHECK_NE(mark, 0);
    CHECK_OK(add(6, 200, 12));
    CHECK(!kiln_in_live_remove_marked(at(6), mark));
    CHECK_EQ(all().bytes, 200);
    CHECK(kiln_in_live_remove_marked(at(6), kiln_in_live_mark(at(6))));
    CHECK_EQ(all().blocks, 0);
}

TEST(live, the_filter_knows_all_and_few_others)
{
    enum { N = 20000 };
    uint64_t unknown = 0;

    kiln_in_live_forget();
    for (uint64_t i = 1; i <= N; i++)
        CHECK_OK(add(i, i, i));
    for (uint64_t i = 1; i <= N; i++)
        CHECK(kiln_in_filter_has(at(i)));
    for (uint64_t i = N + 1; i <= 11 * N; i++)
        unknown += kiln_in_filter_has(at(i));
    CHECK(unknown < 10 * N / 16);
    CHECK_EQ(all().bytes, (uint64_t)N * (N + 1) / 2);
    for (uint64_t i = 1; i <= N; i++)
        CHECK(kiln_in_live_remove(at(i)));
    CHECK_EQ(all().blocks, 0);
}

TEST(live, places_are_used_again)
{
    uint64_t bytes;

    kiln_in_live_forget();
    CHECK_OK(add(1, 1, 1));
    bytes = kiln_in_live_bytes();
    for (uint64_t i = 0; i < 100000; i++) {
        CHECK(kiln_in_live_remove(at(i + 1)));
        CHECK_OK(add(i + 2, 1, i + 2));
    }
    CHECK(kiln_in_live_bytes() <= bytes + 2 * 68);
    kiln_in_live_forget();
}

/* In a process of its own: what it touches stays touched. */
TEST(live, a_full_table_says_so_and_goes_on_when_there_is_room)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        uint64_t n = 0;

        kiln_in_live_forked();
        kiln_in_live_forget();
        while (n <= KILN_IN_LIVE_MAX && add(n + 1, 1, n + 1) == 0)
            n++;
        _exit(!(n == KILN_IN_LIVE_MAX && kiln_in_live_count() == n && add(n, 2, 0) == 0 &&
                kiln_in_live_remove(at(1)) && add(n + 1, 1, 1) == 0));
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

enum { ROUNDS = 3000, SLOTS = 500 };

/* Each thread has addresses of its own; buckets and bytes of the filter are everybody's. */
static void *churn(void *arg)
{
    uint64_t first = (uint64_t)(uintptr_t)arg * SLOTS + 1;
    uint64_t failures = 0;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t n = first + round * 7919 % SLOTS;

        failures += !added(n, 64, round + 1);
        failures += !kiln_in_filter_has(at(n));
        if (round % 3 || round >= ROUNDS - SLOTS)
            failures += !removed(n);
    }
    return (void *)(uintptr_t)failures;
}

TEST(live, threads_do_not_disturb_each_other)
{
    pthread_t threads[THREADS];
    void *failures;

    kiln_in_live_forget();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, churn, (void *)i));
    for (int i = 0; i < 200; i++) {
        struct sum sum = {0};

        kiln_in_live_each(sum_up, &sum);
        CHECK_EQ(sum.bytes, sum.blocks * 64);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_OK(pthread_join(threads[i], &failures));
        CHECK_EQ((uintptr_t)failures, 0);
    }
    CHECK_EQ(all().blocks, 0);
}

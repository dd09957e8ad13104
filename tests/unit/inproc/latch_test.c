/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/latch.h"

#include <errno.h>
#include <pthread.h>

#include "test.h"

enum { THREADS = 4, TIMES = 20000 };

static struct kiln_in_latch latch;
static struct kiln_in_bell bell;
static long counter, taken;

static void *count(void *arg)
{
    for (int i = 0; i < TIMES; i++) {
        kiln_in_latch_take(&latch);
        counter++;
        kiln_in_latch_give(&latch);
    }
    return arg;
}

TEST(latch, one_at_a_time)
{
    pthread_t threads[THREADS];

    counter = 0;
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, count, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(counter, THREADS * TIMES);
    CHECK(kiln_in_latch_try(&latch));
    CHECK(!kiln_in_latch_try(&latch));
    kiln_in_latch_give(&latch);
}

/* Takes what is there, one by one, until there is none and will be none. */
static void *take(void *arg)
{
    bool last = false;

    while (!last) {
        kiln_in_latch_take(&latch);
        while (counter == 0)
            CHECK(kiln_in_bell_wait(&bell, &latch, NULL));
        last = counter < 0;
        if (!last) {
            counter--;
            taken++;
        }
        kiln_in_latch_give(&latch);
    }
    return arg;
}

TEST(latch, who_waits_for_a_bell_hears_it)
{
    pthread_t threads[THREADS];
    bool all = false;

    counter = taken = 0;
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, take, NULL), 0);
    for (int i = 0; i < TIMES; i++) {
        kiln_in_latch_take(&latch);
        counter++;
        kiln_in_bell_ring(&bell, 1);
        kiln_in_latch_give(&latch);
    }
    while (!all) {
        kiln_in_latch_take(&latch);
        all = counter == 0;
        if (all)
            counter = -1;
        kiln_in_bell_ring(&bell, THREADS);
        kiln_in_latch_give(&latch);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(taken, TIMES);
}

TEST(latch, a_time_that_is_past_ends_a_wait_and_errno_stays)
{
    struct timespec past = {0};

    errno = EXDEV;
    kiln_in_latch_take(&latch);
    CHECK(!kiln_in_bell_wait(&bell, &latch, &past));
    CHECK_EQ(errno, EXDEV);
    CHECK(!kiln_in_latch_try(&latch));
    kiln_in_latch_give(&latch);
}

TEST(latch, a_bell_that_was_rung_meanwhile_is_heard_at_once)
{
    uint32_t before = atomic_load(&bell.rung);
    struct timespec past = {0};

    CHECK(!kiln_in_bell_hear(&bell, before, &past));
    kiln_in_bell_ring(&bell, 1);
    CHECK(kiln_in_bell_hear(&bell, before, &past));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/bell.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "test.h"

enum { TIMES = 20000 };

static struct kiln_in_bell bell, answer;
static _Atomic int asked, answered;

static const struct timespec past = {0};

static struct timespec in_an_hour(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 3600;
    return until;
}

static void wait_for(struct kiln_in_bell *from, _Atomic int *count, int at_least)
{
    struct timespec until = in_an_hour();
    uint32_t rung = atomic_load(&from->rung);

    while (atomic_load(count) < at_least) {
        CHECK(kiln_in_bell_wait(from, rung, &until));
        rung = atomic_load(&from->rung);
    }
}

static void *answer_all(void *arg)
{
    for (int i = 1; i <= TIMES; i++) {
        wait_for(&bell, &asked, i);
        atomic_store(&answered, i);
        kiln_in_bell_ring(&answer);
    }
    return arg;
}

TEST(bell, each_ring_wakes_the_thread_that_waits)
{
    pthread_t thread;

    asked = answered = 0;
    CHECK_EQ(pthread_create(&thread, NULL, answer_all, NULL), 0);
    for (int i = 1; i <= TIMES; i++) {
        atomic_store(&asked, i);
        kiln_in_bell_ring(&bell);
        wait_for(&answer, &answered, i);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(answered, TIMES);
}

static void ring_in_handler(int signal)
{
    (void)signal;
    kiln_in_bell_ring(&bell);
}

TEST(bell, a_signal_handler_can_ring)
{
    struct timespec until = in_an_hour();
    uint32_t before = atomic_load(&bell.rung);
    void (*kept)(int) = signal(SIGUSR1, ring_in_handler);

    raise(SIGUSR1);
    CHECK(kiln_in_bell_wait(&bell, before, &until));
    signal(SIGUSR1, kept);
}

TEST(bell, a_time_in_the_past_ends_the_wait_and_errno_stays)
{
    errno = EXDEV;
    CHECK(!kiln_in_bell_wait(&bell, atomic_load(&bell.rung), &past));
    CHECK_EQ(errno, EXDEV);
}

TEST(bell, a_ring_before_the_wait_is_not_missed)
{
    uint32_t before = atomic_load(&bell.rung);

    CHECK(!kiln_in_bell_wait(&bell, before, &past));
    kiln_in_bell_ring(&bell);
    CHECK(kiln_in_bell_wait(&bell, before, &past));
}

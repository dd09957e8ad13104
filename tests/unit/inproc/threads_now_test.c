/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/keep/threads_now.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/sample/lock.h"
#include "inproc/sample/threads.h"
#include "inproc/start.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"
#include "test.h"

static void begin(void)
{
    kiln_in_settings.profiles = KILN_PROFILE_LOCK | KILN_PROFILE_THREADS;
    kiln_in_settings.depth = 64;
    kiln_in_settings.lock_rate_ns = 1000000;
    CHECK_OK(kiln_in_threads_init(7));
    CHECK_OK(kiln_in_lock_start());
    kiln_in_unwind_work();
    atomic_store(&kiln_in_on, 1);
}

static void end(void)
{
    atomic_store(&kiln_in_on, 0);
    kiln_in_thread_end();
}

/* ---- a thread that waits, as hooks would make it ---- */

struct waiter {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_ours, is_timed;
    bool waits, goes_on;
    _Atomic int32_t tid;
};

static void *wait_in(void *arg)
{
    struct waiter *waiter = arg;
    struct kiln_in_stay stay;
    bool timed = waiter->is_timed &&
                 kiln_in_stay_begin(&stay, KILN_IN_STAY_CONDITION, &waiter->changed, KILN_IN_FRAME);

    atomic_store(&waiter->tid, (int32_t)syscall(SYS_gettid));
    if (waiter->is_ours)
        kiln_in_thread_is_ours(true);
    pthread_setname_np(pthread_self(), "clerk");
    pthread_mutex_lock(&waiter->lock);
    waiter->waits = true;
    pthread_cond_broadcast(&waiter->changed);
    while (!waiter->goes_on)
        pthread_cond_wait(&waiter->changed, &waiter->lock);
    pthread_mutex_unlock(&waiter->lock);
    if (timed)
        kiln_in_stay_end(&stay, true);
    kiln_in_thread_is_ours(false);
    return NULL;
}

static void start(struct waiter *waiter)
{
    pthread_mutex_init(&waiter->lock, NULL);
    pthread_cond_init(&waiter->changed, NULL);
    CHECK_OK(pthread_create(&waiter->thread, NULL, wait_in, waiter));
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->waits)
        pthread_cond_wait(&waiter->changed, &waiter->lock);
    pthread_mutex_unlock(&waiter->lock);
}

static void stop(struct waiter *waiter)
{
    pthread_mutex_lock(&waiter->lock);
    waiter->goes_on = true;
    pthread_cond_broadcast(&waiter->changed);
    pthread_mutex_unlock(&waiter->lock);
    CHECK_OK(pthread_join(waiter->thread, NULL));
}

/* ---- looking ---- */

/* Whether a stack has a frame of the function above. */
static bool is_in_wait(uint32_t stack)
{
    uint64_t low = (uint64_t)(uintptr_t)wait_in;
    const uint64_t *pcs;
    unsigned n = kiln_in_stack_get(stack, &pcs);

    for (unsigned i = 0; i < n; i++) {
        if (pcs[i] > low && pcs[i] < low + 4096)
            return true;
    }
    return false;
}

struct seen {
    int32_t tid;
    unsigned n;
    struct kiln_in_thread_now now;
};

static void look(const struct kiln_in_thread_now *now, void *arg)
{
    struct seen *seen = arg;

    if (now->tid != seen->tid)
        return;
    seen->n++;
    seen->now = *now;
}

static struct seen see(int32_t tid)
{
    struct seen seen = {.tid = tid};

    CHECK_OK(kiln_in_threads_now(look, &seen));
    return seen;
}

/* It has said that it is about to. */
static struct seen see_asleep(int32_t tid)
{
    struct seen seen;

    do
        seen = see(tid);
    while (seen.n == 1 && !seen.now.sleeps);
    return seen;
}

TEST(threads_now, the_calling_thread_is_there_with_its_name)
{
    struct seen seen;

    begin();
    pthread_setname_np(pthread_self(), "the main one");
    seen = see((int32_t)syscall(SYS_gettid));
    CHECK_EQ(seen.n, 1);
    CHECK_TEXT(seen.now.name, "the main one");
    end();
}

TEST(threads_now, who_waits_in_a_hook_is_seen_there)
{
    struct waiter waiter = {.is_timed = true};
    struct seen seen;

    begin();
    start(&waiter);
    seen = see_asleep(waiter.tid);
    CHECK_EQ(seen.n, 1);
    CHECK_TEXT(seen.now.name, "clerk");
    CHECK_EQ(seen.now.seen, KILN_IN_SEEN_ASLEEP);
    CHECK_TEXT(kiln_in_seen_word(seen.now.seen), "asleep");
    CHECK_NE(seen.now.stack, 0);
    CHECK(!is_in_wait(seen.now.stack)); /* which is the hook here */
    stop(&waiter);
    end();
}

TEST(threads_now, others_that_sleep_are_looked_at_from_outside)
{
    struct waiter waiter = {0};
    struct seen seen;

    begin();
    start(&waiter);
    seen = see_asleep(waiter.tid);
    CHECK_EQ(seen.n, 1);
    CHECK_EQ(seen.now.seen, KILN_IN_SEEN_ASLEEP);
    CHECK(is_in_wait(seen.now.stack));
    stop(&waiter);
    end();
}

TEST(threads_now, our_own_threads_are_not_among_them)
{
    struct waiter waiter = {.is_ours = true};

    begin();
    start(&waiter);
    CHECK_EQ(see(waiter.tid).n, 0);
    stop(&waiter);
    end();
}

TEST(threads_now, a_made_thread_is_one_record_of_its_maker)
{
    struct kiln_in_record record;
    struct kiln_in_thread *thread;

    begin();
    kiln_in_thread_created();
    thread = kiln_in_enter();
    CHECK(thread);
    kiln_in_leave(thread);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &record), 1);
    CHECK_EQ(record.kind, KILN_IN_CREATE);
    CHECK(record.count == 1);
    CHECK_NE(record.stack, 0);
    CHECK_EQ(kiln_in_ring_take(&thread->ring, &record), 0);
    end();
}

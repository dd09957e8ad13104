/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets a block, who passes through, and what becomes of blocks when threads and forks end. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"
#include "test.h"

/* ThreadSanitizer takes a child on the parent's memory for a thread it was not told of. */
extern char __tsan_init __attribute__((weak));

static void begin(void)
{
    CHECK_OK(kiln_in_threads_init(42));
    kiln_in_on = KILN_IN_ON;
}

static void count(struct kiln_in_thread *thread, void *arg)
{
    (void)thread;
    ++*(unsigned *)arg;
}

static unsigned blocks(void)
{
    unsigned n = 0;

    kiln_in_threads_each(count, &n);
    return n;
}

TEST(thread, passes_through_while_nothing_is_started)
{
    kiln_in_on = KILN_IN_OFF;
    CHECK(!kiln_in_enter());
}

TEST(thread, is_inside_once)
{
    struct kiln_in_thread *thread;

    begin();
    thread = kiln_in_enter();
    CHECK(thread);
    CHECK(!kiln_in_enter());
    kiln_in_leave(thread);
    CHECK(kiln_in_enter() == thread);
    kiln_in_leave(thread);
}

TEST(thread, keeps_errno)
{
    struct kiln_in_thread *thread;

    begin();
    errno = EBADMSG;
    thread = kiln_in_enter();
    errno = 0;
    kiln_in_leave(thread);
    CHECK_EQ(errno, EBADMSG);
    errno = EBADMSG;
    kiln_in_hush();
    CHECK(!kiln_in_enter());
    kiln_in_unhush();
    CHECK_EQ(errno, EBADMSG);
}

static void *enter_once(void *arg)
{
    struct kiln_in_thread *thread = kiln_in_enter();

    if (thread)
        kiln_in_leave(thread);
    *(struct kiln_in_thread **)arg = thread;
    return NULL;
}

static struct kiln_in_thread *block_of_a_thread(void)
{
    struct kiln_in_thread *block = NULL;
    pthread_t thread;

    CHECK_OK(pthread_create(&thread, NULL, enter_once, &block));
    CHECK_OK(pthread_join(thread, NULL));
    return block;
}

TEST(thread, that_ended_leaves_its_block_to_the_next)
{
    struct kiln_in_thread *first;

    begin();
    first = block_of_a_thread();
    CHECK(first && first != kiln_in_line.thread);
    CHECK(block_of_a_thread() != first);
    kiln_in_threads_sweep(false);
    CHECK(block_of_a_thread());
    kiln_in_threads_sweep(false);
    CHECK_EQ(blocks(), kiln_in_line.thread ? 1 : 0);
}

TEST(thread, that_ended_keeps_its_block_until_its_records_are_read)
{
    struct kiln_in_record record = {0};
    struct kiln_in_thread *block;

    begin();
    block = block_of_a_thread();
    CHECK_OK(kiln_in_ring_put(block, &record));
    kiln_in_threads_sweep(false);
    CHECK_EQ(block->state, KILN_IN_THREAD_ENDED);
    CHECK_EQ(kiln_in_ring_take(&block->ring, &record), 1);
    kiln_in_threads_sweep(false);
    CHECK_EQ(block->state, KILN_IN_THREAD_FREE);
}

TEST(thread, that_died_unseen_is_found)
{
    struct kiln_in_thread *block;

    begin();
    block = block_of_a_thread();
    block->state = KILN_IN_THREAD_RUNS;
    block->tid = 0x3ffffff;
    kiln_in_threads_sweep(true);
    CHECK_EQ(block->state, KILN_IN_THREAD_FREE);
}

TEST(thread, numbers_are_the_same_for_the_same_seed)
{
    struct kiln_in_thread a = {.random = 7}, b = {.random = 7};
    double sum = 0;

    for (unsigned i = 0; i < 10000; i++) {
        double unit = kiln_in_random_unit(&a);

        CHECK(unit > 0 && unit <= 1);
        CHECK(unit == kiln_in_random_unit(&b));
        sum += unit;
    }
    CHECK(sum > 4900 && sum < 5100);
}

TEST(thread, of_a_vfork_child_leaves_no_trace)
{
    struct kiln_in_thread *before;
    pid_t child;
    int status;

    if (&__tsan_init)
        SKIP("not under ThreadSanitizer");
    begin();
    before = kiln_in_enter();
    kiln_in_leave(before);
    child = vfork();
    if (child == 0)
        _exit(kiln_in_enter() ? 1 : 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(kiln_in_line.thread == before);
    CHECK(!kiln_in_is_inside());
}

static int enter_on_a_strangers_line(void *arg)
{
    *(struct kiln_in_thread **)arg = kiln_in_enter();
    return 0;
}

TEST(thread, without_storage_of_its_own_passes_through)
{
    static char stack[64 << 10] __attribute__((aligned(16)));
    struct kiln_in_thread *entered = (struct kiln_in_thread *)1;
    int status;
    pid_t child;

    if (&__tsan_init)
        SKIP("not under ThreadSanitizer");
    begin();
    kiln_in_leave(kiln_in_enter());
    child = clone(enter_on_a_strangers_line, stack + sizeof(stack), CLONE_VM | SIGCHLD, &entered);
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(!entered);
    CHECK(!kiln_in_is_inside());
}

TEST(thread, of_a_forked_child_is_the_only_one)
{
    struct kiln_in_thread *own, *other;
    pid_t child;
    int status;

    begin();
    own = kiln_in_enter();
    kiln_in_lost(own, KILN_IN_LOST_RING);
    kiln_in_leave(own);
    other = block_of_a_thread();
    child = fork();
    if (child == 0) {
        bool well;

        kiln_in_blocks_forked();
        well = kiln_in_enter() == own && kiln_in_lost_total(KILN_IN_LOST_RING) == 0 &&
               other->state == KILN_IN_THREAD_FREE && blocks() == 1;
        _exit(well ? 0 : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void *churn(void *arg)
{
    for (unsigned i = 0; i < 200; i++)
        CHECK(block_of_a_thread());
    return arg;
}

TEST(thread, blocks_survive_many_that_come_and_go)
{
    pthread_t threads[4];

    begin();
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, churn, NULL));
    for (unsigned i = 0; i < 2000; i++)
        kiln_in_threads_sweep(i % 10 == 0);
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    kiln_in_threads_sweep(true);
    CHECK(blocks() <= 1);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/sample/loop.h"

#include <stddef.h>

#include "inproc/sample/cpu.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

#define FORGOTTEN_NS (60 * (uint64_t)1000000000)

/* ---- a turn that took long ---- */

static void put(struct kiln_in_thread *thread, uint32_t stack, double share, uint64_t busy_ns)
{
    struct kiln_in_record record;

    kiln_in_record_begin(&record, KILN_IN_LOOP);
    record.stack = stack;
    record.count = share;
    record.value = share * (double)busy_ns;
    kiln_in_ring_put(thread, &record);
}

/* Of those that were replaced by chance nothing is known but that there were more. */
static double weight_of(const struct kiln_in_loop *loop, uint32_t i)
{
    return loop->caught > KILN_IN_LOOP_STACKS ? 1 : loop->weights[i];
}

static void tell(uint64_t busy_ns)
{
    struct kiln_in_thread *thread = kiln_in_enter();
    struct kiln_in_loop *loop;
    double all = 0;
    uint32_t n;

    if (!thread)
        return;
    loop = &thread->loop;
    n = loop->caught < KILN_IN_LOOP_STACKS ? loop->caught : KILN_IN_LOOP_STACKS;
    for (uint32_t i = 0; i < n; i++)
        all += weight_of(loop, i);
    for (uint32_t i = 0; i < n; i++)
        put(thread, loop->stacks[i], weight_of(loop, i) / all, busy_ns);
    if (n == 0)
        put(thread, kiln_in_stack_here(thread), 1, busy_ns);
    kiln_in_leave(thread);
}

/* ---- turns ---- */

void kiln_in_loop_polls(int64_t key, uint64_t now_ns)
{
    struct kiln_in_thread *thread = kiln_in_line.thread;
    uint64_t busy_ns;

    if (!thread || thread->loop.key != key || !thread->loop.since_ns)
        return;
    busy_ns = now_ns - thread->loop.since_ns;
    if (busy_ns >= kiln_in_settings.lag_ns && kiln_in_loop_is_there(&thread->loop))
        tell(busy_ns);
    thread->loop.since_ns = 0;
}

/* epoll is for loops, poll() also for one answer; and what is not polled any more is no loop. */
static bool takes_over(const struct kiln_in_loop *loop, int64_t key, uint64_t now_ns)
{
    return loop->key == 0 || (loop->key < 0 && key > 0) || now_ns - loop->last_ns > FORGOTTEN_NS;
}

static struct kiln_in_thread *block_of_this(void)
{
    struct kiln_in_thread *thread = kiln_in_line.thread;

    if (thread)
        return thread;
    thread = kiln_in_enter();
    if (thread)
        kiln_in_leave(thread);
    return thread;
}

void kiln_in_loop_turns(int64_t key, uint64_t now_ns)
{
    struct kiln_in_thread *thread = block_of_this();
    struct kiln_in_loop *loop;
    bool was_there;

    if (!thread)
        return;
    loop = &thread->loop;
    if (loop->key != key) {
        if (!takes_over(loop, key, now_ns))
            return;
        *loop = (struct kiln_in_loop){.key = key};
    }
    loop->caught = 0;
    loop->last_ns = now_ns;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    loop->since_ns = now_ns;
    was_there = kiln_in_loop_is_there(loop);
    if (loop->turns < KILN_IN_LOOP_TURNS)
        loop->turns++;
    if (!was_there && kiln_in_loop_is_there(loop))
        kiln_in_cpu_thread_loops();
}

void kiln_in_loop_caught(struct kiln_in_thread *thread, uint32_t stack, uint64_t ns)
{
    struct kiln_in_loop *loop = &thread->loop;
    uint32_t at = loop->caught++;

    if (at >= KILN_IN_LOOP_STACKS)
        at = (uint32_t)(kiln_in_random(thread) % loop->caught);
    if (at >= KILN_IN_LOOP_STACKS)
        return;
    loop->stacks[at] = stack;
    loop->weights[at] = (float)ns;
}

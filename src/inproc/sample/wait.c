/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most waits are short and not sampled: that is decided with a random number in the thread's line,
 * before its block is looked at.
 */
#include "inproc/sample/wait.h"

#include <errno.h>
#include <stddef.h>

#include "inproc/sample/loop.h"
#include "inproc/start.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

enum { LOOP_SHARE = 4 /* a wait of this part of lag_ns is one that holds a loop */ };

_Atomic uint32_t kiln_in_measures;

const char *kiln_in_reason_word(enum kiln_in_reason reason)
{
    static const char *const words[KILN_IN_REASONS] = {
#define X(name, word) word,
        KILN_IN_REASON_MAP(X)
#undef X
    };

    return words[reason < KILN_IN_REASONS ? reason : KILN_IN_REASON_OTHER];
}

/* ---- chance ---- */

static uint64_t random_below(uint64_t limit)
{
    uint64_t x = kiln_in_line.wait_random;

    if (x == 0)
        x = ((uint64_t)(uintptr_t)&kiln_in_line ^ kiln_in_settings.seed) * 0x9e3779b97f4a7c15 | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    kiln_in_line.wait_random = x;
    return (uint64_t)((double)(x >> 11) * 0x1p-53 * (double)limit);
}

static bool is_chosen(uint64_t ns)
{
    uint64_t rate_ns = kiln_in_settings.wait_rate_ns;

    return ns >= rate_ns || random_below(rate_ns) < ns;
}

/* ---- a wait that is over ---- */

static void put(struct kiln_in_thread *thread, uint32_t stack, uint64_t ns,
                enum kiln_in_reason reason)
{
    double share =
        ns < kiln_in_settings.wait_rate_ns ? (double)ns / (double)kiln_in_settings.wait_rate_ns : 1;
    struct kiln_in_record record;

    kiln_in_record_begin(&record, KILN_IN_WAIT);
    record.reason = (uint8_t)reason;
    record.stack = stack;
    record.count = 1 / share;
    record.value = (double)ns / share;
    kiln_in_ring_put(thread, &record);
}

struct wait {
    uint64_t ns;
    enum kiln_in_reason reason;
    uint32_t stack; /* 0: it is still to be taken */
    bool chosen;
};

static void look(struct kiln_in_thread *thread, const struct wait *wait)
{
    uint32_t stack = wait->stack ? wait->stack : kiln_in_stack_here(thread);

    atomic_store_explicit(&thread->last_stack, stack, memory_order_relaxed);
    if (wait->chosen)
        put(thread, stack, wait->ns, wait->reason);
    if (kiln_in_loop_is_held(&thread->loop))
        kiln_in_loop_caught(thread, stack, wait->ns);
}

static bool holds_loop(uint64_t ns)
{
    const struct kiln_in_thread *thread = kiln_in_line.thread;

    return thread && kiln_in_loop_is_held(&thread->loop) &&
           ns >= kiln_in_settings.lag_ns / LOOP_SHARE;
}

void kiln_in_wait_took_at(uint64_t ns, enum kiln_in_reason reason, uint32_t stack)
{
    uint32_t measures = atomic_load_explicit(&kiln_in_measures, memory_order_relaxed);
    struct wait wait = {.ns = ns, .reason = reason, .stack = stack};
    struct kiln_in_thread *thread;

    wait.chosen = ns && measures & KILN_IN_WAITS && is_chosen(ns);
    if (!wait.chosen && !(measures & KILN_IN_LOOPS && holds_loop(ns)))
        return;
    thread = kiln_in_enter();
    if (!thread)
        return;
    look(thread, &wait);
    kiln_in_leave(thread);
}

void kiln_in_wait_took(uint64_t ns, enum kiln_in_reason reason)
{
    kiln_in_wait_took_at(ns, reason, 0);
}

void kiln_in_wait_mark(uint64_t frame)
{
    struct kiln_in_thread *thread = kiln_in_line.thread;

    if (!thread && frame && (thread = kiln_in_enter()))
        kiln_in_leave(thread);
    if (thread)
        atomic_store_explicit(&thread->waits_in, frame, memory_order_relaxed);
}

void kiln_in_wait_end(uint64_t since_ns, enum kiln_in_reason reason)
{
    int kept = errno;
    uint64_t now_ns = kiln_in_now_ns();

    kiln_in_wait_mark(0);
    kiln_in_wait_took(now_ns - since_ns, reason);
    errno = kept;
}

/* ---- polls ---- */

struct kiln_in_poll kiln_in_poll_begin(int64_t key, bool sleeps)
{
    uint32_t measures = kiln_in_measured();
    struct kiln_in_poll poll = {.key = key, .sleeps = sleeps};

    if (!(key && measures & KILN_IN_LOOPS) && !(measures && sleeps))
        return poll;
    poll.since_ns = kiln_in_now_ns();
    if (key && measures & KILN_IN_LOOPS)
        kiln_in_loop_polls(key, poll.since_ns);
    return poll;
}

void kiln_in_poll_end(const struct kiln_in_poll *poll)
{
    int kept = errno;
    uint64_t now_ns;

    if (!poll->since_ns)
        return;
    kiln_in_wait_mark(0);
    now_ns = poll->sleeps ? kiln_in_now_ns() : poll->since_ns;
    if (poll->sleeps)
        kiln_in_wait_took(now_ns - poll->since_ns, KILN_IN_REASON_POLL);
    if (poll->key && kiln_in_measured() & KILN_IN_LOOPS)
        kiln_in_loop_turns(poll->key, now_ns);
    errno = kept;
}

void kiln_in_wait_stop(void)
{
    atomic_store(&kiln_in_measures, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wait of d is sampled with the probability p = min(1, d / rate) and weighs 1 / p waits and d / p
 * nanoseconds: sums are right for any lengths, and a waiting thread makes 1 / rate samples a second
 * at most.
 *
 * Walking a stack takes longer than many locks are held, and whoever walks it with the lock in its
 * hands makes all others wait longer.  So the stack is taken before the wait, while there is
 * nothing else to do, where the last wait for the same thing lasted so long that this one is likely
 * to be sampled; and after it only where that came as a surprise, which is one wait in eight at
 * most. Stacks that were taken before are also what is known of threads that are still waiting.
 *
 * The holder is blamed when it lets go: it settles the lock's slot (inproc/sample/slots.h) before,
 * which takes two loads, the time and an exchange, and takes its own stack after.  What the waiters
 * together have waited while it held the lock is sampled as above, and counts once.  Not blamed on
 * anybody: the time between letting go and going on, spin locks, and locks that are let go of
 * inside of the C library.
 */
#include "inproc/sample/lock.h"

#include <stdatomic.h>
#include <stddef.h>

#include "inproc/clock.h"
#include "inproc/sample/draw.h"
#include "inproc/sample/rate.h"
#include "inproc/sample/slots.h"
#include "inproc/sample/wait.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

enum {
    PLACES = 256,
    EARLY_SHARE = 8, /* of a rate: from this length on, the next stack is taken before the wait */
    NS_OF_US = 1000,
    SAMPLES_A_SECOND = 500 /* of waiters, and of holders */
};

/* Waits for locks are waits, and tell where a thread is. */
#define WANTED (KILN_PROFILE_LOCK | KILN_PROFILE_WALL | KILN_PROFILE_THREADS)

static const uint8_t kinds[KILN_IN_STAYS] = {
#define X(name, word, kind) [KILN_IN_STAY_##name] = kind,
    KILN_IN_STAY_MAP(X)
#undef X
};

/* How long the last wait for an object lasted, in microseconds; 0: nobody has waited for it. */
static _Atomic uint32_t last_us[PLACES];
static struct kiln_in_rate waiters, holders;

const char *kiln_in_stay_word(uint8_t reason)
{
    static const char *const words[KILN_IN_STAYS] = {
#define X(name, word, kind) [KILN_IN_STAY_##name] = word,
        KILN_IN_STAY_MAP(X)
#undef X
    };

    return reason < KILN_IN_STAYS ? words[reason] : NULL;
}

/* ---- who waits ---- */

static void put(struct kiln_in_thread *thread, enum kiln_in_kind kind, uint8_t reason,
                const struct kiln_in_drawn *drawn, uint32_t stack)
{
    struct kiln_in_record record;

    kiln_in_record_begin(&record, kind);
    record.reason = reason;
    record.stack = stack;
    record.count = drawn->count;
    record.value = drawn->value;
    (void)kiln_in_ring_put(thread, &record);
}

struct kiln_in_thread *kiln_in_own_block(void)
{
    struct kiln_in_thread *thread;

    if (!kiln_in_is_running())
        return NULL;
    if (kiln_in_line.thread && !kiln_in_is_inside())
        return kiln_in_line.thread;
    thread = kiln_in_enter();
    if (thread)
        kiln_in_leave(thread);
    return thread;
}

static void take_stack(struct kiln_in_stay *stay)
{
    struct kiln_in_thread *thread = kiln_in_enter();

    if (!thread)
        return;
    stay->stack = kiln_in_stack_here(thread);
    kiln_in_leave(thread);
}

/* Of the two profiles that a wait may be sampled for. */
static uint64_t least_rate_ns(void)
{
    uint64_t lock_ns = kiln_in_rate_mean(&waiters), wait_ns = kiln_in_settings.wait_rate_ns;

    return kiln_in_wants(KILN_PROFILE_WALL) && wait_ns < lock_ns ? wait_ns : lock_ns;
}

static bool is_likely(const struct kiln_in_stay *stay)
{
    uint64_t us = atomic_load_explicit(&last_us[stay->place], memory_order_relaxed);

    return us == 0 || us * NS_OF_US >= least_rate_ns() / EARLY_SHARE;
}

bool kiln_in_stay_begin(struct kiln_in_stay *stay, enum kiln_in_stay_for what, const void *object,
                        uint64_t frame)
{
    struct kiln_in_thread *thread = kiln_in_own_block();

    if (!thread || !kiln_in_wants(WANTED))
        return false;
    stay->thread = thread;
    stay->reason = (uint8_t)what;
    stay->place = (uint8_t)(kiln_in_slot_hash(object) >> 56);
    stay->stack = 0;
    stay->since_ns = kiln_in_now_ns();
    stay->slot = what <= KILN_IN_STAY_WRITE ? kiln_in_slot_join(object, stay->since_ns) : NULL;
    stay->outer = atomic_load_explicit(&thread->waits_in, memory_order_relaxed);
    if (is_likely(stay))
        take_stack(stay);
    atomic_store_explicit(&thread->waits_in, frame, memory_order_relaxed);
    return true;
}

static void tell(struct kiln_in_stay *stay, const struct kiln_in_drawn *drawn)
{
    struct kiln_in_thread *thread = kiln_in_enter();

    if (!thread) {
        kiln_in_lost_anywhere(KILN_IN_LOST_INSIDE, 1);
        return;
    }
    if (stay->stack == 0)
        stay->stack = kiln_in_stack_here(thread);
    atomic_store_explicit(&thread->last_stack, stay->stack, memory_order_relaxed);
    put(thread, (enum kiln_in_kind)kinds[stay->reason], stay->reason, drawn, stay->stack);
    kiln_in_leave(thread);
}

static enum kiln_in_left how_it_left(const struct kiln_in_stay *stay, bool got)
{
    if (!got)
        return KILN_IN_LEFT_WITHOUT;
    return stay->reason == KILN_IN_STAY_READ ? KILN_IN_LEFT_WITH_OTHERS : KILN_IN_LEFT_ALONE;
}

void kiln_in_stay_end(struct kiln_in_stay *stay, bool got)
{
    uint64_t now_ns = kiln_in_now_ns();
    uint64_t ns = now_ns > stay->since_ns ? now_ns - stay->since_ns : 0;
    uint64_t us = ns / NS_OF_US;
    struct kiln_in_drawn drawn;

    if (stay->slot)
        kiln_in_slot_leave(stay->slot, now_ns, how_it_left(stay, got));
    atomic_store_explicit(&last_us[stay->place],
                          us == 0           ? 1
                          : us > UINT32_MAX ? UINT32_MAX
                                            : (uint32_t)us,
                          memory_order_relaxed);
    if (kiln_in_wants(KILN_PROFILE_LOCK) && kiln_in_is_running() &&
        kiln_in_draw(stay->thread, &waiters, ns, now_ns, &drawn))
        tell(stay, &drawn);
    if (stay->reason != KILN_IN_STAY_SPIN)
        kiln_in_wait_took_at(ns, KILN_IN_REASON_FUTEX, stay->stack);
    atomic_store_explicit(&stay->thread->waits_in, stay->outer, memory_order_relaxed);
}

/* ---- who held it ---- */

uint64_t kiln_in_holder_settle(const void *lock)
{
    if (!kiln_in_is_running() || kiln_in_is_inside() || !kiln_in_wants(KILN_PROFILE_LOCK))
        return 0;
    return kiln_in_slot_settle(lock, kiln_in_now_ns());
}

void kiln_in_holder_tell(uint64_t waited_ns, enum kiln_in_stay_for what)
{
    uint64_t now_ns = kiln_in_now_ns();
    struct kiln_in_thread *thread = kiln_in_own_block();
    struct kiln_in_drawn drawn;

    if (!thread || !kiln_in_draw(thread, &holders, waited_ns, now_ns, &drawn))
        return;
    thread = kiln_in_enter();
    if (!thread) {
        kiln_in_lost_anywhere(KILN_IN_LOST_INSIDE, 1);
        return;
    }
    put(thread, KILN_IN_HOLDER, (uint8_t)what, &drawn, kiln_in_stack_here(thread));
    kiln_in_leave(thread);
}

/* ---- the part ---- */

int kiln_in_lock_start(void)
{
    uint64_t now_ns = kiln_in_now_ns();

    kiln_in_rate_init(&waiters, kiln_in_settings.lock_rate_ns, SAMPLES_A_SECOND, now_ns);
    kiln_in_rate_init(&holders, kiln_in_settings.lock_rate_ns, SAMPLES_A_SECOND, now_ns);
    return 0;
}

void kiln_in_lock_stop(void)
{
}

void kiln_in_lock_forked(void)
{
    kiln_in_slots_forget();
}

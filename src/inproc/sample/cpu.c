/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tick that finds the library at work on its thread is added to the next one: the work is part of
 * what the thread does, and its stack cannot be walked just then.
 */
#include "inproc/sample/cpu.h"

#include <errno.h>
#include <stddef.h>

#include "inproc/clock.h"
#include "inproc/sample/loop.h"
#include "inproc/sample/timer.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/ring.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

#define NS_PER_S  UINT64_C(1000000000)
#define TICKS_MAX (1u << 30)
/* (sqrt(5) - 1) / 40: a tenth of the period, and a twentieth, are met as evenly as can be. */
#define UNEVEN    0.0309016994

static _Atomic bool samples_run;
static bool is_open;

/* ---- a tick ---- */

static uint32_t stack_of(struct kiln_in_thread *thread, const void *ucontext)
{
    unsigned n = kiln_in_unwind_context(thread, ucontext, kiln_in_settings.depth);
    uint32_t stack = n ? kiln_in_stack_id(thread->pcs, n) : 0;

    if (n && stack == 0)
        kiln_in_lost(thread, KILN_IN_LOST_STACKS);
    return stack;
}

static void put(struct kiln_in_thread *thread, uint32_t stack, double ticks, uint64_t period_ns)
{
    struct kiln_in_record record;

    kiln_in_record_begin(&record, KILN_IN_CPU);
    record.stack = stack;
    record.count = ticks;
    record.value = ticks * (double)period_ns;
    kiln_in_ring_put(thread, &record);
}

static void look(struct kiln_in_thread *thread, uint32_t ticks, const void *ucontext)
{
    bool samples = atomic_load_explicit(&samples_run, memory_order_relaxed);
    bool held = kiln_in_loop_is_held(&thread->loop);
    uint64_t period_ns = kiln_in_timer_period_ns(true);
    uint32_t stack;

    if (period_ns == 0 || (!samples && !held))
        return;
    stack = stack_of(thread, ucontext);
    thread->ticks.stack = stack;
    atomic_store_explicit(&thread->last_stack, stack, memory_order_relaxed);
    if (samples)
        put(thread, stack, ticks, period_ns);
    if (held)
        kiln_in_loop_caught(thread, stack, ticks * period_ns);
}

/* Those so far, of this setting of its timer. */
static struct kiln_in_ticks *ticks_of(struct kiln_in_thread *thread)
{
    uint64_t first_ns = atomic_load_explicit(&thread->timer_first_ns, memory_order_relaxed);

    if (thread->ticks.first_ns != first_ns) {
        thread->ticks.first_ns = first_ns;
        thread->ticks.told = 0;
    }
    return &thread->ticks;
}

void kiln_in_cpu_tick(enum kiln_in_tick tick, int overrun, void *ucontext)
{
    uint32_t ticks = (overrun > 0 ? (uint32_t)overrun : 0) + 1;
    int kept = errno;
    struct kiln_in_thread *thread;

    thread = kiln_in_enter();
    if (!thread) {
        if (kiln_in_is_inside() && kiln_in_line.missed < TICKS_MAX)
            kiln_in_line.missed += ticks;
        return;
    }
    if (tick == KILN_IN_TICK_OWN || !kiln_in_timer_has(thread)) {
        ticks += kiln_in_line.missed;
        kiln_in_line.missed = 0;
        ticks_of(thread)->told += ticks;
        look(thread, ticks, ucontext);
    }
    kiln_in_leave(thread);
    errno = kept;
}

/* ---- threads ---- */

void kiln_in_cpu_thread_begins(void)
{
    struct kiln_in_thread *thread;

    if (!kiln_in_timer_period_ns(false))
        return;
    thread = kiln_in_enter();
    if (!thread)
        return;
    kiln_in_timer_begin(thread);
    kiln_in_leave(thread);
}

/* What a thread was made for, where no tick has found it anywhere. */
static uint32_t stack_of_all(struct kiln_in_thread *thread)
{
    return thread->began_at ? kiln_in_stack_id(&thread->began_at, 1) : kiln_in_stack_here(thread);
}

void kiln_in_cpu_thread_ends(struct kiln_in_thread *thread)
{
    struct kiln_in_ticks *ticks = ticks_of(thread);
    uint64_t period_ns = kiln_in_timer_period_ns(false);
    uint64_t now_ns, due;

    kiln_in_line.missed = 0;
    if (period_ns == 0 || ticks->first_ns == 0 || kiln_in_is_sandboxed() ||
        !atomic_load_explicit(&samples_run, memory_order_relaxed))
        return;
    now_ns = kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (now_ns < ticks->first_ns)
        return;
    due = (now_ns - ticks->first_ns) / period_ns + 1;
    if (due <= ticks->told)
        return;
    put(thread, ticks->stack ? ticks->stack : stack_of_all(thread), (double)(due - ticks->told),
        period_ns);
    ticks->told = due;
}

void kiln_in_cpu_thread_loops(void)
{
    if (!kiln_in_timer_period_ns(false) && kiln_in_timer_period_ns(true) && kiln_in_line.thread)
        kiln_in_timer_begin(kiln_in_line.thread);
}

/* ---- start and stop ---- */

static uint64_t unevenly(uint64_t period_ns)
{
    return period_ns + (uint64_t)((double)period_ns * UNEVEN);
}

uint64_t kiln_in_cpu_period_ns(void)
{
    return unevenly(NS_PER_S / (kiln_in_settings.cpu_hz ? kiln_in_settings.cpu_hz : 1));
}

void kiln_in_cpu_set(bool samples, bool loops)
{
    if (!is_open)
        return;
    atomic_store(&samples_run, samples);
    kiln_in_timer_set(samples ? kiln_in_cpu_period_ns() : 0,
                      loops ? unevenly(kiln_in_settings.lag_ns / 2) : 0);
}

void kiln_in_cpu_work(void)
{
    if (!is_open)
        return;
    if (kiln_in_signal_move() != 0)
        kiln_in_timer_renew(); /* or away with all, where no signal is left */
    else
        kiln_in_timer_scan();
}

int kiln_in_cpu_open(void)
{
    int r = kiln_in_signal_open();

    if (r < 0) {
        kiln_in_say(true, "no CPU profiles: every signal that could tell the time is in use");
        return r;
    }
    if (!kiln_in_timer_is_harmless()) {
        kiln_in_say(true, "no CPU profiles: this kernel would interrupt system calls that wait");
        return -ENOTSUP;
    }
    is_open = true;
    return 0;
}

void kiln_in_cpu_close(void)
{
    kiln_in_cpu_set(false, false);
    is_open = false;
}

void kiln_in_cpu_forked(void)
{
    kiln_in_timer_forked();
}

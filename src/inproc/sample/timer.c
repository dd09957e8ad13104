/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread->timer is the timer's id << 32, a serial number << 2 and a state: whoever makes a timer,
 * the thread or the keeper, first changes NONE to MAKING, and finds at its end whether the thread
 * has ended meanwhile, even if the block has a new owner.  Ids of timers are not used again by the
 * kernel before all others were: a late call for one that is gone does nothing.
 *
 * In a sandbox (inproc/thread/sandbox.h) threads of the program leave timers alone, for which a
 * filter may end the process: those that are there go on, a thread that ends leaves its own behind
 * (LEFT), and one that begins is given one by the keeper, if that has no filter on itself.
 *
 * Threads without a block are few (those that never allocated): their timers are in a list of the
 * keeper's, and ticks of those count only as long as the thread has no timer of its own.  A thread
 * that may have none at all (inproc/sample/narrow.h) looks for itself in that list from its end, as
 * places there are filled from behind; and what it might have missed, the keeper does not set.
 */
#include "inproc/sample/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/sample/loop.h"
#include "inproc/sample/narrow.h"
#include "inproc/sample/signal.h"
#include "inproc/sample/threads.h"
#include "inproc/start.h"
#include "inproc/thread/by_id.h"
#include "inproc/thread/numbers.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/thread.h"

#define NS_PER_S 1000000000

enum {
    NONE,
    MAKING,
    MADE,
    LEFT,
    STATES = 3,
    SERIAL = 4,
    FOUND_MAX = 1024,
    CLOCK_THREAD = 6 /* of a clock id: the time a thread ran, by the scheduler */
};

struct found {
    int32_t tid, timer;
};

static _Atomic uint64_t period_of_all, period_of_loops;
static _Atomic(struct found) found[FOUND_MAX];
static _Atomic uint32_t n_found;
static _Atomic uint32_t refusals; /* of threads that will have no timer */

uint64_t kiln_in_timer_period_ns(bool is_loop)
{
    uint64_t period_ns = atomic_load_explicit(&period_of_all, memory_order_relaxed);

    if (period_ns || !is_loop)
        return period_ns;
    return atomic_load_explicit(&period_of_loops, memory_order_relaxed);
}

/* ---- what the kernel says of a thread ---- */

/* A number in its status, after `name`; `unknown` where that cannot be read. */
static uint64_t status_of(int32_t tid, const char *name, int base, uint64_t unknown)
{
    char path[64], text[4096];
    const char *at;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return unknown;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, base) : unknown;
}

/* Whether the calling thread may have to do with timers. */
static bool may_use(void)
{
    int32_t tid;

    if (!kiln_in_is_sandboxed())
        return true;
    tid = (int32_t)syscall(SYS_gettid);
    return kiln_in_thread_id_is_ours(tid) && status_of(tid, "\nSeccomp:", 10, 1) == 0;
}

/* ---- one timer ---- */

static uint64_t random_number(void)
{
    static _Atomic uint64_t state;
    uint64_t x = atomic_fetch_add(&state, 0x9e3779b97f4a7c15);

    if (x == 0)
        atomic_fetch_add(&state, kiln_in_settings.seed ? kiln_in_settings.seed : kiln_in_now_ns());
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static struct timespec span(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static clockid_t clock_of(int32_t tid)
{
    return (clockid_t)(~(unsigned)tid << 3 | CLOCK_THREAD);
}

static int make(int32_t tid, enum kiln_in_tick tick, int32_t *ret_timer)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = kiln_in_signal_now(),
                             .sigev_value.sival_ptr = kiln_in_signal_cookie(tick)};

    if (event.sigev_signo == 0)
        return -EBUSY;
    event._sigev_un._tid = tid;
    return syscall(SYS_timer_create, clock_of(tid), &event, ret_timer) == 0 ? 0 : -errno;
}

/* `first_ns` is of the thread's CPU time. */
static void set(int32_t timer, uint64_t period_ns, uint64_t first_ns)
{
    struct itimerspec time = {.it_interval = span(period_ns), .it_value = span(first_ns)};

    syscall(SYS_timer_settime, timer, TIMER_ABSTIME, &time, NULL);
}

static uint64_t first_expiry(int32_t tid, uint64_t period_ns)
{
    return period_ns ? kiln_in_clock_ns(clock_of(tid)) + 1 + random_number() % period_ns : 0;
}

static void drop(int32_t timer)
{
    syscall(SYS_timer_delete, timer);
}

/* Of one that is known to nobody else, by the keeper. */
static void set_found(struct found it)
{
    uint64_t period_ns = kiln_in_narrow_unknown() ? 0 : kiln_in_timer_period_ns(false);

    set(it.timer, period_ns, first_expiry(it.tid, period_ns));
}

/* ---- of threads with a block ---- */

static uint64_t period_of(const struct kiln_in_thread *thread)
{
    if (atomic_load(&thread->narrow))
        return 0;
    return kiln_in_timer_period_ns(kiln_in_loop_is_there(&thread->loop));
}

static uint32_t state_of(uint64_t word)
{
    return (uint32_t)word & STATES;
}

/* The same turn in another state. */
static uint64_t turned(uint64_t word, uint32_t state, int32_t timer)
{
    return (uint64_t)(uint32_t)timer << 32 | ((uint32_t)word & ~(uint32_t)STATES) | state;
}

static uint64_t next_turn(uint64_t word, uint32_t state)
{
    return turned((uint32_t)word + SERIAL, state, 0);
}

/* Of one that is made. */
static void set_of(struct kiln_in_thread *thread, uint64_t word)
{
    int32_t tid = atomic_load(&thread->tid);
    uint64_t period_ns = period_of(thread), first = first_expiry(tid, period_ns);

    atomic_store(&thread->timer_first_ns, first);
    set((int32_t)(word >> 32), period_ns, first);
}

static void give(struct kiln_in_thread *thread, int32_t tid)
{
    uint64_t word = atomic_load(&thread->timer), mine = next_turn(word, MAKING);
    int32_t timer;

    if (state_of(word) != NONE || period_of(thread) == 0 || tid == 0 || !may_use())
        return;
    if (!atomic_compare_exchange_strong(&thread->timer, &word, mine))
        return;
    if (make(tid, KILN_IN_TICK_OWN, &timer) < 0) {
        kiln_in_lost_anywhere(KILN_IN_LOST_THREADS, 1);
        atomic_compare_exchange_strong(&thread->timer, &mine, turned(mine, NONE, 0));
        return;
    }
    word = turned(mine, MADE, timer);
    if (atomic_compare_exchange_strong(&thread->timer, &mine, word))
        set_of(thread, word);
    else
        drop(timer);
}

bool kiln_in_timer_has(struct kiln_in_thread *thread)
{
    return state_of(atomic_load(&thread->timer)) == MADE;
}

void kiln_in_timer_begin(struct kiln_in_thread *thread)
{
    uint64_t word = atomic_load(&thread->timer);

    if (state_of(word) == NONE)
        give(thread, atomic_load(&thread->tid));
    else if (state_of(word) == MADE && may_use())
        set_of(thread, word);
}

void kiln_in_timer_end(struct kiln_in_thread *thread)
{
    uint64_t word = atomic_load(&thread->timer), ended;
    bool may_drop = may_use();

    do {
        bool leave = state_of(word) >= MADE && !may_drop;

        ended = leave ? turned(word + SERIAL, LEFT, (int32_t)(word >> 32)) : next_turn(word, NONE);
    } while (!atomic_compare_exchange_strong(&thread->timer, &word, ended));
    atomic_store(&thread->timer_first_ns, 0);
    if (state_of(word) >= MADE && may_drop)
        drop((int32_t)(word >> 32));
}

/* The timer that it was making is not set, and nobody knows it. */
void kiln_in_timer_left(struct kiln_in_thread *thread)
{
    if (state_of(atomic_load(&thread->timer)) == MAKING)
        kiln_in_timer_end(thread);
}

static void take_left(struct kiln_in_thread *thread, void *arg)
{
    (void)arg;
    if (state_of(atomic_load(&thread->timer)) == LEFT)
        kiln_in_timer_end(thread);
}

void kiln_in_timer_forget(struct kiln_in_thread *thread)
{
    atomic_store(&thread->timer, next_turn(atomic_load(&thread->timer), NONE));
    atomic_store(&thread->timer_first_ns, 0);
}

static void set_again(struct kiln_in_thread *thread, void *arg)
{
    uint64_t word = atomic_load(&thread->timer);

    (void)arg;
    if (state_of(word) == MADE)
        set_of(thread, word);
}

void kiln_in_timer_set(uint64_t period_ns, uint64_t loop_period_ns)
{
    if (atomic_load(&period_of_all) == period_ns && atomic_load(&period_of_loops) == loop_period_ns)
        return;
    atomic_store(&period_of_all, period_ns);
    atomic_store(&period_of_loops, loop_period_ns);
    if (!may_use())
        return;
    kiln_in_threads_each(set_again, NULL);
    for (uint32_t i = 0; i < n_found; i++)
        set_found(atomic_load(&found[i]));
    if (period_ns || loop_period_ns)
        kiln_in_timer_scan();
}

/* ---- of all threads ---- */

static struct kiln_in_by_id known;

/* A thread that blocks the signal would have it pending for ever. */
static bool blocks(int32_t tid)
{
    uint64_t mask = status_of(tid, "\nSigBlk:", 16, UINT64_MAX);

    return kiln_in_signal_now() == 0 || mask >> (kiln_in_signal_now() - 1) & 1;
}

static bool can_take(int32_t tid)
{
    return !kiln_in_thread_id_is_ours(tid) && !blocks(tid);
}

static bool is_found(int32_t tid)
{
    for (uint32_t i = 0; i < n_found; i++) {
        struct found it = atomic_load(&found[i]);

        if (it.tid == tid)
            return true;
    }
    return false;
}

static void find(int32_t tid, uint32_t refusals_before)
{
    struct found it = {.tid = tid};
    uint32_t n = n_found;

    if (n == FOUND_MAX || !kiln_in_timer_period_ns(false) || kiln_in_narrow_unknown() ||
        !can_take(tid) || make(tid, KILN_IN_TICK_FOUND, &it.timer) < 0)
        return;
    atomic_store(&found[n], it);
    atomic_store(&n_found, n + 1);
    if (atomic_load(&refusals) == refusals_before)
        set_found(it);
}

void kiln_in_timer_refuse(struct kiln_in_thread *thread)
{
    int32_t tid = atomic_load(&thread->tid);

    kiln_in_timer_end(thread);
    atomic_fetch_add(&refusals, 1);
    for (uint32_t i = atomic_load(&n_found); i-- > 0;) {
        struct found it = atomic_load(&found[i]); /* once: the keeper moves them meanwhile */

        if (it.tid == tid)
            drop(it.timer);
    }
}

static bool look_at(int folder, int32_t tid, void *refusals_before)
{
    struct kiln_in_thread *thread = kiln_in_by_id_find(&known, tid);

    (void)folder;
    if (thread) {
        if (state_of(atomic_load(&thread->timer)) == NONE && period_of(thread) && can_take(tid))
            give(thread, tid);
        return true;
    }
    if (!is_found(tid))
        find(tid, *(uint32_t *)refusals_before);
    return true;
}

/* Those that are gone, or have one of their own by now, or may have none. */
static void look_at_found(void)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n_found; i++) {
        struct found it = atomic_load(&found[i]);
        struct kiln_in_thread *thread = kiln_in_by_id_find(&known, it.tid);
        bool is_known = thread && (kiln_in_timer_has(thread) || atomic_load(&thread->narrow));

        if (is_known || (syscall(SYS_tgkill, getpid(), it.tid, 0) != 0 && errno == ESRCH))
            drop(it.timer);
        else
            atomic_store(&found[kept++], it);
    }
    atomic_store(&n_found, kept);
}

void kiln_in_timer_scan(void)
{
    uint32_t refusals_before = atomic_load(&refusals);

    if (!may_use())
        return;
    kiln_in_threads_each(take_left, NULL);
    if (!kiln_in_timer_period_ns(true))
        return;
    kiln_in_by_id_fill(&known);
    if (kiln_in_numbers_each("/proc/self/task", look_at, &refusals_before) == 0)
        look_at_found();
}

static void take_away(struct kiln_in_thread *thread, void *arg)
{
    (void)arg;
    kiln_in_timer_end(thread);
}

void kiln_in_timer_renew(void)
{
    kiln_in_threads_each(take_away, NULL);
    for (uint32_t i = 0; i < n_found && may_use(); i++) {
        struct found it = atomic_load(&found[i]);

        drop(it.timer);
    }
    n_found = 0;
    kiln_in_timer_scan();
}

/* Threads' own ones are forgotten with their blocks. */
void kiln_in_timer_forked(void)
{
    n_found = 0;
}

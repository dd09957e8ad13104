/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts start in the order of the table and stop in the reverse one.
 *
 * A fork leaves the child with the thread that forked: each part forgets what others were doing,
 * and nothing is sampled.  Most children execute another program or end soon; one that is still
 * there after a moment starts all parts again in its next slow path, where it is known that no lock
 * of the allocator is held (kiln_in_revive).  The same becomes of a process that wants to be alone.
 *
 * At the end of the process what was sampled is sent, as far as that takes no longer than it may;
 * nothing is freed, because destructors of others go on allocating.
 */
#include "inproc/start.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/aside.h"
#include "inproc/clock.h"
#include "inproc/environment.h"
#include "inproc/keep/keep_int.h"
#include "inproc/labels.h"
#include "inproc/options.h"
#include "inproc/sample/cpu.h"
#include "inproc/sample/threads.h"
#include "inproc/thread/heap.h"
#include "inproc/thread/line.h"
#include "inproc/thread/sandbox.h"
#include "inproc/thread/thread.h"

#define CHILD_WAITS_NS ((uint64_t)100 * 1000000)
#define REST_NS        ((uint64_t)300 * 1000000)

struct kiln_in_settings kiln_in_settings = {.depth = 128};

#define PART(name)                                                                                 \
    {                                                                                              \
        kiln_in_##name##_start, kiln_in_##name##_stop, kiln_in_##name##_forked                     \
    }
static const struct part {
    int (*start)(void);
    void (*stop)(void), (*forked)(void);
} parts[] = {
    PART(unwind), PART(alloc), PART(lock), PART(threads), PART(wait),   PART(loop),
    PART(keep),   PART(cpu),   PART(out),  PART(pprof),   PART(ending),
};
enum {
    PARTS = sizeof(parts) / sizeof(parts[0]),
    KEEPER = 6, /* samples are taken when it has started */
    GONE_TRIES = 1000,
    GONE_TRY_NS = 50000
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum { STOPPED, WAITS /* to be enabled */, RUNS } state;
static bool by_preload, paused, switched_off, has_ended;
static uint32_t started;    /* a bit for each part */
static uint64_t revived_ns; /* when it is time for that */

/* Around functions that lock or wait on a thread of the program: no hook samples meanwhile, and a
 * thread that is cancelled keeps no lock.  What begin_call() returned is for end_call(). */
static int begin_call(void)
{
    int cancel;

    kiln_in_hush();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    return cancel;
}

static void end_call(int cancel)
{
    kiln_in_unhush();
    pthread_setcancelstate(cancel, NULL);
}

/* ---- parts ---- */

static void stop_parts(void)
{
    atomic_store(&kiln_in_on, KILN_IN_OFF);
    for (uint32_t i = PARTS; i-- > 0;) {
        if ((started & 1u << i) && parts[i].stop)
            parts[i].stop();
    }
    started = 0;
    state = STOPPED;
}

/* Without a keeper nobody looks at what is sampled: then nothing is. */
static int start_parts(void)
{
    started = 0;
    state = RUNS;
    for (uint32_t i = 0; i < PARTS; i++) {
        int r = parts[i].start ? parts[i].start() : 0;

        if (r < 0 && i == KEEPER) {
            stop_parts();
            return r;
        }
        if (r == 0)
            started |= 1u << i;
        if (i == KEEPER)
            atomic_store(&kiln_in_on, KILN_IN_ON);
    }
    return 0;
}

/* ---- forks ---- */

static void before_fork(void)
{
    kiln_in_hush();
    kiln_in_keep_before_fork();
}

static void after_fork(void)
{
    kiln_in_keep_after_fork();
    kiln_in_unhush();
}

static void in_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    lock = fresh;
    kiln_in_heap_forked();
    kiln_in_blocks_forked();
    kiln_in_labels_forked();
    for (uint32_t i = 0; i < PARTS; i++) {
        if (parts[i].forked)
            parts[i].forked();
    }
    started = 0;
    has_ended = false;
    revived_ns = kiln_in_now_ns() + CHILD_WAITS_NS;
    if (state == RUNS)
        atomic_store(&kiln_in_on, paused ? KILN_IN_OFF : KILN_IN_RESTS);
    kiln_in_unhush();
}

bool kiln_in_revive(void)
{
    if (kiln_in_now_ns() < revived_ns || kiln_in_is_sandboxed() ||
        pthread_mutex_trylock(&lock) != 0)
        return false;
    if (atomic_load(&kiln_in_on) == KILN_IN_RESTS)
        start_parts();
    pthread_mutex_unlock(&lock);
    return atomic_load(&kiln_in_on) == KILN_IN_ON;
}

/* The kernel counts a thread for a moment after it was joined. */
static void wait_until_gone(int32_t tid)
{
    struct timespec moment = {.tv_nsec = GONE_TRY_NS};

    for (unsigned i = 0; i < GONE_TRIES && syscall(SYS_tgkill, getpid(), tid, 0) == 0; i++)
        syscall(SYS_nanosleep, &moment, NULL);
}

static void stop_threads(void)
{
    int32_t ids[KILN_IN_OWN_MAX];
    unsigned n = kiln_in_threads_of_ours(ids);

    stop_parts();
    for (unsigned i = 0; i < n; i++)
        wait_until_gone(ids[i]);
}

/* Nobody waits for who is starting or stopping just now. */
static void rest(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return;
    if (state == RUNS && started) {
        stop_threads();
        state = RUNS;
        atomic_store(&kiln_in_on, paused ? KILN_IN_OFF : KILN_IN_RESTS);
    }
    revived_ns = kiln_in_now_ns() + REST_NS;
    pthread_mutex_unlock(&lock);
}

void kiln_in_start_rest(void)
{
    int kept_errno = errno, cancel;

    if (state != RUNS || !kiln_in_is_own_process())
        return;
    cancel = begin_call();
    rest();
    end_call(cancel);
    errno = kept_errno;
}

/* ---- starting ---- */

static void publish(void)
{
    if (kiln_in_out_publish)
        kiln_in_out_publish();
    else
        kiln_context_publish(kiln_in_settings.attributes, kiln_in_settings.n_attributes);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

/* Whether it begins with a pause: the operator's word, for whoever enables it later. */
static bool is_delayed(void)
{
    bool enabled = true;

    kiln_in_env_flag("ENABLE_PROFILING", &enabled);
    return !enabled;
}

/* Who is opened by a program that runs, or needed by one of its libraries, comes too late. */
static void leave_out_unseen(void)
{
    const uint32_t seen = KILN_PROFILE_CPU | KILN_PROFILE_THREADS;

    if (!(kiln_in_settings.profiles & ~seen) || !kiln_in_is_in_front || kiln_in_is_in_front())
        return;
    kiln_in_say(true, "memory, locks and waits are not seen: libkiln comes behind the C library "
                      "(preload it, or link the program itself with it)");
    kiln_in_settings.profiles &= seen;
}

static int start(const struct kiln_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *why;

    kiln_in_say_begin();
    why = kiln_in_aside();
    if (why) {
        kiln_in_say(true, "stands aside: %s", why);
        return -EPERM;
    }
    kiln_in_switch_read();
    if (kiln_in_is_forbidden())
        return -EPERM;
    if (options && (options->profiles & KILN_PROFILE_NONE))
        return 0;
    kiln_in_options_fill(options, &kiln_in_settings);
    leave_out_unseen();
    kiln_in_threads_init(kiln_in_settings.seed);
    pthread_once(&once, watch_forks);
    publish();
    paused = false;
    state = WAITS;
    return is_delayed() ? 0 : start_parts();
}

/* What it says where threads are all that is missing. */
static int told(int r)
{
    if (r < 0 && r != -EPERM)
        kiln_in_say(true, "nothing is sampled: no thread can be made for it: %s", strerror(-r));
    return r;
}

void kiln_in_start_preloaded(void)
{
    int cancel = begin_call();

    pthread_mutex_lock(&lock);
    by_preload = told(start(NULL)) == 0;
    pthread_mutex_unlock(&lock);
    end_call(cancel);
}

int kiln_start(const struct kiln_options *options)
{
    int r = -EALREADY, cancel = begin_call();

    pthread_mutex_lock(&lock);
    if (state != STOPPED && by_preload)
        stop_parts();
    by_preload = false;
    if (state == STOPPED)
        r = told(start(options));
    pthread_mutex_unlock(&lock);
    end_call(cancel);
    return r;
}

/* ---- stopping, pausing, flushing ---- */

int kiln_flush(uint32_t timeout_ms)
{
    int r = 0, cancel = begin_call();

    if (state == RUNS && kiln_in_out_flush)
        r = kiln_in_out_flush(timeout_ms);
    end_call(cancel);
    return r;
}

void kiln_stop(void)
{
    int cancel = begin_call();

    kiln_flush(kiln_in_settings.exit_ms);
    pthread_mutex_lock(&lock);
    if (state == RUNS)
        stop_parts();
    state = STOPPED;
    pthread_mutex_unlock(&lock);
    end_call(cancel);
}

/* Timers stop with the keeper's next turn. */
static void pause_now(bool on)
{
    paused = on;
    atomic_store(&kiln_in_on, on ? KILN_IN_OFF : started ? KILN_IN_ON : KILN_IN_RESTS);
}

void kiln_set_enabled(bool enabled)
{
    int cancel = begin_call();

    pthread_mutex_lock(&lock);
    if (state == WAITS && enabled && !kiln_in_is_forbidden())
        start_parts();
    else if (state == RUNS && !switched_off)
        pause_now(!enabled);
    pthread_mutex_unlock(&lock);
    end_call(cancel);
}

bool kiln_is_enabled(void)
{
    return atomic_load(&kiln_in_on) != KILN_IN_OFF;
}

/* Whoever has the lock may be waiting for the keeper, who asks. */
void kiln_in_start_watch(void)
{
    bool off = kiln_in_is_forbidden();

    if (off == switched_off || pthread_mutex_trylock(&lock) != 0)
        return;
    if (off && !paused)
        switched_off = true;
    if (switched_off)
        pause_now(off);
    switched_off = off && switched_off;
    pthread_mutex_unlock(&lock);
    if (off && kiln_in_out_flush)
        (void)kiln_in_out_flush(
            0); /* what was sampled until then goes out, and is not waited for */
}

/* Of the thread that ends the process: others may still run. */
static void settle(void)
{
    struct kiln_in_thread *thread = kiln_in_enter();

    if (!thread)
        return;
    kiln_in_cpu_thread_ends(thread);
    kiln_in_leave(thread);
}

void kiln_in_start_end(void)
{
    if (state != RUNS || !started || has_ended)
        return;
    has_ended = true;
    settle();
    kiln_flush(kiln_in_settings.exit_ms);
    atomic_store(&kiln_in_on, KILN_IN_OFF);
}

__attribute__((destructor)) static void at_exit(void)
{
    kiln_in_start_end();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks are mapped sixteen at a time and found by their index.  Free ones are a stack without a
 * lock: `free_top` is a count of changes in the upper half, which keeps a late comparison from
 * succeeding, and index + 1 in the lower.
 *
 * A thread is known by its id in the kernel, not by its storage: a child of vfork, and a thread
 * that was made by clone() without storage of its own, run on the line of somebody else and are let
 * through without a trace.
 */
#include "inproc/thread/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/sample/timer.h"
#include "inproc/thread/line.h"
#include "inproc/thread/map.h"

enum { CHUNK = 16, CHUNKS = KILN_IN_THREADS_MAX / CHUNK };

_Atomic uint32_t kiln_in_on;

static _Atomic(struct kiln_in_thread *) chunks[CHUNKS];
static _Atomic uint32_t n_blocks; /* that were ever given out; may pass the limit */
static _Atomic uint64_t free_top;
static _Atomic uint64_t lost_anywhere[KILN_IN_LOSSES];
static _Atomic int32_t process_id;
static uint64_t base_seed;
static pthread_key_t key;
static bool has_key;

static int32_t own_id(void)
{
    return (int32_t)syscall(SYS_gettid);
}

static int32_t own_process(void)
{
    return (int32_t)syscall(SYS_getpid);
}

bool kiln_in_is_own_process(void)
{
    return own_process() == atomic_load_explicit(&process_id, memory_order_relaxed);
}

/* ---- blocks ---- */

static struct kiln_in_thread *block(uint32_t index)
{
    struct kiln_in_thread *chunk =
        atomic_load_explicit(&chunks[index / CHUNK], memory_order_acquire);

    return chunk ? chunk + index % CHUNK : NULL;
}

static struct kiln_in_thread *pop_free(void)
{
    uint64_t top = atomic_load(&free_top);
    struct kiln_in_thread *thread;

    do {
        if ((uint32_t)top == 0)
            return NULL;
        thread = block((uint32_t)top - 1);
        if (!thread)
            return NULL;
    } while (!atomic_compare_exchange_weak(
        &free_top, &top, ((top >> 32) + 1) << 32 | atomic_load(&thread->next_free)));
    return thread;
}

static void push_free(struct kiln_in_thread *thread)
{
    uint64_t top = atomic_load(&free_top);

    do
        atomic_store(&thread->next_free, (uint32_t)top);
    while (!atomic_compare_exchange_weak(&free_top, &top,
                                         ((top >> 32) + 1) << 32 | (thread->index + 1)));
}

static struct kiln_in_thread *make_block(void)
{
    uint32_t index = atomic_load(&n_blocks);
    struct kiln_in_thread *chunk, *none = NULL;

    do {
        if (index >= KILN_IN_THREADS_MAX)
            return NULL;
    } while (!atomic_compare_exchange_weak(&n_blocks, &index, index + 1));
    chunk = block(index - index % CHUNK);
    if (!chunk) {
        chunk = kiln_in_map(CHUNK * sizeof(*chunk));
        if (!chunk)
            return NULL;
        if (!atomic_compare_exchange_strong(&chunks[index / CHUNK], &none, chunk)) {
            kiln_in_unmap(chunk, CHUNK * sizeof(*chunk));
            chunk = none;
        }
    }
    chunk += index % CHUNK;
    chunk->index = index;
    return chunk;
}

/* ---- random numbers ---- */

static uint64_t mixed(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint64_t kiln_in_random(struct kiln_in_thread *thread)
{
    uint64_t x = thread->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    thread->random = x;
    return x * 0x2545f4914f6cdd1d;
}

double kiln_in_random_unit(struct kiln_in_thread *thread)
{
    return (double)((kiln_in_random(thread) >> 11) + 1) * 0x1p-53;
}

/* ---- a thread's beginning and end ---- */

/* Threads in the order they come have the same numbers in each run where the seed is fixed. */
static uint64_t seed_of_next(void)
{
    static _Atomic uint64_t turns;
    uint64_t seed = mixed(base_seed + atomic_fetch_add(&turns, 1));

    return seed ? seed : 1;
}

static struct kiln_in_thread *begin_thread(int32_t tid)
{
    struct kiln_in_thread *thread;

    if (!kiln_in_is_own_process())
        return NULL;
    thread = pop_free();
    if (!thread)
        thread = make_block();
    if (!thread) {
        kiln_in_lost_anywhere(KILN_IN_LOST_THREADS, 1);
        return NULL;
    }
    thread->random = seed_of_next();
    thread->began_ns = kiln_in_now_ns();
    atomic_store(&thread->narrow, kiln_in_line.narrow);
    atomic_store(&thread->tid, tid);
    atomic_store(&thread->state, KILN_IN_THREAD_RUNS);
    kiln_in_line.thread = thread;
    if (has_key)
        pthread_setspecific(key, thread);
    return thread;
}

static void forget_owner(struct kiln_in_thread *thread)
{
    thread->labels = 0;
    thread->began_at = 0;
    thread->stack_low = thread->stack_high = 0;
    kiln_in_timer_end(thread);
    thread->ticks = (struct kiln_in_ticks){0};
    atomic_store(&thread->waits_in, 0);
    atomic_store(&thread->last_stack, 0);
    thread->loop = (struct kiln_in_loop){0};
}

void kiln_in_thread_end(void)
{
    struct kiln_in_thread *thread = kiln_in_line.thread;

    if (!thread || atomic_load(&thread->tid) != own_id())
        return;
    kiln_in_hush();
    kiln_in_cpu_thread_ends(thread);
    kiln_in_line.thread = NULL;
    atomic_store(&thread->tid, 0);
    forget_owner(thread);
    atomic_store(&thread->state, KILN_IN_THREAD_ENDED);
    kiln_in_unhush();
}

/*
 * Destructors of others may run after this one and allocate: the thread gets a block once more, and
 * is found dead by the keeper.
 */
static void at_end(void *thread)
{
    (void)thread;
    kiln_in_thread_end();
}

/* ---- entering and leaving ---- */

static void begin_visit(struct kiln_in_visit *visit)
{
    if (visit)
        kiln_in_visit_begin(visit);
    else
        kiln_in_hush();
}

/* Whichever of both it was. */
static void end_visit(void)
{
    if (kiln_in_line.visit)
        kiln_in_visit_end(kiln_in_line.visit);
    else
        kiln_in_unhush();
}

struct kiln_in_thread *kiln_in_enter_as(struct kiln_in_visit *visit)
{
    struct kiln_in_thread *thread;
    int kept_errno = errno;
    int32_t tid;

    if (!kiln_in_is_running() || kiln_in_is_inside())
        return NULL;
    tid = own_id();
    thread = kiln_in_line.thread;
    if (thread && atomic_load_explicit(&thread->tid, memory_order_relaxed) != tid)
        return NULL;
    begin_visit(visit);
    if (!thread)
        thread = begin_thread(tid);
    if (!thread) {
        end_visit();
        errno = kept_errno;
        return NULL;
    }
    thread->kept_errno = kept_errno;
    return thread;
}

void kiln_in_go_on(void)
{
    const struct kiln_in_thread *thread = kiln_in_line.thread;
    int kept_errno = errno, cancel;

    if (atomic_load_explicit(&kiln_in_on, memory_order_relaxed) != KILN_IN_RESTS ||
        kiln_in_is_inside() || !kiln_in_is_own_process() ||
        (thread && atomic_load_explicit(&thread->tid, memory_order_relaxed) != own_id()))
        return;
    kiln_in_hush();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    kiln_in_revive();
    pthread_setcancelstate(cancel, NULL);
    kiln_in_unhush();
    errno = kept_errno;
}

void kiln_in_leave(struct kiln_in_thread *thread)
{
    errno = thread->kept_errno;
    end_visit();
}

/* ---- losses ---- */

void kiln_in_lost(struct kiln_in_thread *thread, enum kiln_in_loss why)
{
    atomic_fetch_add_explicit(&thread->lost[why], 1, memory_order_relaxed);
}

void kiln_in_lost_anywhere(enum kiln_in_loss why, uint64_t n)
{
    atomic_fetch_add_explicit(&lost_anywhere[why], n, memory_order_relaxed);
}

uint64_t kiln_in_lost_total(enum kiln_in_loss why)
{
    uint64_t total = atomic_load_explicit(&lost_anywhere[why], memory_order_relaxed);
    uint32_t n = atomic_load(&n_blocks);

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_in_thread *thread = block(i);

        if (thread)
            total += atomic_load_explicit(&thread->lost[why], memory_order_relaxed);
    }
    return total;
}

/* ---- all of them ---- */

void kiln_in_threads_each(void (*look)(struct kiln_in_thread *thread, void *arg), void *arg)
{
    uint32_t n = atomic_load(&n_blocks);

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_in_thread *thread = block(i);

        if (thread && atomic_load(&thread->state) != KILN_IN_THREAD_FREE)
            look(thread, arg);
    }
}

static bool is_empty(const struct kiln_in_ring *ring)
{
    return atomic_load(&ring->written) == atomic_load(&ring->read);
}

static bool is_dead(int32_t tid)
{
    return syscall(SYS_tgkill, own_process(), tid, 0) != 0 && errno == ESRCH;
}

static void sweep(struct kiln_in_thread *thread, void *look_for_dead)
{
    bool dead = *(bool *)look_for_dead && atomic_load(&thread->state) == KILN_IN_THREAD_RUNS &&
                is_dead(atomic_load(&thread->tid));

    if (dead) {
        atomic_store(&thread->tid, 0);
        forget_owner(thread);
        atomic_store(&thread->state, KILN_IN_THREAD_ENDED);
    }
    if (atomic_load(&thread->state) == KILN_IN_THREAD_ENDED && is_empty(&thread->ring)) {
        atomic_store(&thread->state, KILN_IN_THREAD_FREE);
        push_free(thread);
    }
}

void kiln_in_threads_sweep(bool look_for_dead)
{
    kiln_in_threads_each(sweep, &look_for_dead);
}

/* A key beyond the first thirty-two would make the C library allocate in a slow path. */
static void make_key(void)
{
    if (has_key || pthread_key_create(&key, at_end) != 0)
        return;
    has_key = key < 32;
    if (!has_key)
        pthread_key_delete(key);
}

int kiln_in_threads_init(uint64_t seed)
{
    base_seed = seed;
    if (base_seed == 0 && getrandom(&base_seed, sizeof(base_seed), GRND_NONBLOCK) < 0)
        base_seed = kiln_in_now_ns() ^ (uint64_t)own_process() << 32;
    atomic_store(&process_id, own_process());
    make_key();
    return 0;
}

/* Records in the ring are the parent's to tell. */
static void forget_block(struct kiln_in_thread *thread, const struct kiln_in_thread *own)
{
    atomic_store(&thread->ring.read, atomic_load(&thread->ring.written));
    memset((void *)thread->lost, 0, sizeof(thread->lost));
    kiln_in_timer_forget(thread);
    if (thread == own)
        return;
    atomic_store(&thread->tid, 0);
    forget_owner(thread);
    atomic_store(&thread->state, KILN_IN_THREAD_FREE);
    push_free(thread);
}

void kiln_in_blocks_forked(void)
{
    struct kiln_in_thread *own = kiln_in_line.thread;
    uint32_t n = atomic_load(&n_blocks);

    atomic_store(&process_id, own_process());
    atomic_store(&free_top, 0);
    memset((void *)lost_anywhere, 0, sizeof(lost_anywhere));
    if (own) {
        atomic_store(&own->tid, own_id());
        own->random = mixed(own->random ^ (uint64_t)own_process());
    }
    for (uint32_t i = 0; i < n; i++) {
        if (block(i))
            forget_block(block(i), own);
    }
}

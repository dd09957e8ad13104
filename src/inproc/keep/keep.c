/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn every 100 ms: all rings are emptied into two tables, counts for ever and the window, and
 * blocks of threads that ended are made free.  Between two turns the keeper's bell is rung by rings
 * that fill up, which are emptied then, and by whoever ends the process or stops the keeper.
 *
 * The lock is held for a turn, a copy, or a swap, never while a batch is made.  A fork waits for it
 * a little; where that is in vain (the keeper may wait in turn for an allocator that the forking
 * thread has stopped already) the child starts with new tables and leaves the old ones alone.
 */
#include "inproc/keep/keep.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/keep/keep_int.h"
#include "inproc/keep/mappings.h"
#include "inproc/keep/pace.h"
#include "inproc/sample/ending.h"
#include "inproc/start.h"
#include "inproc/thread/helper.h"
#include "inproc/thread/last.h"
#include "inproc/thread/line.h"
#include "inproc/thread/stacks.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

enum { FORK_TRIES = 50, FORK_TRY_NS = 200000, SECOND = 1000 / KILN_IN_TURN_MS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t keeper;
static bool runs, stops;

static struct kiln_in_table counts, window;
static uint64_t since_ns, window_since_ns; /* CLOCK_REALTIME */

/* ---- rings ---- */

static void keep(const struct kiln_in_record *record)
{
    struct kiln_in_key key = {
        .stack = record->stack, .kind = record->kind, .reason = record->reason};

    if (kiln_in_table_add(&counts, &key, record->count, record->value, KILN_IN_COUNTS_MAX) < 0)
        kiln_in_lost_anywhere(KILN_IN_LOST_COUNTS, 1);
    key.labels = record->labels;
    memcpy(key.trace, record->trace, sizeof(key.trace));
    memcpy(key.span, record->span, sizeof(key.span));
    if (kiln_in_table_add(&window, &key, record->count, record->value,
                          kiln_in_settings.samples_max) < 0)
        kiln_in_lost_anywhere(KILN_IN_LOST_WINDOW, 1);
}

static void empty(struct kiln_in_thread *thread, void *arg)
{
    struct kiln_in_record record;

    (void)arg;
    while (kiln_in_ring_take(&thread->ring, &record))
        keep(&record);
}

static void drain(bool look_for_dead)
{
    kiln_in_threads_each(empty, NULL);
    kiln_in_threads_sweep(look_for_dead);
}

void kiln_in_keep_hold(void)
{
    pthread_mutex_lock(&lock);
}

void kiln_in_keep_release(void)
{
    pthread_mutex_unlock(&lock);
}

void kiln_in_keep_drain(void)
{
    pthread_mutex_lock(&lock);
    drain(false);
    pthread_mutex_unlock(&lock);
}

/* ---- the thread ---- */

static bool is_called(uint32_t rung, const struct timespec *until)
{
    bool heard;

    pthread_mutex_unlock(&lock);
    heard = kiln_in_bell_wait(&kiln_in_keeper_bell, rung, until);
    pthread_mutex_lock(&lock);
    return heard;
}

static void wait_a_turn(void)
{
    uint32_t rung = atomic_load(&kiln_in_keeper_bell.rung);
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += KILN_IN_TURN_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!stops && !kiln_in_ending_is_due() && is_called(rung, &until)) {
        rung = atomic_load(&kiln_in_keeper_bell.rung);
        drain(false);
    }
}

static void *run(void *arg)
{
    uint32_t seen = 0;

    pthread_mutex_lock(&lock);
    for (uint32_t turn = 0; !stops; turn++) {
        bool second = turn % SECOND == 0;

        wait_a_turn();
        drain(second);
        pthread_mutex_unlock(&lock);
        kiln_in_ending_look();
        kiln_in_unwind_work();
        kiln_in_pace_turn(kiln_in_now_ns());
        if (second && seen != kiln_in_stack_count()) {
            seen = kiln_in_stack_count();
            kiln_in_mappings_look();
        }
        if (second)
            kiln_in_start_watch();
        kiln_in_last_look(second);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return arg;
}

int kiln_in_keep_start(void)
{
    int r;

    since_ns = since_ns ? since_ns : kiln_in_clock_ns(CLOCK_REALTIME);
    window_since_ns = kiln_in_clock_ns(CLOCK_REALTIME);
    stops = false;
    r = kiln_in_helper_start("kiln-keeper", KILN_IN_HELPER_OWN_FILES, run, NULL, &keeper);
    runs = r == 0;
    if (runs)
        kiln_in_last_start();
    return r;
}

void kiln_in_keep_stop(void)
{
    if (!runs)
        return;
    kiln_in_last_stop();
    pthread_mutex_lock(&lock);
    stops = true;
    kiln_in_bell_ring(&kiln_in_keeper_bell);
    pthread_mutex_unlock(&lock);
    pthread_join(keeper, NULL);
    runs = false;
}

/* ---- forks ---- */

/* A system call as it is, because a function that sleeps would be a place to be cancelled at. */
static void wait_a_moment(void)
{
    struct timespec moment = {.tv_nsec = FORK_TRY_NS};

    syscall(SYS_nanosleep, &moment, NULL);
}

void kiln_in_keep_before_fork(void)
{
    bool held = false;

    for (unsigned i = 0; i < FORK_TRIES && !held; i++) {
        held = pthread_mutex_trylock(&lock) == 0;
        if (!held)
            wait_a_moment();
    }
    kiln_in_line.forking = held;
}

void kiln_in_keep_after_fork(void)
{
    if (kiln_in_line.forking)
        pthread_mutex_unlock(&lock);
    kiln_in_line.forking = false;
}

/* Nothing is freed: the allocator may not be ready yet. */
static void forget(struct kiln_in_table *table)
{
    bool whole = kiln_in_line.forking && table->index.tags;

    if (whole)
        memset(table->index.tags, 0, table->index.n_groups * sizeof(*table->index.tags));
    else
        memset(table, 0, sizeof(*table));
    table->n = table->index.n = 0;
}

void kiln_in_keep_forked(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    forget(&counts);
    forget(&window);
    kiln_in_mappings_forked();
    kiln_in_last_forked();
    lock = fresh;
    kiln_in_line.forking = runs = false;
    since_ns = 0;
}

/* ---- snapshots ---- */

int kiln_in_keep_counts(struct kiln_in_counts **ret_counts)
{
    struct kiln_in_counts *copy;

    pthread_mutex_lock(&lock);
    drain(false);
    copy = kiln_malloc(sizeof(*copy) + counts.n * sizeof(*copy->rows));
    if (copy) {
        copy->n = counts.n;
        if (counts.n)
            memcpy(copy->rows, counts.rows, counts.n * sizeof(*copy->rows));
        copy->unix_ns = kiln_in_clock_ns(CLOCK_REALTIME);
    }
    pthread_mutex_unlock(&lock);
    if (!copy)
        return -ENOMEM;
    *ret_counts = copy;
    return 0;
}

void kiln_in_counts_free(struct kiln_in_counts *copy)
{
    kiln_free(copy);
}

uint64_t kiln_in_keep_since(void)
{
    return since_ns;
}

struct kiln_in_row *kiln_in_keep_take(uint32_t *ret_n, uint64_t *ret_since_ns,
                                      uint64_t *ret_until_ns)
{
    struct kiln_in_row *rows;

    pthread_mutex_lock(&lock);
    drain(false);
    rows = kiln_in_table_take(&window, ret_n);
    *ret_since_ns = window_since_ns;
    *ret_until_ns = window_since_ns = kiln_in_clock_ns(CLOCK_REALTIME);
    pthread_mutex_unlock(&lock);
    return rows;
}

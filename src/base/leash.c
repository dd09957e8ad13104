/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: one list of those who wait, in the order they came, for all pools (questions that wait are
 * few).  Only the first who waits for a pool may take of it, and whoever comes while somebody waits
 * goes behind him: a large question is not overtaken for ever by small ones.
 *
 * Who gives back, who took, and who gave up all wake the first in line of that pool, under the lock
 * under which he looked: no wake-up is lost.  Memory also comes back without our knowing (a parent
 * is shared with ingest), and a client goes away without a word: so a waiter looks again by himself
 * every few milliseconds.
 *
 * Caches are asked to give way when no question is under way that could end instead: else those
 * that wait would take from those that follow what makes them quick.
 */
#include "base/leash.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

#define LOOK_AGAIN_NS (10 * KILN_NS_PER_MS)
#define MIB           ((size_t)1 << 20)
#define LEARN_FROM    (4 * MIB) /* small ones are mistaken in other ways, and it does not matter */
#define STRETCH_MAX   300u
#define FORGET        32u

struct waiter {
    struct waiter *next;
    struct kiln_pool *pool;
    pthread_cond_t turn;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *line; /* the first came first */

/* By how many percent reservations fell short of what was taken; forgotten slowly. */
static _Atomic uint32_t stretch;

int kiln_leash_check(const struct kiln_leash *leash)
{
    if (leash->gone && atomic_load_explicit(leash->gone, memory_order_relaxed))
        return -ECANCELED;
    if (leash->deadline_mono_ns && kiln_clock_mono_ns() >= leash->deadline_mono_ns)
        return -ETIMEDOUT;
    return 0;
}

int kiln_leash_read(struct kiln_leash *leash, uint64_t bytes)
{
    if (leash->bytes_max &&
        (leash->bytes_read > leash->bytes_max || bytes > leash->bytes_max - leash->bytes_read))
        return KILN_E_LIMIT;
    leash->bytes_read += bytes;
    return 0;
}

/* ---- turns ---- */

static struct waiter *first_for(const struct kiln_pool *pool)
{
    struct waiter *w = line;

    while (w && w->pool != pool)
        w = w->next;
    return w;
}

static void wake_first(const struct kiln_pool *pool)
{
    struct waiter *w = first_for(pool);

    if (w)
        pthread_cond_signal(&w->turn);
}

static void join_line(struct waiter *w)
{
    struct waiter **end = &line;

    kiln_cond_init(&w->turn);
    while (*end)
        end = &(*end)->next;
    *end = w;
}

static void leave_line(struct waiter *w)
{
    struct waiter **at = &line;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    pthread_cond_destroy(&w->turn);
}

static void sleep_a_little(struct waiter *w, uint64_t deadline_ns)
{
    uint64_t until = kiln_clock_mono_ns() + LOOK_AGAIN_NS;
    struct timespec at;

    if (deadline_ns && deadline_ns < until)
        until = deadline_ns;
    at = kiln_timespec_of(until);
    pthread_cond_timedwait(&w->turn, &lock, &at);
}

/* Looking is no refusal: kiln_pool_take() would count one each time. */
static bool try_take(struct kiln_pool *pool, size_t bytes)
{
    if (!kiln_pool_has(pool, bytes) && atomic_load(&pool->leashed) == 0)
        kiln_pool_reclaim(pool, bytes);
    if (!kiln_pool_has(pool, bytes) || kiln_pool_take(pool, bytes) < 0)
        return false;
    atomic_fetch_add(&pool->leashed, bytes);
    return true;
}

static int wait_for_turn(const struct kiln_leash *leash, size_t bytes)
{
    struct waiter w = {.pool = leash->pool};
    int r;

    join_line(&w);
    while ((r = kiln_leash_check(leash)) == 0) {
        if (first_for(w.pool) == &w && try_take(w.pool, bytes))
            break;
        sleep_a_little(&w, leash->deadline_mono_ns);
    }
    leave_line(&w);
    wake_first(w.pool);
    return r;
}

/* ---- memory ---- */

size_t kiln_leash_most(const struct kiln_leash *leash)
{
    size_t most = leash->memory_max ? leash->memory_max : SIZE_MAX;

    for (const struct kiln_pool *pool = leash->pool; pool; pool = pool->parent)
        most = pool->limit < most ? pool->limit : most;
    return most;
}

static void count(struct kiln_leash *leash, size_t bytes)
{
    leash->memory += bytes;
    if (leash->memory > leash->memory_peak)
        leash->memory_peak = leash->memory;
    if (leash->memory > leash->first_peak)
        leash->first_peak = leash->memory;
}

static int refuse(const struct kiln_leash *leash, size_t bytes, int code, struct kiln_err *err)
{
    size_t mib = (leash->memory + bytes + MIB - 1) / MIB;

    if (code == KILN_E_LIMIT)
        return kiln_err_set(err, code, NULL,
                            "the question needs %zu MiB of memory and may use %zu MiB: ask for a "
                            "shorter time or fewer services",
                            mib, kiln_leash_most(leash) / MIB);
    if (code == -ETIMEDOUT)
        return kiln_err_set(err, code, NULL,
                            "the question waited for %zu MiB of memory until its time was over: "
                            "others were before it, try again",
                            mib);
    return kiln_err_set(err, code, NULL, "nobody waits for the answer any more");
}

/* What those before took beyond what they reserved, in proportion. */
static size_t spare_for(const struct kiln_leash *leash, size_t bytes)
{
    size_t spare = bytes / 100 * atomic_load(&stretch), left = kiln_leash_most(leash) - bytes;

    if (!leash->pool || leash->exact || bytes < LEARN_FROM)
        return 0;
    return spare < left ? spare : left;
}

static void learn(struct kiln_leash *leash)
{
    uint32_t known = atomic_load(&stretch), seen;

    if (!leash->exact && leash->first >= LEARN_FROM && leash->first_peak >= leash->first) {
        seen = (uint32_t)((leash->first_peak - leash->first) * 100 / leash->first);
        seen = seen < STRETCH_MAX ? seen : STRETCH_MAX;
        known -= known / FORGET;
        atomic_store(&stretch, seen > known ? seen : known); /* a lesson that is lost comes again */
    }
    leash->first = 0;
}

/* Takes of the pool, in turn. */
static int wait_for(const struct kiln_leash *leash, size_t bytes)
{
    int r = 0;

    if (!leash->pool)
        return 0;
    pthread_mutex_lock(&lock);
    if (first_for(leash->pool) || !try_take(leash->pool, bytes))
        r = wait_for_turn(leash, bytes);
    pthread_mutex_unlock(&lock);
    return r;
}

int kiln_leash_reserve(struct kiln_leash *leash, size_t bytes, struct kiln_err *err)
{
    int r = kiln_leash_check(leash);
    size_t spare;

    if (r < 0)
        return refuse(leash, bytes, r, err);
    if (bytes > kiln_leash_most(leash) || leash->memory > kiln_leash_most(leash) - bytes)
        return refuse(leash, bytes, KILN_E_LIMIT, err);
    if (!leash->memory) {
        leash->first = bytes;
        leash->first_peak = 0;
    }
    /* who has some and waits for more might wait for who does the same */
    if (leash->memory || leash->saved)
        return kiln_leash_take(leash, bytes) < 0 ? refuse(leash, bytes, KILN_E_LIMIT, err) : 0;
    spare = spare_for(leash, bytes);
    r = wait_for(leash, bytes + spare);
    if (r < 0)
        return refuse(leash, bytes, r, err);
    leash->saved = spare;
    count(leash, bytes);
    return 0;
}

int kiln_leash_take(struct kiln_leash *leash, size_t bytes)
{
    size_t saved = leash->saved < bytes ? leash->saved : bytes;

    if (bytes > kiln_leash_most(leash) || leash->memory > kiln_leash_most(leash) - bytes)
        return KILN_E_LIMIT;
    if (leash->pool && saved < bytes) {
        if (kiln_pool_take(leash->pool, bytes - saved) < 0) {
            leash->was_short = true;
            return KILN_E_LIMIT;
        }
        atomic_fetch_add(&leash->pool->leashed, bytes - saved);
    }
    leash->saved -= saved;
    count(leash, bytes);
    return 0;
}

int kiln_leash_save(struct kiln_leash *leash, size_t bytes, struct kiln_err *err)
{
    int r = bytes > kiln_leash_most(leash) ? KILN_E_LIMIT : wait_for(leash, bytes);

    if (r < 0)
        return refuse(leash, bytes, r, err);
    leash->saved += bytes;
    return 0;
}

static void give_back(const struct kiln_leash *leash, size_t bytes)
{
    if (!leash->pool)
        return;
    pthread_mutex_lock(&lock);
    atomic_fetch_sub(&leash->pool->leashed, bytes);
    kiln_pool_give(leash->pool, bytes);
    wake_first(leash->pool);
    pthread_mutex_unlock(&lock);
}

void kiln_leash_spend(struct kiln_leash *leash)
{
    learn(leash);
    give_back(leash, leash->saved);
    leash->saved = 0;
}

void kiln_leash_give(struct kiln_leash *leash, size_t bytes)
{
    leash->memory -= bytes;
    give_back(leash, bytes);
}

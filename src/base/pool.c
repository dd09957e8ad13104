/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"
#include "base/err.h"

void kiln_pool_init(struct kiln_pool *pool, const char *name, size_t limit,
                    struct kiln_pool *parent)
{
    *pool = (struct kiln_pool){
        .name = name, .parent = parent, .limit = limit, .meter = parent ? parent->meter : NULL};
    pthread_mutex_init(&pool->lock, NULL);
}

int kiln_pool_own(struct kiln_pool *pool, size_t bytes)
{
    int r = kiln_pool_take(pool->parent, bytes);

    if (r == 0)
        pool->own = bytes;
    return r;
}

void kiln_pool_on_short(struct kiln_pool *pool, void (*reclaim)(void *context, size_t bytes),
                        void *context)
{
    for (; pool; pool = pool->parent) {
        pthread_mutex_lock(&pool->lock);
        pool->reclaim = reclaim;
        pool->reclaim_context = context;
        pthread_mutex_unlock(&pool->lock);
    }
}

void kiln_pool_set_meter(struct kiln_pool *pool, struct kiln_pool_meter *meter)
{
    pool->meter = meter;
}

static void measure(struct kiln_pool_meter *meter, size_t bytes)
{
    if (meter && atomic_fetch_add(&meter->taken, bytes) + bytes >= meter->every)
        meter->look(meter->context);
}

static void note_peak(struct kiln_pool *pool, size_t used)
{
    size_t peak = atomic_load_explicit(&pool->peak, memory_order_relaxed);

    while (used > peak && !atomic_compare_exchange_weak(&pool->peak, &peak, used))
        ;
}

static bool fits(const struct kiln_pool *pool, size_t used, size_t bytes)
{
    return bytes <= pool->limit && used <= pool->limit - bytes;
}

/* How much of `used` is the parent's. */
static size_t over(const struct kiln_pool *pool, size_t used)
{
    return used > pool->own ? used - pool->own : 0;
}

static struct kiln_pool *try_take(struct kiln_pool *pool, size_t bytes);

/* What goes up depends on what is used: both change together. */
static struct kiln_pool *take_owned(struct kiln_pool *pool, size_t bytes)
{
    struct kiln_pool *lacking = NULL;
    size_t used;

    pthread_mutex_lock(&pool->lock);
    used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    if (!fits(pool, used, bytes))
        lacking = pool;
    else if (over(pool, used + bytes) > over(pool, used))
        lacking = try_take(pool->parent, over(pool, used + bytes) - over(pool, used));
    if (!lacking) {
        atomic_store_explicit(&pool->used, used + bytes, memory_order_relaxed);
        note_peak(pool, used + bytes);
    }
    pthread_mutex_unlock(&pool->lock);
    return lacking;
}

static struct kiln_pool *take_plain(struct kiln_pool *pool, size_t bytes)
{
    size_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    struct kiln_pool *lacking;

    do {
        if (!fits(pool, used, bytes))
            return pool;
    } while (!atomic_compare_exchange_weak(&pool->used, &used, used + bytes));
    lacking = pool->parent ? try_take(pool->parent, bytes) : NULL;
    if (lacking)
        atomic_fetch_sub(&pool->used, bytes);
    else
        note_peak(pool, used + bytes);
    return lacking;
}

/* NULL, or the pool that has not enough; then nothing was taken. */
static struct kiln_pool *try_take(struct kiln_pool *pool, size_t bytes)
{
    return pool->own ? take_owned(pool, bytes) : take_plain(pool, bytes);
}

/* The first pool on the way up that has not so much, and how much it lacks; NULL: none. */
static struct kiln_pool *find_lacking(struct kiln_pool *pool, size_t bytes, size_t *ret_lack)
{
    while (pool && bytes) {
        size_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);

        if (!fits(pool, used, bytes)) {
            *ret_lack = bytes > pool->limit ? bytes : used - (pool->limit - bytes);
            return pool;
        }
        bytes = over(pool, used + bytes) - over(pool, used);
        pool = pool->parent;
    }
    return NULL;
}

bool kiln_pool_has(struct kiln_pool *pool, size_t bytes)
{
    size_t lack;

    return !find_lacking(pool, bytes, &lack);
}

bool kiln_pool_reclaim(struct kiln_pool *pool, size_t bytes)
{
    void (*reclaim)(void *context, size_t bytes);
    void *context;
    size_t lack;

    pool = find_lacking(pool, bytes, &lack);
    if (!pool)
        return true;
    pthread_mutex_lock(&pool->lock);
    reclaim = pool->reclaim;
    context = pool->reclaim_context;
    pthread_mutex_unlock(&pool->lock);
    if (reclaim)
        reclaim(context, lack);
    return reclaim;
}

bool kiln_pool_could(struct kiln_pool *pool, size_t bytes)
{
    return kiln_pool_has(pool, bytes) ||
           (kiln_pool_reclaim(pool, bytes) && kiln_pool_has(pool, bytes));
}

int kiln_pool_take(struct kiln_pool *pool, size_t bytes)
{
    struct kiln_pool *lacking;

    measure(pool->meter, bytes);
    lacking = try_take(pool, bytes);
    if (lacking && kiln_pool_reclaim(pool, bytes))
        lacking = try_take(pool, bytes);
    if (!lacking)
        return 0;
    atomic_fetch_add_explicit(&lacking->refused, 1, memory_order_relaxed);
    return KILN_E_LIMIT;
}

static size_t give_owned(struct kiln_pool *pool, size_t bytes)
{
    size_t used, up;

    pthread_mutex_lock(&pool->lock);
    used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    up = over(pool, used) - over(pool, used - bytes);
    atomic_store_explicit(&pool->used, used - bytes, memory_order_relaxed);
    pthread_mutex_unlock(&pool->lock);
    return up;
}

void kiln_pool_give(struct kiln_pool *pool, size_t bytes)
{
    for (; pool && bytes; pool = pool->parent) {
        if (pool->own)
            bytes = give_owned(pool, bytes);
        else
            atomic_fetch_sub(&pool->used, bytes);
    }
}

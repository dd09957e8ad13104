/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"
#include "base/err.h"

void kiln_pool_init(struct kiln_pool *pool, const char *name, size_t limit,
                    struct kiln_pool *parent)
{
    pool->name = name;
    pool->parent = parent;
    pool->limit = limit;
    atomic_init(&pool->used, 0);
    atomic_init(&pool->peak, 0);
    atomic_init(&pool->refused, 0);
}

static void note_peak(struct kiln_pool *pool, size_t used)
{
    size_t peak = atomic_load_explicit(&pool->peak, memory_order_relaxed);

    while (used > peak && !atomic_compare_exchange_weak(&pool->peak, &peak, used))
        ;
}

int kiln_pool_take(struct kiln_pool *pool, size_t bytes)
{
    size_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);

    do {
        if (bytes > pool->limit || used > pool->limit - bytes) {
            atomic_fetch_add_explicit(&pool->refused, 1, memory_order_relaxed);
            return KILN_E_LIMIT;
        }
    } while (!atomic_compare_exchange_weak(&pool->used, &used, used + bytes));
    if (pool->parent) {
        int r = kiln_pool_take(pool->parent, bytes);

        if (r < 0) {
            atomic_fetch_sub(&pool->used, bytes);
            return r;
        }
    }
    note_peak(pool, used + bytes);
    return 0;
}

void kiln_pool_give(struct kiln_pool *pool, size_t bytes)
{
    for (; pool; pool = pool->parent)
        atomic_fetch_sub(&pool->used, bytes);
}

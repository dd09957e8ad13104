/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache.h"

#include "base/mem.h"
#include "test.h"

static void free_object(struct kiln_cached *object)
{
    kiln_free(object);
}

static struct kiln_cached *make(size_t bytes)
{
    struct kiln_cached *object = kiln_calloc(1, sizeof(*object));

    CHECK(object);
    object->bytes = bytes;
    object->free = free_object;
    atomic_init(&object->refs, 1);
    return object;
}

static const struct kiln_block_id block;

/* Puts or adds an object of so many bytes that nobody holds; whether it was kept. */
static bool keep(struct kiln_cache *cache, bool add, uint64_t what, size_t bytes)
{
    struct kiln_cached *object = make(bytes);
    bool kept = add ? kiln_cache_add(cache, &block, what, 0, object)
                    : kiln_cache_put(cache, &block, what, 0, object);

    kiln_cached_unref(object);
    return kept;
}

TEST(cache, what_is_made_of_the_rest_goes_first_and_drives_nothing_out)
{
    struct kiln_pool pool;
    struct kiln_cache cache;

    kiln_pool_init(&pool, "test", 1000, NULL);
    kiln_cache_init(&cache, &pool, 100);
    CHECK(keep(&cache, false, 1, 40));
    CHECK(keep(&cache, true, 2, 40));
    CHECK(keep(&cache, false, 3, 40));
    CHECK(kiln_cache_has(&cache, &block, 1) && kiln_cache_has(&cache, &block, 3));
    CHECK(!kiln_cache_has(&cache, &block, 2));
    CHECK(!keep(&cache, true, 4, 40));
    CHECK(keep(&cache, true, 5, 20));
    CHECK(keep(&cache, true, 6, 20));
    CHECK(!kiln_cache_has(&cache, &block, 5));
    CHECK(kiln_cache_has(&cache, &block, 1) && kiln_cache_has(&cache, &block, 3));
    kiln_cache_done(&cache);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

TEST(cache, what_was_used_last_stays)
{
    struct kiln_pool pool;
    struct kiln_cache cache;

    kiln_pool_init(&pool, "test", 1000, NULL);
    kiln_cache_init(&cache, &pool, 100);
    CHECK(keep(&cache, false, 1, 40));
    CHECK(keep(&cache, false, 2, 40));
    kiln_cached_unref(kiln_cache_find(&cache, &block, 1, 0));
    CHECK(keep(&cache, false, 3, 40));
    CHECK(kiln_cache_has(&cache, &block, 1));
    CHECK(!kiln_cache_has(&cache, &block, 2));
    kiln_cache_done(&cache);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

/* ---- cost ---- */

#define MANY 20000u

static struct kiln_cached *hold(struct kiln_cache *cache, uint64_t what, size_t bytes)
{
    struct kiln_cached *object = make(bytes);

    CHECK(kiln_cache_put(cache, &block, what, 0, object));
    return object;
}

TEST(cache, finding_one_of_many_parts_of_a_block_takes_a_few_looks)
{
    struct kiln_pool pool;
    struct kiln_cache cache;

    kiln_pool_init(&pool, "test", 10 * MANY, NULL);
    kiln_cache_init(&cache, &pool, 10 * MANY);
    for (uint64_t i = 0; i < MANY; i++)
        CHECK(keep(&cache, i % 2, i, 10));
    CHECK(cache.n_looks < 10 * MANY);
    cache.n_looks = 0;
    for (uint64_t i = 0; i < MANY; i++)
        kiln_cached_unref(kiln_cache_find(&cache, &block, i, 0));
    CHECK_EQ(atomic_load(&cache.hits), MANY);
    CHECK(cache.n_looks < 5 * MANY);
    kiln_cache_done(&cache);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

TEST(cache, eviction_does_not_look_at_what_is_held)
{
    struct kiln_cached **held = kiln_calloc(MANY, sizeof(*held));
    struct kiln_pool pool;
    struct kiln_cache cache;

    CHECK(held);
    kiln_pool_init(&pool, "test", 10 * MANY, NULL);
    kiln_cache_init(&cache, &pool, 10 * MANY);
    for (uint64_t i = 1; i < MANY; i++)
        held[i] = hold(&cache, i, 10);
    CHECK(keep(&cache, false, MANY, 10));
    cache.n_looks = 0;
    for (uint64_t i = 0; i < 1000; i++) { /* each one evicts the one before */
        CHECK(keep(&cache, false, MANY + 1 + i, 10));
        CHECK(!kiln_cache_has(&cache, &block, MANY + i));
        CHECK(!keep(&cache, false, 3 * MANY, 20));
        CHECK(!kiln_cache_has(&cache, &block, MANY + 1 + i));
    }
    CHECK(cache.n_looks < 20 * 1000);
    for (uint64_t i = 1; i < MANY; i++)
        kiln_cached_unref(held[i]);
    kiln_free(held);
    kiln_cache_done(&cache);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

TEST(cache, an_object_can_be_evicted_again_when_its_last_holder_lets_it_go)
{
    struct kiln_pool pool;
    struct kiln_cache cache;
    struct kiln_cached *first, *second;

    kiln_pool_init(&pool, "test", 1000, NULL);
    kiln_cache_init(&cache, &pool, 100);
    first = hold(&cache, 1, 60);
    second = kiln_cache_find(&cache, &block, 1, 0);
    kiln_cached_unref(first);
    CHECK(!keep(&cache, false, 2, 60)); /* still held once */
    kiln_cached_unref(second);
    CHECK(keep(&cache, false, 2, 60));
    CHECK(!kiln_cache_has(&cache, &block, 1));
    kiln_cache_done(&cache);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

TEST(cache, what_is_forgotten_while_it_is_held_lives_until_it_is_let_go)
{
    static const struct kiln_block_id other = {{1}};
    int64_t live = kiln_mem_live();
    struct kiln_pool pool;
    struct kiln_cache cache;
    struct kiln_cached *held;

    kiln_pool_init(&pool, "test", 1000, NULL);
    kiln_cache_init(&cache, &pool, 100);
    held = make(10);
    CHECK(kiln_cache_put(&cache, &other, 1, 0, held));
    CHECK(keep(&cache, false, 1, 10) && keep(&cache, true, 2, 10));
    kiln_cache_forget(&cache, &block);
    CHECK(!kiln_cache_has(&cache, &block, 1) && !kiln_cache_has(&cache, &block, 2));
    CHECK(kiln_cache_has(&cache, &other, 1));
    kiln_cache_forget(&cache, &other);
    CHECK_EQ(atomic_load(&pool.used), 0);
    CHECK_EQ(held->bytes, 10);
    kiln_cached_unref(held);
    kiln_cache_done(&cache);
    CHECK_EQ(kiln_mem_live(), live);
}

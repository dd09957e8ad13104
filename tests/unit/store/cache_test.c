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

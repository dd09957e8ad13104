/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/pool.h"
#include "test.h"

TEST(pool, gives_out_no_more_than_its_limit)
{
    struct kiln_pool pool;

    kiln_pool_init(&pool, "all", 100, NULL);
    CHECK_EQ(kiln_pool_take(&pool, 60), 0);
    CHECK_EQ(kiln_pool_take(&pool, 41), KILN_E_LIMIT);
    CHECK_EQ(kiln_pool_take(&pool, 40), 0);
    kiln_pool_give(&pool, 60);
    CHECK_EQ(pool.used, 40);
    CHECK_EQ(pool.peak, 100);
    CHECK_EQ(pool.refused, 1);
}

TEST(pool, takes_from_its_parent_or_not_at_all)
{
    struct kiln_pool all, part;

    kiln_pool_init(&all, "all", 100, NULL);
    kiln_pool_init(&part, "part", 80, &all);
    CHECK_EQ(kiln_pool_take(&all, 50), 0);
    CHECK_EQ(kiln_pool_take(&part, 60), KILN_E_LIMIT);
    CHECK_EQ(part.used, 0);
    CHECK_EQ(kiln_pool_take(&part, 50), 0);
    CHECK_EQ(all.used, 100);
    kiln_pool_give(&part, 50);
    CHECK_EQ(all.used, 50);
}

TEST(pool, what_it_owns_nobody_else_can_take)
{
    struct kiln_pool all, a, b;

    kiln_pool_init(&all, "all", 100, NULL);
    kiln_pool_init(&a, "a", 70, &all);
    kiln_pool_init(&b, "b", 80, &all);
    CHECK_OK(kiln_pool_own(&a, 30));
    CHECK_OK(kiln_pool_own(&b, 40));
    CHECK_EQ(all.used, 70);
    CHECK_OK(kiln_pool_take(&b, 70)); /* its own, and all that is common */
    CHECK_EQ(all.used, 100);
    CHECK(!kiln_pool_has(&a, 31));
    CHECK_EQ(kiln_pool_take(&a, 31), KILN_E_LIMIT);
    CHECK_EQ(all.refused, 1);
    CHECK(kiln_pool_has(&a, 30));
    CHECK_OK(kiln_pool_take(&a, 30));
    kiln_pool_give(&b, 10);
    CHECK_OK(kiln_pool_take(&a, 10));
    CHECK_EQ(kiln_pool_take(&b, 1), KILN_E_LIMIT);
    kiln_pool_give(&a, 40);
    kiln_pool_give(&b, 60);
    CHECK_EQ(a.used + b.used, 0);
    CHECK_EQ(all.used, 70);
}

enum { TAKERS = 4, ROUNDS = 20000 };

static void *take_and_give(void *arg)
{
    struct kiln_pool *pool = arg;

    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + i * 7 % 40;

        if (kiln_pool_take(pool, bytes) == 0)
            kiln_pool_give(pool, bytes);
    }
    return NULL;
}

TEST(pool, what_it_owns_is_counted_right_by_many_at_once)
{
    struct kiln_pool all, pools[2];
    pthread_t threads[TAKERS];

    kiln_pool_init(&all, "all", 100, NULL);
    for (int i = 0; i < 2; i++) {
        kiln_pool_init(&pools[i], "part", 60, &all);
        CHECK_OK(kiln_pool_own(&pools[i], 25));
    }
    for (int i = 0; i < TAKERS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, take_and_give, &pools[i % 2]));
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(pools[0].used + pools[1].used, 0);
    CHECK_EQ(all.used, 50);
    CHECK(all.peak <= 100);
}

static void give_up_cache(void *context, size_t bytes)
{
    struct kiln_pool *pool = context;
    size_t used = pool->used;

    kiln_pool_give(pool, bytes < used ? bytes : used);
}

TEST(pool, a_cache_gives_back_before_anybody_is_refused)
{
    struct kiln_pool all, cache, part;

    kiln_pool_init(&all, "all", 100, NULL);
    kiln_pool_init(&cache, "cache", 100, &all);
    kiln_pool_init(&part, "part", 100, &all);
    kiln_pool_on_short(&cache, give_up_cache, &cache);
    CHECK_OK(kiln_pool_take(&cache, 80));
    CHECK_OK(kiln_pool_take(&part, 60));
    CHECK_EQ(cache.used, 40);
    CHECK_OK(kiln_pool_take(&part, 40));
    CHECK_EQ(kiln_pool_take(&part, 1), KILN_E_LIMIT);
    CHECK_EQ(all.refused + part.refused, 1);
}

TEST(pool, a_cache_is_left_alone_where_it_would_not_help)
{
    struct kiln_pool all, cache, part;

    kiln_pool_init(&all, "all", 100, NULL);
    kiln_pool_init(&cache, "cache", 100, &all);
    kiln_pool_init(&part, "part", 50, &all);
    kiln_pool_on_short(&cache, give_up_cache, &cache);
    CHECK_OK(kiln_pool_take(&cache, 20));
    CHECK_EQ(kiln_pool_take(&part, 51), KILN_E_LIMIT);
    CHECK_EQ(cache.used, 20);
}

struct looker {
    struct kiln_pool_meter meter;
    struct kiln_pool *watched;
    size_t n, used; /* looks, and what was given out at the last */
};

static void look_at_pool(void *context)
{
    struct looker *looker = context;

    looker->n++;
    looker->used = looker->watched->used;
    looker->meter.taken = 0;
}

TEST(pool, somebody_looks_whenever_so_much_was_taken_whatever_was_given_back)
{
    struct kiln_pool all, part, below;
    struct looker looker = {.meter = {.every = 30, .look = look_at_pool}, .watched = &all};

    looker.meter.context = &looker;
    kiln_pool_init(&all, "all", 100, NULL);
    kiln_pool_init(&part, "part", 100, &all);
    kiln_pool_set_meter(&part, &looker.meter);
    kiln_pool_init(&below, "below", 100, &part);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(looker.n, 0);
        CHECK_OK(kiln_pool_take(i % 2 ? &below : &part, 9));
        kiln_pool_give(i % 2 ? &below : &part, 9);
    }
    CHECK_OK(kiln_pool_take(&all, 50)); /* not of the part */
    CHECK_EQ(looker.n, 0);
    CHECK_OK(kiln_pool_take(&below, 3));
    CHECK_EQ(looker.n, 1);
    CHECK_EQ(looker.used, 50); /* before it was given out */
    CHECK_EQ(kiln_pool_take(&part, 60), KILN_E_LIMIT);
    CHECK_EQ(looker.n, 2);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seen.h"

#include "base/err.h"
#include "test.h"

static const struct kiln_str key = {"shop\0cpu\0", 9};

static void add(struct kiln_seen *seen, uint64_t number)
{
    kiln_seen_add(seen, number, key, number, (struct kiln_content_hash){number * 7919, number});
}

static bool has(struct kiln_seen *seen, uint64_t number)
{
    struct kiln_content_hash hash = {number * 7919, number};
    int r = kiln_seen_find(seen, NULL, 0, key, number, hash);

    CHECK(r >= 0);
    return r;
}

TEST(seen, remembers_series_time_and_hash_together)
{
    struct kiln_pool pool;
    struct kiln_seen seen;

    kiln_pool_init(&pool, "test", (size_t)1 << 20, NULL);
    kiln_seen_init(&seen, &pool, 1, 0);
    CHECK(!has(&seen, 5));
    add(&seen, 5);
    CHECK(has(&seen, 5));
    CHECK_EQ(kiln_seen_find(&seen, NULL, 0, KILN_STR("other\0cpu\0"), 5,
                            (struct kiln_content_hash){5 * 7919, 5}),
             0);
    CHECK_EQ(kiln_seen_find(&seen, NULL, 0, key, 6, (struct kiln_content_hash){5 * 7919, 5}), 0);
    CHECK_EQ(kiln_seen_find(&seen, NULL, 0, key, 5, (struct kiln_content_hash){5 * 7919, 6}), 0);
    kiln_seen_clear(&seen, 5);
    CHECK(!has(&seen, 5));
    kiln_seen_done(&seen);
    CHECK_EQ(pool.used, 0);
}

TEST(seen, forgets_the_oldest_first_and_knows_from_where_on_it_remembers)
{
    struct kiln_pool pool;
    struct kiln_seen seen;

    kiln_pool_init(&pool, "test", (size_t)160 << 10, NULL);
    kiln_seen_init(&seen, &pool, 1, 0);
    for (uint64_t i = 1; i <= 50000; i++) {
        add(&seen, i);
        CHECK(has(&seen, i));
        if (i % 997 == 0) {
            CHECK(seen.old.from <= i + 1);
            for (uint64_t k = seen.old.from; k <= i; k++)
                CHECK(has(&seen, k));
        }
    }
    CHECK(seen.old.from > 40000);
    CHECK(50000 - seen.old.from > 1000);
    CHECK(pool.peak <= pool.limit);
    kiln_seen_done(&seen);
    CHECK_EQ(pool.used, 0);
}

TEST(seen, without_any_memory_remembers_nothing_and_says_so)
{
    struct kiln_pool pool;
    struct kiln_seen seen;

    kiln_pool_init(&pool, "test", 100, NULL);
    kiln_seen_init(&seen, &pool, 1, 0);
    for (uint64_t i = 1; i < 10; i++) {
        add(&seen, i);
        CHECK(!has(&seen, i));
        CHECK(seen.old.from > i);
    }
    kiln_seen_done(&seen);
}

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

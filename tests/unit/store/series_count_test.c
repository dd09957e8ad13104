/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the series of a tenant are counted anew, which walks all series of all blocks: not after
 * merges, and not under the tenant's lock where there is a keeper.
 */
#include "base/clock.h"
#include "drawn.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)
#define DAY (24 * 3600 * KILN_NS_PER_S)

static void put(struct store_kit *kit, const char *host, uint64_t time_ns)
{
    char resource[64];
    struct kiln_drawn p = {.stacks = "main 1\n", .time_ns = time_ns, .resource = resource};

    snprintf(resource, sizeof(resource), "service.name=s,host.name=%s", host);
    kit_put(kit, kiln_test_batch(&p, 1));
}

static struct kiln_tenant *tenant_of(struct store_kit *kit)
{
    return kiln_tenant_find(kiln_store_of(kit->engine), KILN_STR("anonymous"));
}

TEST(series_count, a_merge_takes_no_series_away)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    for (uint32_t i = 0; i < 4; i++) {
        put(&kit, i % 2 ? "a" : "b", NOW + i);
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
    }
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_EQ(tenant_of(&kit)->n_blocks, 1);
    CHECK(!tenant_of(&kit)->known_stale);
    CHECK_EQ(kit_stats(&kit).series, 2);
    kit_done(&kit);
}

TEST(series_count, what_retention_removes_makes_room)
{
    struct kiln_store *store;
    struct kiln_tenant *tenant;
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kit.opts.series_max = 2;
    kit_open(&kit);
    store = kiln_store_of(kit.engine);
    put(&kit, "old", NOW - 10 * DAY);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    put(&kit, "new", NOW);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 8 * DAY, NULL));
    tenant = tenant_of(&kit);
    CHECK_EQ(tenant->n_blocks, 1);
    CHECK(tenant->known_stale);
    store->has_keeper = true; /* the applier leaves counting to it */
    put(&kit, "past-the-limit", NOW + 1);
    kiln_store_settle(kit.engine);
    CHECK_EQ(tenant->known.n, 3); /* the overflow is one */
    CHECK(tenant->known_stale);
    CHECK_OK(kiln_tenant_recount_series(tenant));
    CHECK(!tenant->known_stale);
    CHECK_EQ(tenant->known.n, 2);
    store->has_keeper = false;
    kit_done(&kit);
}

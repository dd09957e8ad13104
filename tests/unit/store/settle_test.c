/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries while the applier stands still: they fail when their time is over, and none waits for
 * another.
 */
#include <errno.h>

#include "base/clock.h"
#include "drawn.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)

static const struct kiln_str tenant_name = {"anonymous", 9};

static void put(struct store_kit *kit, uint64_t time_ns)
{
    struct kiln_drawn p = {
        .stacks = "main;read 3\n", .time_ns = time_ns, .resource = "service.name=shop"};

    kit_put(kit, kiln_test_batch(&p, 1));
}

/* The applier needs the lock of the tenant, which this thread holds from here on. */
static struct kiln_tenant *hold_applier(struct store_kit *kit)
{
    struct kiln_tenant *tenant;

    kit_init(kit, NOW);
    put(kit, NOW);
    kiln_store_settle(kit->engine);
    tenant = kiln_tenant_find(kiln_store_of(kit->engine), tenant_name);
    pthread_mutex_lock(&tenant->lock);
    put(kit, NOW + 1);
    return tenant;
}

static void let_go(struct store_kit *kit, struct kiln_tenant *tenant)
{
    pthread_mutex_unlock(&tenant->lock);
    CHECK_TEXT(kit_drawing(kit, 0, 0), "main;read 6\n");
    kit_done(kit);
}

static int ask(struct store_kit *kit, struct kiln_leash *leash, struct kiln_err *err)
{
    const struct kiln_question q = {.tenants = &tenant_name, .n_tenants = 1, .leash = leash};
    const struct kiln_merge_wants wants = {.nodes_max = 100};
    struct kiln_merged *merged;
    int r = kit->engine->ops->merge(kit->engine, &q, &wants, &merged, err);

    if (r == 0)
        kiln_merged_free(merged);
    return r;
}

TEST(settle, a_query_fails_when_its_time_is_over)
{
    struct kiln_leash leash = {.deadline_mono_ns = kiln_clock_mono_ns() + 1};
    struct kiln_err err = {0};
    struct store_kit kit;
    struct kiln_tenant *tenant = hold_applier(&kit);

    CHECK_EQ(ask(&kit, &leash, &err), -ETIMEDOUT);
    CHECK_TEXT(err.text, "the store is behind: 1 batches that it took cannot be searched yet; ask "
                         "again later");
    leash.deadline_mono_ns = kiln_clock_mono_ns() + 30 * KILN_NS_PER_MS;
    CHECK_EQ(ask(&kit, &leash, NULL), -ETIMEDOUT);
    let_go(&kit, tenant);
}

TEST(settle, a_query_that_nobody_waits_for_ends)
{
    _Atomic bool gone = true;
    struct kiln_leash leash = {.gone = &gone};
    struct store_kit kit;
    struct kiln_tenant *tenant = hold_applier(&kit);

    CHECK_EQ(ask(&kit, &leash, NULL), -ECANCELED);
    let_go(&kit, tenant);
}

static int each(void *context, const struct kiln_series_found *series)
{
    (void)context;
    (void)series;
    return 0;
}

TEST(settle, selections_fail_when_their_time_is_over)
{
    struct kiln_leash leash = {.deadline_mono_ns = 1};
    struct kiln_selection selection = {.tenant = tenant_name, .leash = &leash};
    struct kiln_batch *batch;
    struct store_kit kit;
    struct kiln_tenant *tenant = hold_applier(&kit);
    const struct kiln_engine_ops *ops = kit.engine->ops;

    CHECK_EQ(ops->series(kit.engine, &selection, each, NULL, NULL), -ETIMEDOUT);
    CHECK_EQ(ops->select(kit.engine, &selection, 0, &batch, NULL), -ETIMEDOUT);
    let_go(&kit, tenant);
}

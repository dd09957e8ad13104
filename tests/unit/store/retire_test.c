/* SPDX-License-Identifier: Apache-2.0 */
/* Retention where times or clocks are wrong; keep_test.c has what it does where they are right. */
#include <errno.h>

#include "base/clock.h"
#include "blocks.h"
#include "drawn.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW  (UINT64_C(1700000000) * KILN_NS_PER_S)
#define HOUR (3600 * KILN_NS_PER_S)
#define DAY  (24 * HOUR)

static void put(struct store_kit *kit, const char *service, const char *stacks, uint64_t time_ns)
{
    char resource[64];
    struct kiln_drawn p = {.stacks = stacks, .time_ns = time_ns, .resource = resource};

    snprintf(resource, sizeof(resource), "service.name=%s", service);
    kit_put(kit, kiln_test_batch(&p, 1));
}

static void flush(struct store_kit *kit)
{
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
}

/* ---- times ---- */

/* A store with one block as an older Kiln wrote it, which took any timestamp, of the tenant "t". */
static void init_old(struct store_kit *kit, const char *stacks)
{
    struct kiln_drawn p = {
        .stacks = stacks, .time_ns = NOW, .duration_ns = 10, .resource = "service.name=shop"};
    struct kiln_batch *batch = kiln_test_batch(&p, 1);
    struct kiln_block_id id;

    kit_init(kit, NOW);
    kit_close(kit);
    CHECK_OK(block_write(kit->io, batch, NULL, &id, NULL));
    kiln_batch_unref(batch);
    kit_open(kit);
    CHECK_EQ(kit_stats(kit).blocks, 1);
}

TEST(retire, a_timestamp_in_the_far_future_keeps_no_old_block)
{
    struct store_kit kit;

    init_old(&kit, "old 1@9223372036854775807\n");
    CHECK_EQ(kit_stats(&kit).newest_ns, NOW + 600 * KILN_NS_PER_S);
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 14 * DAY, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 14 * DAY + 601 * KILN_NS_PER_S, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 0);
    kit_done(&kit);
}

/* Nothing of these blocks is out, though their times look so: that is found out once. */
static void check_left_alone(struct store_kit *kit, uint64_t now_ns)
{
    uint64_t profiles = kit_stats(kit).profiles, operations;
    const struct kiln_tenant *tenant = kiln_tenant_next(kiln_store_of(kit->engine), NULL);
    const struct kiln_block *block = tenant->blocks[0];

    CHECK_OK(kiln_store_retire(kit->engine, now_ns, NULL));
    CHECK(tenant->blocks[0] == block);
    operations = kiln_sim_operations(kit->io);
    CHECK_OK(kiln_store_retire(kit->engine, now_ns, NULL));
    CHECK_EQ(kiln_sim_operations(kit->io), operations);
    CHECK_EQ(kit_stats(kit).profiles, profiles);
    CHECK_EQ(kit_stats(kit).blocks, 1);
    kit_done(kit);
}

TEST(retire, a_timestamp_of_1970_has_an_old_block_read_once)
{
    struct store_kit kit;

    init_old(&kit, "old 1@100\n");
    check_left_alone(&kit, NOW);
}

TEST(retire, a_rewrite_that_would_leave_nothing_out_is_not_repeated)
{
    struct kiln_drawn p = {
        .time_ns = NOW - 13 * DAY, .duration_ns = 13 * DAY, .resource = "service.name=shop"};
    struct store_kit kit;
    char stacks[64];

    snprintf(stacks, sizeof(stacks), "long @%llu\n", (unsigned long long)NOW);
    p.stacks = stacks;
    kit_init(&kit, NOW);
    kit_put(&kit, kiln_test_batch(&p, 1));
    flush(&kit);
    check_left_alone(&kit, NOW + 5 * DAY);
}

/* ---- the clock ---- */

/* What the thread does when it looks at a clock that shows this time. */
static void retire_at(struct store_kit *kit, uint64_t now_ns)
{
    kiln_clock_set(now_ns);
    kiln_keep_clock_look(kiln_store_of(kit->engine));
    CHECK_OK(kiln_store_retire(kit->engine, now_ns, NULL));
}

TEST(retire, a_clock_that_jumps_ahead_removes_nothing_and_refuses_nothing)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "shop", "old 1\n", NOW - 13 * DAY);
    put(&kit, "cart", "young 1\n", NOW);
    flush(&kit);
    retire_at(&kit, NOW + 30 * DAY);
    CHECK(kit_stats(&kit).clock_ahead_ns > 29 * DAY);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "old 1\nyoung 1\n");
    put(&kit, "shop", "other 1\n", NOW); /* of a host whose clock is right */
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "old 1\nother 1\nyoung 1\n");
    retire_at(&kit, NOW + HOUR);
    CHECK_EQ(kit_stats(&kit).clock_ahead_ns, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "old 1\nother 1\nyoung 1\n");
    retire_at(&kit, NOW - 30 * DAY);
    CHECK_EQ(kit_stats(&kit).clock_ahead_ns, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "old 1\nother 1\nyoung 1\n");
    kit_done(&kit);
}

TEST(retire, data_of_a_wrong_clock_prove_nothing_after_a_restart)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "shop", "right 1\n", NOW);
    retire_at(&kit, NOW + 30 * DAY);
    kit.now_ns = NOW + 30 * DAY;
    put(&kit, "shop", "wrong 1\n", NOW + 30 * DAY);
    kit_reopen(&kit);
    CHECK(kit_stats(&kit).clock_ahead_ns > 29 * DAY);
    retire_at(&kit, NOW + 30 * DAY);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "right 1\nwrong 1\n");
    kiln_clock_set(NOW + HOUR);
    kit_reopen(&kit);
    CHECK_EQ(kit_stats(&kit).clock_ahead_ns, 0);
    CHECK_EQ(kit.io->open(kit.io, "clock", 0), -ENOENT);
    kit_done(&kit);
}

TEST(retire, a_start_long_after_the_newest_data_removes_nothing_at_once)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "shop", "old 1\n", NOW);
    kit_close(&kit);
    kiln_clock_set(NOW + 20 * DAY);
    kit_open(&kit);
    CHECK(kit_stats(&kit).clock_ahead_ns > 19 * DAY);
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 20 * DAY, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "old 1\n");
    kit_done(&kit);
}

TEST(retire, limits_of_bytes_hold_whatever_the_clock_shows)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "shop", "old 1\n", NOW);
    flush(&kit);
    kit_close(&kit);
    kit.opts.retention.bytes = 1;
    kiln_clock_set(NOW + 20 * DAY);
    kit_open(&kit);
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 20 * DAY, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 0);
    kit_done(&kit);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/mem.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)
#define DAY (24 * 3600 * KILN_NS_PER_S)

static struct kiln_batch *drawn(const char *stacks, uint64_t time_ns, const char *resource)
{
    struct kiln_drawn p = {.stacks = stacks, .time_ns = time_ns, .resource = resource};

    return kiln_test_batch(&p, 1);
}

static void put(struct store_kit *kit, const char *stacks, uint64_t time_ns)
{
    kit_put(kit, drawn(stacks, time_ns, "service.name=shop"));
}

TEST(store, what_was_acknowledged_is_found_at_once)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main;read 3\n", NOW);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
    put(&kit, "main;read 4\nmain;idle 1\n", NOW + 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;idle 1\nmain;read 7\n");
    CHECK_TEXT(kit_drawing(&kit, NOW, NOW + 1), "main;read 3\n");
    kit_done(&kit);
}

TEST(store, a_flush_moves_it_into_a_block_and_empties_the_log)
{
    struct store_kit kit;
    struct kiln_engine_stats stats;

    kit_init(&kit, NOW);
    put(&kit, "main;read 3\n", NOW);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    stats = kit_stats(&kit);
    CHECK_EQ(stats.blocks, 1);
    CHECK_EQ(stats.profiles, 1);
    CHECK_EQ(stats.series, 1);
    CHECK_EQ(stats.log_bytes, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
    put(&kit, "main;read 4\n", NOW + 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 7\n");
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 2);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 7\n");
    CHECK_TEXT(kit_drawing(&kit, NOW + 1, NOW + 2), "main;read 4\n");
    kit_done(&kit);
}

TEST(store, closing_leaves_blocks_and_no_log)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main;read 3\n", NOW);
    kit_reopen(&kit);
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
    kit_done(&kit);
}

/* Cancels an opening before the record that has this number in `left`, from 0. */
static bool is_due(void *context)
{
    uint32_t *left = context;

    return (*left)-- == 0;
}

TEST(store, an_opening_that_is_cancelled_leaves_all_to_the_next)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    for (uint64_t i = 0; i < 5; i++)
        put(&kit, "main;read 3\n", NOW + i);
    kit_cut_power(&kit, 1);
    for (uint32_t n = 0; n <= 5; n++) {
        uint32_t left = n;
        struct kiln_store_opening opening = {.is_cancelled = is_due, .context = &left};
        struct kiln_err err = {0};

        kit.opts.io = kit.io;
        kit.opts.opening = &opening;
        CHECK_EQ(kiln_store_open(&kit.opts, &kit.engine, &err), n < 5 ? -ECANCELED : 0);
        CHECK(opening.log.all > 0 && opening.log.done <= opening.log.all);
        CHECK_EQ(opening.log.done == opening.log.all, n == 5);
    }
    kit.opts.opening = NULL;
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 15\n");
    kit_done(&kit);
}

TEST(store, a_power_cut_loses_nothing_that_was_acknowledged)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct store_kit kit;

        kit_init(&kit, NOW);
        put(&kit, "main;read 3\n", NOW);
        if (seed % 2)
            CHECK_OK(kiln_store_flush(kit.engine, NULL));
        put(&kit, "main;read 4\n", NOW + 1);
        kit_cut_power(&kit, seed);
        kit_open(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 7\n");
        kit_done(&kit);
    }
}

TEST(store, the_same_profile_again_is_not_kept_wherever_the_first_one_is)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main;read 3\nmain 1\n", NOW);
    put(&kit, "main;read 3\nmain 1\n", NOW); /* in the head */
    CHECK_EQ(kit_stats(&kit).profiles, 1);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    put(&kit, "main;read 3\nmain 1\n", NOW); /* in a block of late */
    CHECK_EQ(kit_stats(&kit).profiles, 1);
    kit_reopen(&kit);
    put(&kit, "main;read 3\nmain 1\n", NOW); /* in a block of before */
    put(&kit, "main 1\nmain;read 3\n", NOW);
    CHECK_EQ(kit_stats(&kit).profiles, 1);
    put(&kit, "main;read 3\nmain 2\n", NOW); /* another */
    CHECK_EQ(kit_stats(&kit).profiles, 2);
    kit_cut_power(&kit, 7);
    kit_open(&kit);
    put(&kit, "main;read 3\nmain 1\n", NOW);
    put(&kit, "main;read 3\nmain 2\n", NOW);
    CHECK_EQ(kit_stats(&kit).profiles, 2);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\nmain;read 6\n");
    kit_done(&kit);
}

TEST(store, profiles_without_a_time_are_all_kept)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main 1\n", 0);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    put(&kit, "main 1\n", 0);
    put(&kit, "main 1\n", NOW + DAY);
    CHECK_TEXT(kit_drawing(&kit, NOW, NOW + 1), "main 3\n");
    kit_done(&kit);
}

TEST(store, what_is_older_than_the_retention_is_refused_with_a_sentence)
{
    struct kiln_drawn both[] = {
        {.stacks = "old 1\n", .time_ns = NOW - 15 * DAY, .resource = "service.name=shop"},
        {.stacks = "new 1\n", .time_ns = NOW - 13 * DAY},
    };
    struct kiln_batch *batch = kiln_test_batch(both, 2), *old = kiln_test_batch(both, 1);
    struct kit_outcome outcome;
    struct store_kit kit;

    kit_init(&kit, NOW);
    outcome = kit_append_to(&kit, "anonymous", batch);
    CHECK_EQ(outcome.code, 0);
    CHECK_EQ(outcome.rejected, 1);
    CHECK_TEXT(outcome.err.text, "a profile of 2023-10-30T22:13:20Z is older than the retention, "
                                 "which reaches back to 2023-10-31T22:13:20Z");
    outcome = kit_append_to(&kit, "anonymous", old);
    CHECK_EQ(outcome.code, 0);
    CHECK_EQ(outcome.rejected, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "new 1\n");
    kit_cut_power(&kit, 1);
    kiln_clock_set(NOW + 2 * DAY); /* what was taken then stays, whatever the time is now */
    kit_open(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "new 1\n");
    kiln_batch_unref(batch);
    kiln_batch_unref(old);
    kit_done(&kit);
}

TEST(store, tenants_do_not_see_each_other)
{
    struct kiln_batch *batch = drawn("main 1\n", NOW, "service.name=shop");
    struct kiln_selection selection = {.tenant = KILN_STR("b")};
    struct kiln_batch *got;
    struct store_kit kit;

    kit_init(&kit, NOW);
    CHECK_OK(kit_append_to(&kit, "a", batch).code);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_OK(kit_append_to(&kit, "b", batch).code);
    CHECK_OK(kit_append_to(&kit, "b", batch).code);
    CHECK_EQ(kit_append_to(&kit, "../b", batch).code, KILN_E_MALFORMED);
    kit_reopen(&kit);
    CHECK_OK(kit.engine->ops->select(kit.engine, &selection, 0, &got, NULL));
    CHECK_EQ(got->n_profiles, 1);
    CHECK_EQ(kit_stats(&kit).profiles, 2);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "");
    kiln_batch_unref(got);
    kiln_batch_unref(batch);
    kit_done(&kit);
}

static int list_key(void *context, const struct kiln_series_found *series)
{
    struct kiln_buf *out = context;
    struct kiln_series parsed;

    CHECK_OK(kiln_series_parse(series->key, &parsed));
    kiln_buf_add_str(out, parsed.service);
    kiln_buf_printf(out, " %d\n", (int)series->n_profiles);
    return 0;
}

TEST(store, series_are_listed_in_order_from_blocks_and_heads)
{
    struct kiln_matcher matcher = {KILN_STR("service.name"), KILN_STR("b"), KILN_MATCH_NE, NULL};
    struct kiln_selection selection = {.tenant = KILN_STR("anonymous")};
    struct kiln_buf out;
    struct store_kit kit;

    kit_init(&kit, NOW);
    kiln_buf_init(&out, 4096);
    kit_put(&kit, drawn("main 1\n", NOW, "service.name=b"));
    kit_put(&kit, drawn("main 1\n", NOW, "service.name=a"));
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    kit_put(&kit, drawn("main 1\n", NOW + 5, "service.name=c"));
    kit_put(&kit, drawn("main 1\n", NOW + 5, "service.name=a"));
    CHECK_OK(kit.engine->ops->series(kit.engine, &selection, list_key, &out, NULL));
    CHECK_STR(kiln_buf_str(&out), "a 2\nb 1\nc 1\n");
    kiln_buf_clear(&out);
    selection.matchers = &matcher;
    selection.n_matchers = 1;
    selection.start_ns = NOW + 1;
    selection.end_ns = NOW + 9;
    CHECK_OK(kit.engine->ops->series(kit.engine, &selection, list_key, &out, NULL));
    CHECK_STR(kiln_buf_str(&out), "a 1\nc 1\n");
    kiln_buf_done(&out);
    kit_done(&kit);
}

TEST(store, a_newer_format_is_refused_in_one_sentence)
{
    static const char text[] = "{\"version\":2,\"seed\":\"1\"}";
    struct kiln_err err = {0};
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_close(&kit);
    CHECK_OK(kiln_io_put(kit.io, "store.json", text, sizeof(text) - 1));
    CHECK_EQ(kiln_store_open(&kit.opts, &kit.engine, &err), KILN_E_UNSUPPORTED);
    CHECK_TEXT(err.text, "the store has format 2, written by a newer Kiln; this one reads up to 1");
    kit.engine = NULL;
    kit_done(&kit);
}

static int first_block(void *context, const char *name)
{
    char *path = context;

    if (!*path && strstr(name, ".kb"))
        snprintf(path, 128, "blocks/anonymous/%s", name);
    return 0;
}

TEST(store, one_damaged_block_is_set_aside_and_stops_nothing)
{
    char path[128] = "";
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main 1\n", NOW);
    kit_reopen(&kit);
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", first_block, path));
    put(&kit, "main 2\n", NOW + 1);
    kit_close(&kit);
    for (int i = 1; i < 12; i++)
        kiln_sim_flip(kit.io, path, (uint64_t)i, 3);
    kit_open(&kit);
    CHECK_EQ(kit_stats(&kit).set_aside, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 2\n");
    kit_reopen(&kit);
    CHECK_EQ(kit_stats(&kit).set_aside, 0); /* it is gone from where blocks are */
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    kit_done(&kit);
}

TEST(store, a_block_that_turns_out_damaged_is_set_aside_while_questions_go_on)
{
    char path[128] = "";
    uint64_t size = 0;
    struct store_kit kit;
    int fd;

    kit_init(&kit, NOW);
    put(&kit, "main;read;parse;decode 1\n", NOW);
    kit_reopen(&kit);
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", first_block, path));
    put(&kit, "main 2\n", NOW + 1);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    fd = kit.io->open(kit.io, path, 0);
    CHECK_OK(kit.io->size(kit.io, fd, &size));
    CHECK_OK(kit.io->close(kit.io, fd));
    for (uint64_t i = 16; i < size; i++)
        kiln_sim_flip(kit.io, path, i, 2);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 2\n");
    CHECK_EQ(kit_stats(&kit).set_aside, 1);
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 2\n");
    kit_done(&kit);
}

TEST(store, whatever_the_log_fails_with_senders_are_to_try_again)
{
    static const int codes[][2] = {{-EMFILE, -EIO}, {-EROFS, -EIO}, {-EDQUOT, -ENOSPC}};
    struct kiln_batch *batch = drawn("main 1\n", NOW, "service.name=shop");
    struct store_kit kit;

    kit_init(&kit, NOW);
    for (size_t i = 0; i < KILN_ARRAY_LEN(codes); i++) {
        kiln_sim_fail_at(kit.io, 2, codes[i][0]); /* the first looks for space */
        CHECK_EQ(kit_append_to(&kit, "anonymous", batch).code, codes[i][1]);
    }
    CHECK_OK(kit_append_to(&kit, "anonymous", batch).code);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 1\n");
    kiln_batch_unref(batch);
    kit_done(&kit);
}

TEST(store, a_full_disk_refuses_and_goes_on_when_there_is_room)
{
    struct kiln_batch *batch = drawn("main 1\n", NOW, "service.name=shop");
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main 2\n", NOW);
    kiln_sim_limit(kit.io, kiln_sim_used(kit.io) + 8);
    CHECK_EQ(kit_append_to(&kit, "anonymous", batch).code, -ENOSPC);
    CHECK_EQ(kiln_store_flush(kit.engine, NULL), -ENOSPC);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 2\n");
    kiln_sim_limit(kit.io, UINT64_MAX);
    CHECK_OK(kit_append_to(&kit, "anonymous", batch).code);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\n");
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\n");
    kiln_batch_unref(batch);
    kit_done(&kit);
}

TEST(store, a_cut_that_fails_anywhere_is_made_up_for_and_doubles_nothing)
{
    for (uint64_t n = 1; n < 200; n++) {
        struct store_kit kit;
        int r;

        kit_init(&kit, NOW);
        put(&kit, "main 1\n", NOW);
        kiln_sim_fail_at(kit.io, n, -EIO);
        r = kiln_store_flush(kit.engine, NULL);
        kiln_sim_fail_at(kit.io, 0, 0);
        put(&kit, "main 2\n", NOW + 1);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\n");
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\n");
        kit_reopen(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\n");
        kit_done(&kit);
        if (r == 0 && n > 20)
            break;
    }
}

TEST(store, a_reader_sees_blocks_and_log_and_changes_nothing)
{
    struct kiln_batch *batch = drawn("main 9\n", NOW, "service.name=shop");
    uint64_t operations;
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main 1\n", NOW);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    put(&kit, "main 2\n", NOW + 1);
    kit_cut_power(&kit, 3);
    operations = kiln_sim_operations(kit.io);
    kit.opts.read_only = true;
    kit_open(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\n");
    CHECK_EQ(kit_append_to(&kit, "anonymous", batch).code, -EROFS);
    CHECK_EQ(kiln_store_flush(kit.engine, NULL), -EROFS);
    kit_close(&kit);
    CHECK_EQ(kiln_sim_operations(kit.io), operations);
    kiln_batch_unref(batch);
    kit_done(&kit);
}

TEST(store, appends_are_refused_before_memory_runs_out_and_taken_after_a_cut)
{
    struct kiln_pool pool;
    struct store_kit kit;
    uint32_t n = 0, refused = 0;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kiln_pool_init(&pool, "test", (size_t)1 << 20, NULL);
    kit.opts.pool = &pool;
    kit_open(&kit);
    while (refused < 3 && n < 100000) {
        char stacks[64];
        struct kiln_batch *batch;
        struct kit_outcome outcome;

        snprintf(stacks, sizeof(stacks), "main;f%u;g%u %u\n", n, n, n + 1);
        batch = drawn(stacks, NOW + n, "service.name=shop");
        outcome = kit_append_to(&kit, "anonymous", batch);
        kiln_batch_unref(batch);
        CHECK(outcome.code == 0 || outcome.code == -EAGAIN);
        n += outcome.code == 0;
        refused += outcome.code != 0;
        kiln_store_settle(kit.engine);
    }
    CHECK_EQ(refused, 3);
    CHECK(pool.peak <= pool.limit);
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    put(&kit, "main 5\n", NOW + n);
    CHECK_EQ(kit_stats(&kit).profiles, n + 1);
    kit_close(&kit);
    CHECK_EQ(pool.used, 0);
    kit_done(&kit);
}

/* Appends, and tries again while the store says that it has too much to do. */
static void insist(struct store_kit *kit, const char *tenant, uint32_t n)
{
    char stacks[64];
    struct kiln_batch *batch;
    int code;

    snprintf(stacks, sizeof(stacks), "main;f%u;g%u 1\n", n, n);
    batch = drawn(stacks, NOW + n, "service.name=shop");
    while ((code = kit_append_to(kit, tenant, batch).code) == -EAGAIN)
        sched_yield();
    CHECK_OK(code);
    kiln_batch_unref(batch);
}

TEST(store, cuts_by_itself_in_little_memory_and_goes_on)
{
    struct kiln_pool pool;
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kiln_pool_init(&pool, "test", (size_t)2 << 20, NULL);
    kit.opts.pool = &pool;
    kit.opts.no_background = false;
    kit_open(&kit);
    for (uint32_t i = 0; i < 3000; i++)
        insist(&kit, i % 50 ? "anonymous" : "other", i);
    CHECK(kit_stats(&kit).blocks > 0);
    CHECK_EQ(kit_stats(&kit).profiles, 3000);
    CHECK(pool.peak <= pool.limit);
    kit_reopen(&kit);
    CHECK_EQ(kit_stats(&kit).profiles, 3000);
    kit_close(&kit);
    CHECK_EQ(pool.used, 0);
    kit_done(&kit);
}

TEST(store, tenants_that_came_once_do_not_keep_the_memory)
{
    struct kiln_pool pool;
    struct store_kit kit;
    char name[16];

    kit_init(&kit, NOW);
    kit_close(&kit);
    kiln_pool_init(&pool, "test", (size_t)1 << 20, NULL);
    kit.opts.pool = &pool;
    kit.opts.no_background = false;
    kit_open(&kit);
    for (uint32_t i = 0; i < 150; i++) {
        snprintf(name, sizeof(name), "t%u", i);
        insist(&kit, name, i);
    }
    insist(&kit, "t0", 0); /* known, whatever was forgotten */
    kiln_store_settle(kit.engine);
    CHECK_EQ(kit_stats(&kit).profiles, 150);
    kit_close(&kit);
    CHECK_EQ(pool.used, 0);
    kit_done(&kit);
}

TEST(store, the_series_limit_counts_what_is_in_blocks_too)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kit.opts.series_max = 2;
    kit_open(&kit);
    for (int i = 0; i < 6; i++) {
        char resource[64];

        snprintf(resource, sizeof(resource), "service.name=s,host.name=h%d", i);
        kit_put(&kit, drawn("main 1\n", NOW, resource));
        if (i % 2)
            kit_reopen(&kit);
    }
    CHECK_EQ(kit_stats(&kit).series, 3); /* two, and the overflow */
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 6\n");
    kit_done(&kit);
}

TEST(store, services_past_the_limit_of_series_share_one)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kit.opts.series_max = 4;
    kit_open(&kit);
    for (int i = 0; i < 50; i++) {
        char resource[64];

        snprintf(resource, sizeof(resource), "service.name=s%d", i);
        kit_put(&kit, drawn("main 1\n", NOW, resource));
        if (i % 10 == 9)
            kit_reopen(&kit);
    }
    CHECK_EQ(kit_stats(&kit).series, 7); /* four, two services' overflow, and that of all others */
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 50\n");
    kit_done(&kit);
}

TEST(store, leaves_no_memory_behind)
{
    int64_t live = kiln_mem_live();
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main 1\n", NOW);
    put(&kit, "main 1\n", NOW);
    kit_reopen(&kit);
    put(&kit, "main 1\n", NOW);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 1\n");
    kit_done(&kit);
    kiln_batch_unref(kiln_test_stacks("a 1\n")); /* the kit's texts stay */
    CHECK(kiln_mem_live() <= live + 1);
}

TEST(store, without_memory_nothing_that_was_acknowledged_is_lost)
{
    for (uint64_t n = 1; n < 400; n += 3) {
        struct kiln_batch *batch = drawn("main;f 4\n", NOW + 1, "service.name=shop");
        struct kiln_batch *got = NULL;
        struct kiln_selection selection = {.tenant = KILN_STR("anonymous")};
        struct store_kit kit;
        bool taken;

        kit_init(&kit, NOW);
        put(&kit, "main;f 3\n", NOW);
        kiln_mem_fail_at(n);
        taken = kit_append_to(&kit, "anonymous", batch).code == 0;
        kiln_store_settle(kit.engine);
        if (kiln_store_flush(kit.engine, NULL) == 0 &&
            kit.engine->ops->select(kit.engine, &selection, 0, &got, NULL) == 0)
            kiln_batch_unref(got);
        kiln_mem_fail_at(0);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), taken ? "main;f 7\n" : "main;f 3\n");
        kit_reopen(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), taken ? "main;f 7\n" : "main;f 3\n");
        kiln_batch_unref(batch);
        kit_done(&kit);
    }
}

TEST(store, an_open_that_fails_anywhere_leaves_everything_as_it_was)
{
    for (uint64_t n = 1; n < 120; n++) {
        struct kiln_engine *engine;
        struct store_kit kit;

        kit_init(&kit, NOW);
        put(&kit, "main 1\n", NOW);
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
        put(&kit, "main 2\n", NOW + 1);
        kit_cut_power(&kit, n);
        kiln_sim_fail_at(kit.io, n, -EIO);
        if (kiln_store_open(&kit.opts, &engine, NULL) == 0)
            engine->ops->close(engine);
        kiln_sim_fail_at(kit.io, 0, 0);
        kit_open(&kit);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main 3\n");
        kit_done(&kit);
    }
}

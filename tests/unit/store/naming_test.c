/* SPDX-License-Identifier: Apache-2.0 */
/* Names that come later than the samples: every question has them, from heads and from blocks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "answers.h"
#include "drawn.h"
#include "nameless.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW 1000000

static void put(struct store_kit *kit, const char *stacks)
{
    const struct kiln_nameless drawn = {.stacks = stacks, .build_id = "abc", .time_ns = NOW};

    kit_put(kit, kiln_test_nameless(&drawn));
}

static void flush(struct store_kit *kit)
{
    CHECK_OK(kiln_store_flush(kit->engine, NULL));
}

TEST(naming, an_address_without_a_name_becomes_all_that_was_inlined_there)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "start;10;+20 5\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "start;app+0x10;app+0x20 5\n");
    for (int i = 0; i < 2; i++) { /* from the head, then from a block */
        kiln_test_put_names(kit.engine, "abc", "10 get;main\n20 .read\n");
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "start;main;get;read 5\n");
        flush(&kit);
    }
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "start;main;get;read 5\n");
    kit_done(&kit);
}

TEST(naming, what_a_symbol_table_named_gets_what_is_deeper_and_nothing_else)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main@10;main@14;main@18;known!10;kernel?10 5\n");
    kiln_test_put_names(kit.engine, "abc", "10 get;main\n14 .other\n18\n");
    for (int i = 0; i < 2; i++) {
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;get;main;main;known;kernel 5\n");
        flush(&kit);
    }
    kit_done(&kit);
}

TEST(naming, what_was_dropped_is_as_it_was)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "main@10;20 5\n");
    kiln_test_put_names(kit.engine, "abc", "10 get;main\n20 read\n");
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;get;read 5\n");
    CHECK_OK(
        kit.engine->ops->drop_symbols(kit.engine, KILN_STR("anonymous"), KILN_STR("abc"), NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;app+0x20 5\n");
    kit_done(&kit);
}

TEST(naming, what_lacks_a_name_is_told_until_it_has_a_symbol)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "");
    put(&kit, "start;30;10;main@20;known!40;kernel?50;+60 5\n30;10 1\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 60\n");
    flush(&kit);
    put(&kit, "10;70 1\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 60 70\n");
    kiln_test_put_names(kit.engine, "abc", "10 get;main\n20\n60-70 read\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 30 70\n");
    kiln_test_put_names(kit.engine, "abc", "30 x\n70 y\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "");
    CHECK_OK(
        kit.engine->ops->drop_symbols(kit.engine, KILN_STR("anonymous"), KILN_STR("abc"), NULL));
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 60 70\n");
    kit_done(&kit);
}

TEST(naming, who_asks_again_what_lacks_a_name_reads_nothing)
{
    struct store_kit kit;
    uint64_t calls;

    kit_init(&kit, NOW);
    put(&kit, "10;main@20 5\n");
    flush(&kit);
    put(&kit, "30 5\n");
    flush(&kit);
    put(&kit, "40 5\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 40\n");
    calls = kiln_sim_calls(kit.io);
    for (int i = 0; i < 3; i++)
        CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 40\n");
    CHECK_EQ(kiln_sim_calls(kit.io), calls);
    put(&kit, "50 5\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "abc /bin/app 10 20 30 40 50\n");
    kit_done(&kit);
}

/* ---- every question ---- */

static const struct kiln_merge_wants tree = {.nodes_max = 100, .functions = true};

static int64_t total_of(struct store_kit *kit, const struct kiln_question *q)
{
    struct kiln_merged *merged = NULL;
    int64_t total;

    CHECK_OK(kit->engine->ops->merge(kit->engine, q, &tree, &merged, NULL));
    total = merged->total;
    kiln_merged_free(merged);
    return total;
}

static const char *view_of(struct kiln_batch *batch)
{
    struct kiln_view_opts opts = {0};
    struct kiln_view *view = kiln_test_view(kiln_batch_ref(batch), &opts);
    static char text[512];

    snprintf(text, sizeof(text), "%s", kiln_test_view_text(view));
    kiln_view_free(view);
    return text;
}

static void check_choices(struct store_kit *kit)
{
    const struct kiln_timeline_opts buckets = {.step_ns = NOW};
    const struct kiln_found_opts found = {0};
    struct kiln_str get = KILN_STR("get"), hex = KILN_STR("app+0x10");
    struct kiln_str site[] = {KILN_STR("start"), KILN_STR("main"), KILN_STR("get")};
    struct kiln_window window = {0, 2 * NOW};
    struct kiln_question q = kiln_test_question();

    q.stacks = (struct kiln_stack_choice){.with = &get, .n_with = 1};
    CHECK_EQ(total_of(kit, &q), 6);
    CHECK_TEXT(kiln_test_found(kit->engine, &q, &found), "1000000+1 6 1 0\n");
    q.windows = &window;
    q.n_windows = 1;
    CHECK_TEXT(kiln_test_timeline(kit->engine, &q, &buckets), ": 1=6\n");
    q.stacks = (struct kiln_stack_choice){.without = &get, .n_without = 1};
    CHECK_EQ(total_of(kit, &q), 4);
    q.stacks = (struct kiln_stack_choice){.with = &hex, .n_with = 1};
    CHECK_EQ(total_of(kit, &q), 0);
    q.stacks = (struct kiln_stack_choice){.call_site = site, .n_call_site = 3};
    CHECK_EQ(total_of(kit, &q), 6);
}

static void check_batches(struct store_kit *kit)
{
    const struct kiln_merge_wants profile = {.profile = true};
    const struct kiln_moments_opts few = {0};
    const char *whole = "start;main 4\nstart;main;get;read 6\n";
    struct kiln_question q = kiln_test_question();
    struct kiln_moments *moments = NULL;
    struct kiln_merged *merged = NULL;

    CHECK_OK(kit->engine->ops->merge(kit->engine, &q, &profile, &merged, NULL));
    CHECK_TEXT(view_of(merged->profile), whole);
    kiln_merged_free(merged);
    CHECK_OK(kit->engine->ops->moments(kit->engine, &q, &few, &moments, NULL));
    CHECK_TEXT(view_of(moments->batch), whole);
    kiln_moments_free(moments);
    CHECK_TEXT(kit_drawing(kit, 0, 0), whole);
}

static void check_all(struct store_kit *kit)
{
    struct kiln_question q = kiln_test_question();

    CHECK_TEXT(kiln_test_merge(kit->engine, &q, &tree),
               "total 10 0\n  start 10 0\n    main 10 4\n      get 6 0\n        read 6 6\n"
               "read 6 6\nmain 4 10\nstart 0 10\nget 0 6\n");
    check_choices(kit);
    check_batches(kit);
}

/* Whether a function of the tree is said to be inlined. */
static bool is_inlined(struct store_kit *kit, const char *name)
{
    struct kiln_question q = kiln_test_question();
    struct kiln_merged *merged = NULL;
    bool inlined = false;

    CHECK_OK(kit->engine->ops->merge(kit->engine, &q, &tree, &merged, NULL));
    for (uint32_t i = 0; i < merged->flame->n_names; i++) {
        const struct kiln_flame_name *f = &merged->flame->names[i];

        inlined = inlined || (kiln_str_eq(f->name, kiln_str_of(name)) && f->inlined);
    }
    kiln_merged_free(merged);
    return inlined;
}

static void put_story(struct store_kit *kit)
{
    const struct kiln_nameless drawn = {.stacks = "start;main@10;20 6\nstart;main@18 4\n",
                                        .build_id = "abc",
                                        .service = "shop",
                                        .time_ns = NOW,
                                        .timed = true};

    kit_put(kit, kiln_test_nameless(&drawn));
}

#define NAMES "10 get;main\n20 read\n18 main\n"

TEST(naming, every_question_has_the_names_in_heads_and_blocks)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_story(&kit);
    kiln_test_put_names(kit.engine, "abc", NAMES);
    for (int i = 0; i < 2; i++) {
        check_all(&kit);
        CHECK(is_inlined(&kit, "get"));
        CHECK(!is_inlined(&kit, "main"));
        CHECK(!is_inlined(&kit, "read"));
        flush(&kit);
    }
    kit_reopen(&kit);
    check_all(&kit);
    kit_done(&kit);
}

TEST(naming, what_was_answered_before_is_answered_anew)
{
    struct kiln_question q = kiln_test_question();
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_story(&kit);
    flush(&kit);
    for (int i = 0; i < 2; i++)
        CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree),
                   "total 10 0\n  start 10 0\n    main 10 4\n      app+0x20 6 6\n"
                   "app+0x20 6 6\nmain 4 10\nstart 0 10\n");
    kiln_test_put_names(kit.engine, "abc", "20 read\n");
    CHECK_TEXT(kiln_test_merge(kit.engine, &q, &tree),
               "total 10 0\n  start 10 0\n    main 10 4\n      read 6 6\n"
               "read 6 6\nmain 4 10\nstart 0 10\n");
    kiln_test_put_names(kit.engine, "abc", NAMES);
    check_all(&kit);
    kit_done(&kit);
}

/* ---- rewriting ---- */

static void drop(struct store_kit *kit)
{
    CHECK_OK(
        kit->engine->ops->drop_symbols(kit->engine, KILN_STR("anonymous"), KILN_STR("abc"), NULL));
}

TEST(naming, a_merge_gives_names_for_good)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_story(&kit);
    flush(&kit);
    put(&kit, "30 1\n");
    flush(&kit);
    kiln_test_put_names(kit.engine, "abc", NAMES "30 last\n");
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    drop(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "last 1\nstart;main 4\nstart;main;get;read 6\n");
    CHECK_TEXT(kiln_test_unnamed(kit.engine), "");
    kit_done(&kit);
}

/* The id of the one block there is. */
static int note_block(void *context, const char *name)
{
    snprintf(context, 64, "%s", name);
    return 0;
}

TEST(naming, a_block_is_rewritten_once_when_names_came_and_not_again)
{
    char before[64], after[64], again[64];
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_story(&kit);
    flush(&kit);
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, before));
    kiln_test_put_names(kit.engine, "abd", NAMES); /* of another program */
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, after));
    CHECK_TEXT(after, before);
    kiln_test_put_names(kit.engine, "abc", NAMES);
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, after));
    CHECK(strcmp(before, after) != 0);
    check_all(&kit);
    kiln_test_put_names(kit.engine, "abc", "10 get;main\n40 more\n"); /* nothing new for it */
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, again));
    CHECK_TEXT(again, after);
    drop(&kit);
    check_all(&kit);
    kit_reopen(&kit);
    check_all(&kit);
    kit_done(&kit);
}

TEST(naming, the_keeper_waits_until_names_are_quiet_and_the_block_has_rested)
{
    const struct kiln_rename_limits usual = kiln_rename_limits;
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_story(&kit);
    flush(&kit);
    kiln_test_put_names(kit.engine, "abc", NAMES);
    CHECK_EQ(kiln_keep_rename(kiln_store_of(kit.engine), false, NULL), 0);
    kiln_rename_limits.rest_ns = 0;
    CHECK_EQ(kiln_keep_rename(kiln_store_of(kit.engine), false, NULL), 0);
    kiln_rename_limits = (struct kiln_rename_limits){.rest_ns = usual.rest_ns};
    CHECK_EQ(kiln_keep_rename(kiln_store_of(kit.engine), false, NULL), 0);
    kiln_rename_limits.rest_ns = 0;
    CHECK_EQ(kiln_keep_rename(kiln_store_of(kit.engine), false, NULL), 1);
    CHECK_EQ(kiln_keep_rename(kiln_store_of(kit.engine), false, NULL), 0);
    kiln_rename_limits = usual;
    drop(&kit);
    check_all(&kit);
    kit_done(&kit);
}

TEST(naming, names_that_look_made_up_do_not_make_it_begin_anew)
{
    char before[64], after[64];
    struct store_kit kit;

    kit_init(&kit, NOW);
    put(&kit, "10;+20;main@30 1\n");
    flush(&kit);
    kiln_test_put_names(kit.engine, "abc", "10 .app+0x99\n20 .app+0x20\n30 .other\n");
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "app+0x99;app+0x20;main 1\n");
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, before));
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_OK(kit.io->list(kit.io, "blocks/anonymous", note_block, after));
    CHECK_TEXT(after, before);
    kit_done(&kit);
}

/* ---- what nothing needs ---- */

#define DAY (86400 * UINT64_C(1000000000))

TEST(naming, symbols_go_a_day_after_nothing_refers_to_their_build_id)
{
    uint64_t n = 0;
    struct store_kit kit;

    kit_init(&kit, NOW);
    put_story(&kit);
    flush(&kit);
    put(&kit, "10 1\n");
    kiln_test_put_names(kit.engine, "abc", NAMES);
    kiln_test_put_names(kit.engine, "abd", NAMES);
    CHECK_OK(kiln_store_retire(kit.engine, NOW, NULL));
    CHECK_OK(kiln_store_retire(kit.engine, NOW + DAY - 1, NULL));
    CHECK_EQ(kit.io->list(kit.io, "symbols/anonymous", note_block, (char[64]){0}), 0);
    CHECK_OK(kiln_store_retire(kit.engine, NOW + DAY, NULL));
    CHECK_EQ(kit.io->open(kit.io, "symbols/anonymous/abd", 0), -ENOENT);
    CHECK_OK(kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"), KILN_STR("shop"),
                                             &n, NULL));
    CHECK_EQ(n, 1);
    CHECK_OK(kiln_store_retire(kit.engine, NOW + DAY, NULL));
    CHECK_OK(kiln_store_retire(kit.engine, NOW + 2 * DAY, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;get 1\n"); /* something else has it */
    kit_done(&kit);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that are logged as received, with a recipe: here, folded stacks.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "codec/collapsed.h"
#include "drawn.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1900000000) * KILN_NS_PER_S)

static int followed;

/* "a" puts all profiles at NOW, as the batch had it; any other recipe is none. */
static int follow(struct kiln_str recipe, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    int r;

    followed++;
    if (!kiln_str_eq(recipe, KILN_STR("a")))
        return kiln_err_set(err, KILN_E_MALFORMED, "recipe", "it is not a");
    r = kiln_collapsed_decode(content, b, err);
    for (uint32_t i = 0; r == 0 && i < kiln_builder_peek(b)->n_profiles; i++)
        kiln_builder_profile(b, i)->time_ns = NOW;
    return r;
}

static void start(struct store_kit *kit)
{
    kit_init(kit, NOW);
    kit->opts.follow = follow;
    kit_reopen(kit);
    followed = 0;
}

/* Appends stacks as if they had been received like this. */
static void append(struct store_kit *kit, const char *stacks, struct kiln_str recipe,
                   enum kiln_compression compression)
{
    struct kiln_batch *batch = kiln_test_stacks(stacks);
    struct kiln_buf body;

    for (uint32_t i = 0; i < batch->n_profiles; i++)
        batch->profiles[i].time_ns = NOW;
    kiln_buf_init(&body, 1u << 20);
    if (compression == KILN_PLAIN)
        kiln_buf_puts(&body, stacks);
    else
        CHECK_OK(kiln_compress(compression, 0, kiln_str_of(stacks), &body));
    CHECK_OK(kit_append(kit, &(struct kiln_append){.batch = batch,
                                                   .tenant = "anonymous",
                                                   .body = kiln_buf_str(&body),
                                                   .body_compression = compression,
                                                   .recipe = recipe})
                 .code);
    kiln_buf_done(&body);
    kiln_batch_unref(batch);
}

TEST(store_recipe, what_was_kept_with_a_recipe_is_made_by_it_again)
{
    static const enum kiln_compression all[] = {KILN_PLAIN, KILN_GZIP, KILN_ZSTD};

    for (size_t i = 0; i < KILN_ARRAY_LEN(all); i++) {
        struct store_kit kit;

        start(&kit);
        append(&kit, "main;read 3\n", KILN_STR("a"), all[i]);
        kit_put(&kit, kiln_test_stacks("main;write 4\n"));
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\nmain;write 4\n");
        CHECK_EQ(followed, 0);
        kit_cut_power(&kit, i + 1);
        kit_open(&kit);
        CHECK_EQ(followed, 1);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\nmain;write 4\n");
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
        kit_reopen(&kit);
        CHECK_EQ(followed, 1);
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\nmain;write 4\n");
        kit_done(&kit);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(store_recipe, a_duplicate_is_known_after_a_replay)
{
    struct store_kit kit;

    start(&kit);
    append(&kit, "main;read 3\n", KILN_STR("a"), KILN_GZIP);
    kit_cut_power(&kit, 1);
    kit_open(&kit);
    append(&kit, "main;read 3\n", KILN_STR("a"), KILN_PLAIN);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
    kit_done(&kit);
}

TEST(store_recipe, a_store_that_cannot_follow_recipes_keeps_none)
{
    struct store_kit kit;

    kit_init(&kit, NOW);
    append(&kit, "main;read 3\n", KILN_STR("a"), KILN_GZIP);
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
    kit_done(&kit);
}

TEST(store_recipe, a_log_with_recipes_is_not_opened_without_somebody_who_follows_them)
{
    struct kiln_err err = {0};
    struct store_kit kit;

    start(&kit);
    append(&kit, "main;read 3\n", KILN_STR("a"), KILN_PLAIN);
    kit_cut_power(&kit, 1);
    kit.opts.follow = NULL;
    CHECK_EQ(kiln_store_open(&kit.opts, &kit.engine, &err), KILN_E_UNSUPPORTED);
    CHECK_TEXT(err.where, "wal");
    CHECK_TEXT(err.text, "record 1 has a recipe, and there is nothing here to follow it");
    kit.opts.follow = follow;
    kit_open(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
    kit_done(&kit);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(store_recipe, a_record_with_a_bad_recipe_is_counted_and_stops_no_other)
{
    struct kiln_metrics *metrics;
    struct store_kit kit;
    struct kiln_buf text;

    CHECK_OK(kiln_metrics_new(&metrics));
    start(&kit);
    kit.opts.metrics = metrics;
    append(&kit, "main;read 3\n", KILN_STR("b"), KILN_PLAIN);
    append(&kit, "main;write 4\n", KILN_STR("a"), KILN_PLAIN);
    kit_cut_power(&kit, 1);
    kit_open(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;write 4\n");
    kiln_buf_init(&text, 1u << 20);
    kiln_metrics_format(metrics, &text);
    CHECK(kiln_str_contains(kiln_buf_str(&text), KILN_STR("kiln_store_unapplied_total 1")));
    kiln_buf_done(&text);
    kit_done(&kit);
    kiln_metrics_free(metrics);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that do not read back: what can be written is, the rest is set aside as OTLP, and nothing
 * is lost or doubled, whenever power fails.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "core/merge.h"
#include "drawn.h"
#include "random_batch.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW   (UINT64_C(1700000000) * KILN_NS_PER_S)
#define ASIDE "aside/anonymous-1.otlp"

static const char *refused = "bad"; /* services that begin so are not read back */

static int refuse_services(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    for (uint32_t i = 0; i < kiln_block_info(block)->n_series; i++) {
        struct kiln_block_series s;
        struct kiln_series series;

        CHECK_OK(kiln_block_series(block, i, &s));
        CHECK_OK(kiln_series_parse(s.key, &series));
        if (kiln_str_starts(series.service, kiln_str_of(refused)))
            return kiln_err_set(err, KILN_E_CORRUPT, "series", "refused");
    }
    return kiln_block_verify_within(block, memory_bytes, err);
}

static int refuse_merges(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    if (kiln_block_info(block)->level)
        return kiln_err_set(err, KILN_E_CORRUPT, "level", "refused");
    return kiln_block_verify_within(block, memory_bytes, err);
}

static int refuse_two(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    if (kiln_block_info(block)->n_series > 1)
        return kiln_err_set(err, KILN_E_MALFORMED, "series", "refused");
    return kiln_block_verify_within(block, memory_bytes, err);
}

static int lack_memory(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    (void)block;
    (void)memory_bytes;
    return kiln_err_set(err, KILN_E_LIMIT, NULL, "too large");
}

static uint32_t verified;

static int count_verified(struct kiln_block *block, size_t memory_bytes, struct kiln_err *err)
{
    int r = kiln_block_verify_within(block, memory_bytes, err);

    CHECK_OK(r);
    verified++;
    return r;
}

static void open_refusing(struct store_kit *kit, kiln_block_verifier *verify)
{
    kit_init(kit, NOW);
    kit->opts.verify = verify;
    kit_reopen(kit);
}

static void put(struct store_kit *kit, const char *service, const char *stacks)
{
    char resource[64];
    struct kiln_drawn p = {.stacks = stacks, .time_ns = NOW, .resource = resource};

    snprintf(resource, sizeof(resource), "service.name=%s", service);
    kit_put(kit, kiln_test_batch(&p, 1));
}

/* What a file in aside/ draws; lives until the next drawing. */
static const char *drawing_of(struct store_kit *kit, const char *path)
{
    struct kiln_otlp_opts opts = {.copies = true};
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct kiln_view *view;
    const char *text;
    void *data;
    size_t n;

    if (kiln_io_get(kit->io, path, 1 << 20, &data, &n) < 0)
        return "no file";
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_otlp_decode((struct kiln_str){data, n}, &opts, b, NULL, NULL));
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    view = kiln_test_view(batch, NULL);
    text = kiln_test_view_text(view);
    kiln_view_free(view);
    kiln_free(data);
    return text;
}

TEST(read_back, a_series_that_does_not_read_back_is_set_aside_and_the_others_are_kept)
{
    struct store_kit kit;

    open_refusing(&kit, refuse_services);
    put(&kit, "shop", "main;read 3\n");
    put(&kit, "bad", "main;poison 7\n");
    put(&kit, "cart", "main;pay 2\n");
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_EQ(kit_stats(&kit).set_aside, 1);
    CHECK_EQ(kit_stats(&kit).log_bytes, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;pay 2\nmain;read 3\n");
    CHECK_TEXT(drawing_of(&kit, ASIDE), "main;poison 7\n");
    kit_reopen(&kit);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;pay 2\nmain;read 3\n");
    kit_done(&kit);
}

TEST(read_back, several_among_many_are_found)
{
    struct store_kit kit;

    open_refusing(&kit, refuse_services);
    for (int i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%s%d", i % 40 == 7 ? "bad" : "good", i);
        put(&kit, name, i % 40 == 7 ? "main;poison 1\n" : "main;fine 1\n");
    }
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;fine 97\n");
    CHECK_TEXT(drawing_of(&kit, ASIDE), "main;poison 3\n");
    kit_done(&kit);
}

TEST(read_back, too_many_to_try_each_are_all_set_aside)
{
    struct store_kit kit;
    unsigned long fine = 0, poison = 0;

    open_refusing(&kit, refuse_services);
    for (int i = 0; i < 400; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%s%d", i % 2 ? "bad" : "good", i);
        put(&kit, name, i % 2 ? "main;poison 1\n" : "main;fine 1\n");
    }
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK(sscanf(kit_drawing(&kit, 0, 0), "main;fine %lu", &fine) == 1);
    CHECK(fine > 0 && fine < 200);
    CHECK(sscanf(drawing_of(&kit, ASIDE), "main;fine %lu\nmain;poison %lu", &(unsigned long){0},
                 &poison) == 2);
    CHECK_EQ(poison, 200);
    kit_done(&kit);
}

TEST(read_back, where_nothing_reads_back_no_block_is_written_and_the_log_is_emptied)
{
    struct store_kit kit;

    open_refusing(&kit, refuse_services);
    put(&kit, "bad", "main;poison 7\n");
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 0);
    CHECK_EQ(kit_stats(&kit).log_bytes, 0);
    CHECK_TEXT(drawing_of(&kit, ASIDE), "main;poison 7\n");
    kit_reopen(&kit);
    CHECK_EQ(kit_stats(&kit).profiles, 0);
    CHECK_EQ(kit_stats(&kit).set_aside, 0); /* since the start */
    kit_done(&kit);
}

TEST(read_back, series_that_read_back_alone_but_not_together_are_set_aside)
{
    struct store_kit kit;

    open_refusing(&kit, refuse_two);
    put(&kit, "shop", "main;read 3\n");
    put(&kit, "cart", "main;pay 2\n");
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 0);
    CHECK_TEXT(drawing_of(&kit, ASIDE), "main;pay 2\nmain;read 3\n");
    kit_done(&kit);
}

TEST(read_back, a_block_too_large_to_read_back_is_kept)
{
    struct store_kit kit;

    open_refusing(&kit, lack_memory);
    put(&kit, "shop", "main;read 3\n");
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_EQ(kit_stats(&kit).set_aside, 0);
    kit_done(&kit);
}

/* Until the block is there, the log has all of it; a start may write the file once more. */
TEST(read_back, a_power_cut_at_any_moment_loses_and_doubles_nothing)
{
    for (uint64_t n = 1;; n++) {
        struct store_kit kit;
        bool survived;

        open_refusing(&kit, refuse_services);
        put(&kit, "shop", "main;read 3\n");
        put(&kit, "bad", "main;poison 7\n");
        kiln_sim_cut_at(kit.io, n);
        survived = kiln_store_flush(kit.engine, NULL) == 0 && !kiln_sim_is_dead(kit.io);
        kit_cut_power(&kit, n);
        kit_open(&kit);
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
        CHECK_TEXT(drawing_of(&kit, ASIDE), "main;poison 7\n");
        kit_done(&kit);
        if (survived)
            break;
        CHECK(n < 1000);
    }
}

TEST(read_back, a_call_that_fails_is_made_good_by_the_next_cut)
{
    for (uint64_t n = 1;; n++) {
        struct store_kit kit;
        uint64_t calls;
        bool reached;

        open_refusing(&kit, refuse_services);
        put(&kit, "shop", "main;read 3\n");
        put(&kit, "bad", "main;poison 7\n");
        calls = kiln_sim_calls(kit.io);
        kiln_sim_fail_at(kit.io, n, -EIO);
        (void)!kiln_store_flush(kit.engine, NULL);
        reached = kiln_sim_calls(kit.io) - calls >= n;
        kiln_sim_fail_at(kit.io, 0, 0);
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
        CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 3\n");
        CHECK_TEXT(drawing_of(&kit, ASIDE), "main;poison 7\n");
        kit_done(&kit);
        if (!reached)
            break;
        CHECK(n < 2000);
    }
}

TEST(read_back, cuts_and_merges_have_the_memory_to_read_their_blocks_back)
{
    struct store_kit kit;

    kit_init(&kit, 5000); /* random batches begin at 1000 */
    kit.opts.verify = count_verified;
    kit_reopen(&kit);
    verified = 0;
    for (uint64_t i = 0; i < 8; i++) {
        struct random_opts opts = {.seed = i + 1, .samples = 2000, .resources = 20};

        kit_put(&kit, random_batch(&opts));
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
    }
    CHECK_EQ(verified, 8);
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_EQ(verified, 9);
    kit_done(&kit);
}

/* ---- merges ---- */

static void put_blocks(struct store_kit *kit, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char stacks[32];

        snprintf(stacks, sizeof(stacks), "main;f%u 1\n", i);
        put(kit, "shop", stacks);
        CHECK_OK(kiln_store_flush(kit->engine, NULL));
    }
}

TEST(read_back, the_inputs_of_a_merge_that_does_not_read_back_stay)
{
    struct store_kit kit;

    open_refusing(&kit, refuse_merges);
    put_blocks(&kit, 3);
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL)); /* and ends */
    CHECK_EQ(kit_stats(&kit).blocks, 3);
    CHECK_EQ(kit_stats(&kit).set_aside, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;f0 1\nmain;f1 1\nmain;f2 1\n");
    kit.opts.verify = NULL;
    kit_reopen(&kit);
    CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;f0 1\nmain;f1 1\nmain;f2 1\n");
    kit_done(&kit);
}

TEST(read_back, a_deletion_that_cannot_rewrite_says_so_and_removes_nothing)
{
    struct store_kit kit;
    struct kiln_err err = {0};
    uint64_t n;

    open_refusing(&kit, refuse_services);
    put(&kit, "cart", "main;pay 2\n");
    put(&kit, "shop", "main;read 3\n");
    CHECK_OK(kiln_store_flush(kit.engine, NULL));
    refused = "shop";
    CHECK(kit.engine->ops->delete_service(kit.engine, KILN_STR("anonymous"), KILN_STR("cart"), &n,
                                          &err) < 0);
    refused = "bad";
    CHECK(strstr(err.text, "cannot be read back"));
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;pay 2\nmain;read 3\n");
    kit_done(&kit);
}

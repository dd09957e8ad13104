/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Duplicates of what is in blocks: every profile of a block is recognised, nothing else is, and
 * what that reads does not grow with the number of profiles that are looked up.
 */
#include "store/seen_block.h"

#include <stdlib.h>

#include "base/clock.h"
#include "blocks.h"
#include "drawn.h"
#include "random_batch.h"
#include "sim_io.h"
#include "store/block_int.h"
#include "store/block_times.h"
#include "store_kit.h"
#include "test.h"

#define SEED 42
#define NOW  (UINT64_C(1700000000) * KILN_NS_PER_S)

/* ---- what a block holds, by reading all of it ---- */

struct content {
    struct kiln_rows rows;
    struct kiln_content content;
    struct kiln_block *block;
};

static void pass_over(void *context, const struct kiln_block_lost *lost)
{
    (void)context;
    (void)lost;
}

static void content_of(struct content *c, struct kiln_block *block)
{
    struct kiln_block_read_opts opts = {.lost = pass_over};
    struct kiln_block_reader *reader;

    c->block = block;
    CHECK_OK(kiln_rows_init(&c->rows, NULL));
    kiln_content_init(&c->content, SEED);
    CHECK_OK(kiln_block_read(block, &opts, c->rows.b, &reader, NULL));
    CHECK_OK(kiln_rows_read(&c->rows, reader, NULL, NULL));
    CHECK_OK(kiln_content_learn(&c->content, kiln_rows_batch(&c->rows)));
    kiln_block_reader_free(reader);
}

static void content_done(struct content *c)
{
    kiln_content_done(&c->content);
    kiln_rows_done(&c->rows);
}

struct one {
    struct kiln_str key;
    uint64_t time_ns;
    struct kiln_content_hash hash;
};

static struct one one_of(const struct content *c, uint32_t i)
{
    const struct kiln_row *row = &c->rows.rows[i];
    const struct kiln_batch *batch = kiln_rows_batch(&c->rows);
    struct kiln_content_place place = {row->resource, row->scope, row->first_sample};
    struct kiln_block_series series;

    CHECK_OK(kiln_block_series(c->block, row->series, &series));
    return (struct one){series.key, batch->profiles[i].time_ns,
                        kiln_content_profile(&c->content, batch, i, &place)};
}

/* What has the time of its arrival is never recognised. */
static bool has_own_time(const struct content *c, uint32_t i)
{
    return !(c->rows.rows[i].flags & KILN_PROFILE_TIME_SET);
}

static int find(struct kiln_seen *seen, struct kiln_block *const *blocks, uint32_t n,
                struct one one)
{
    return kiln_seen_find(seen, blocks, n, one.key, one.time_ns, one.hash);
}

/* Each profile of a block is found, and none that differs in its series, time or content. */
static void check_finds(struct kiln_seen *seen, struct kiln_block *const *blocks, uint32_t n,
                        struct kiln_block *block)
{
    struct content c;

    content_of(&c, block);
    for (uint32_t i = 0; i < c.rows.n; i++) {
        struct one one = one_of(&c, i), other = one;

        CHECK_EQ(find(seen, blocks, n, one), has_own_time(&c, i));
        other.hash.hi ^= 1;
        CHECK_EQ(find(seen, blocks, n, other), 0);
        other = one;
        other.time_ns += 12345;
        CHECK_EQ(find(seen, blocks, n, other), 0);
        other = one;
        other.key = KILN_STR("nobody\0cpu\0");
        CHECK_EQ(find(seen, blocks, n, other), 0);
    }
    content_done(&c);
}

static void check_block(struct kiln_block *block, size_t bytes_max)
{
    struct kiln_pool pool;
    struct kiln_seen seen;

    kiln_pool_init(&pool, "test", (size_t)256 << 20, NULL);
    kiln_seen_init(&seen, &pool, SEED, 1000);
    if (bytes_max)
        seen.bytes_max = bytes_max;
    check_finds(&seen, &block, 1, block);
    kiln_seen_done(&seen);
    CHECK_EQ(pool.used, 0);
}

TEST(seen_block, finds_what_random_blocks_hold_and_nothing_else)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_opts opts = {.seed = seed, .plain_profiles = seed % 3 == 1};
        struct kiln_io *io = kiln_sim_new();
        struct kiln_batch *batch = random_batch(&opts);
        struct kiln_block *block;

        assert_non_null(batch);
        block = block_of(io, batch);
        check_block(block, 0);
        check_block(block, 1); /* nothing stays in memory */
        kiln_block_unref(block);
        kiln_batch_unref(batch);
        kiln_sim_free(io);
    }
}

TEST(seen_block, finds_what_a_block_of_format_1_holds)
{
    static const char *const names[] = {"block-v1.kb", "block-v1-rollups.kb",
                                        "block-v1-empty-attribute.kb"};
    struct kiln_block *block;
    struct kiln_io *io;

    CHECK_OK(kiln_io_open(KILN_SOURCE_DIR "/tests/fixtures", true, &io));
    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        CHECK_OK(kiln_block_open(io, names[i], &block, NULL));
        check_block(block, 0);
        kiln_block_unref(block);
    }
    kiln_io_close(io);
}

/* ---- many pages ---- */

/* `n` profiles of each of three services, one a second, which begin `from` seconds after NOW; every
 * tenth has the same time as the one before. */
static struct kiln_batch *many(uint32_t n, uint64_t from, const char *stack)
{
    static const char *const services[] = {"service.name=a", "service.name=b", "service.name=c"};
    struct kiln_drawn *drawn = calloc(n * KILN_ARRAY_LEN(services), sizeof(*drawn));
    struct kiln_batch *batch;

    for (uint32_t i = 0; i < n * KILN_ARRAY_LEN(services); i++)
        drawn[i] =
            (struct kiln_drawn){.stacks = i % n % 10 ? stack : "same;time 9\n",
                                .time_ns = NOW + (from + i % n - (i % n % 10 == 9)) * KILN_NS_PER_S,
                                .resource = i % n ? NULL : services[i / n]};
    batch = kiln_test_batch(drawn, n * KILN_ARRAY_LEN(services));
    free(drawn);
    return batch;
}

/* A page of rows ends with 16,384 profiles: a service has several. */
TEST(seen_block, reads_each_page_of_a_large_block_once)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch;
    struct kiln_block *block;
    struct kiln_pool pool;
    struct kiln_seen seen;
    struct content c;
    uint64_t calls;

    kiln_hash_seed = 0x2545f4914f6cdd1du; /* with another one two short hashes might be equal */
    batch = many(40000, 0, "main;a 1\n");
    block = block_of(io, batch);
    CHECK(block->footer.n_rows >= 9);
    kiln_pool_init(&pool, "test", (size_t)512 << 20, NULL);
    kiln_seen_init(&seen, &pool, SEED, 1000);
    content_of(&c, block);
    calls = kiln_sim_calls(io);
    for (uint32_t i = 0; i < c.rows.n; i += 31) {
        struct one one = one_of(&c, i);

        one.time_ns += 1;
        CHECK_EQ(find(&seen, &block, 1, one), 0);
    }
    CHECK_EQ(seen.work.dicts, 0);
    CHECK_EQ(seen.work.blocks, 1);
    CHECK_EQ(seen.work.pages, block->footer.n_rows);
    CHECK(kiln_sim_calls(io) - calls <= block->footer.n_pages);
    for (uint32_t i = 0; i < c.rows.n; i++)
        CHECK_EQ(find(&seen, &block, 1, one_of(&c, i)), has_own_time(&c, i));
    CHECK_EQ(seen.work.dicts, 1);
    CHECK_EQ(seen.work.contents, block->footer.n_rows);
    content_done(&c);
    kiln_seen_done(&seen);
    CHECK_EQ(pool.used, 0);
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(seen_block, little_memory_costs_reads_and_no_answers)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_block *blocks[3];
    struct kiln_pool pool;
    struct kiln_seen seen;

    for (uint32_t i = 0; i < 3; i++) {
        struct kiln_batch *batch = many(300, i * 150, i % 2 ? "main;a 1\n" : "main;b 2\n");

        blocks[i] = block_of(io, batch);
        kiln_batch_unref(batch);
    }
    kiln_pool_init(&pool, "test", (size_t)64 << 20, NULL);
    for (size_t most = 1; most < 100000; most *= 4) {
        kiln_seen_init(&seen, &pool, SEED, 1000);
        seen.bytes_max = most;
        for (uint32_t i = 0; i < 3; i++)
            check_finds(&seen, blocks, 3, blocks[i]);
        kiln_seen_change(&seen, &blocks[1], 1);
        check_finds(&seen, (struct kiln_block *[]){blocks[0], blocks[2]}, 2, blocks[2]);
        kiln_seen_rest(&seen);
        kiln_seen_rest(&seen);
        CHECK(!seen.readers[0]);
        kiln_seen_done(&seen);
        CHECK_EQ(pool.used, 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        kiln_block_unref(blocks[i]);
    kiln_sim_free(io);
}

TEST(seen_block, without_memory_it_says_that_it_does_not_know)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = many(10, 0, "main;a 1\n");
    struct kiln_block *block = block_of(io, batch);
    struct kiln_pool pool;
    struct kiln_seen seen;
    struct content c;

    kiln_pool_init(&pool, "test", 100, NULL);
    kiln_seen_init(&seen, &pool, SEED, 1000);
    content_of(&c, block);
    CHECK_EQ(find(&seen, &block, 1, one_of(&c, 3)), KILN_E_LIMIT);
    content_done(&c);
    kiln_seen_done(&seen);
    CHECK_EQ(pool.used, 0);
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

/* ---- damage ---- */

/* Of a damaged block, what can still be read is found, and the rest is not. */
TEST(seen_block, finds_what_is_left_of_a_damaged_block)
{
    struct kiln_batch *batch = many(200, 0, "main;a 1\n");

    for (uint32_t page = 0;; page++) {
        struct kiln_io *io = kiln_sim_new();
        struct kiln_block *block = block_of(io, batch);
        uint32_t n_pages = block->footer.n_pages;

        if (page < n_pages)
            CHECK(kiln_sim_flip(io, block->path, block->footer.pages[page].offset + 9, 3));
        check_block(block, 0);
        kiln_block_unref(block);
        kiln_sim_free(io);
        if (page == n_pages)
            break;
    }
    kiln_batch_unref(batch);
}

/* ---- the store ---- */

static void put_many(struct store_kit *kit, uint64_t from, const char *stack)
{
    kit_put(kit, many(30, from, stack));
}

/* What was delivered counts once, however often it comes: out of blocks, merged ones, and after a
 * start, which remembers nothing but blocks. */
TEST(seen_block, a_store_takes_nothing_twice_from_its_blocks)
{
    struct store_kit kit;
    uint64_t n;

    kit_init(&kit, NOW + 100000 * KILN_NS_PER_S);
    for (uint32_t i = 0; i < 4; i++) {
        put_many(&kit, i * 10, i % 2 ? "main;a 1\n" : "main;b 1\n");
        CHECK_OK(kiln_store_flush(kit.engine, NULL));
    }
    n = kit_stats(&kit).profiles;
    CHECK(kit_stats(&kit).blocks > 1);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t i = 0; i < 4; i++)
            put_many(&kit, i * 10, i % 2 ? "main;a 1\n" : "main;b 1\n");
        CHECK_EQ(kit_stats(&kit).profiles, n);
        if (round == 1)
            CHECK_OK(kiln_store_compact(kit.engine, true, NULL));
        kit_reopen(&kit);
    }
    CHECK_EQ(kit_stats(&kit).blocks, 1);
    put_many(&kit, 10, "main;other 1\n"); /* the same series and times */
    CHECK(kit_stats(&kit).profiles > n);
    kit_done(&kit);
}

/* Batches whose times lie between those of a block, in many windows of time. */
static void check_reads(uint32_t series_max)
{
    struct store_kit kit;
    uint64_t calls, few;

    kit_init(&kit, NOW + 1000000 * KILN_NS_PER_S);
    kit.opts.series_max = series_max;
    kit_reopen(&kit);
    for (uint32_t i = 0; i < 40; i++)
        put_many(&kit, i * 1000, "main;a 1\n");
    kit_reopen(&kit);
    calls = kiln_sim_calls(kit.io);
    put_many(&kit, 500, "main;b 1\n");
    kiln_store_settle(kit.engine);
    few = kiln_sim_calls(kit.io) - calls;
    calls = kiln_sim_calls(kit.io);
    for (uint32_t i = 1; i < 40; i++)
        put_many(&kit, i * 1000 + 500, "main;b 1\n");
    kiln_store_settle(kit.engine);
    /* An append is written and synced; the block was read by the first one. */
    CHECK(kiln_sim_calls(kit.io) - calls < 39 * 8);
    CHECK(few < 40);
    kit_done(&kit);
}

TEST(seen_block, what_is_new_costs_a_store_no_reads_by_series_or_window)
{
    check_reads(0);
}

/* The overflow series of a service has profiles of all times. */
TEST(seen_block, nor_does_it_past_the_limit_of_series)
{
    check_reads(1);
}

/* ---- spans ---- */

static int count_block(void *context, struct kiln_block *block)
{
    (void)block;
    ++*(uint32_t *)context;
    return 0;
}

TEST(seen_block, spans_give_the_blocks_of_a_moment)
{
    enum { N = 60 };
    struct kiln_block *blocks[N];
    struct kiln_spans spans = {0};
    struct dice dice = {7};

    for (uint32_t n = 0; n < N; n++) {
        for (uint32_t i = 0; i < n; i++) {
            blocks[i] = calloc(1, sizeof(*blocks[i]));
            blocks[i]->footer.info.min_ns = dice_roll(&dice, 100);
            blocks[i]->footer.info.max_ns =
                blocks[i]->footer.info.min_ns + dice_roll(&dice, i % 7 ? 9 : 90);
        }
        CHECK_OK(kiln_spans_set(&spans, blocks, n));
        for (uint64_t t = 0; t < 200; t++) {
            uint32_t expected = 0, got = 0;

            for (uint32_t i = 0; i < n; i++)
                expected +=
                    t >= blocks[i]->footer.info.min_ns && t <= blocks[i]->footer.info.max_ns;
            CHECK_EQ(kiln_spans_at(&spans, t, count_block, &got), 0);
            CHECK_EQ(got, expected);
        }
        for (uint32_t i = 0; i < n; i++)
            free(blocks[i]);
    }
    kiln_spans_done(&spans);
}

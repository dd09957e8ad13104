/* SPDX-License-Identifier: Apache-2.0 */
#include "store/block.h"

#include <pthread.h>
#include <stdlib.h>

#include "blocks.h"
#include "codec/codec.h"
#include "drawn.h"
#include "random_batch.h"
#include "resolve.h"
#include "sim_io.h"
#include "starved.h"
#include "test.h"

/* What comes back from a block of this batch says the same. */
static void check_round_trip(const struct kiln_batch *batch)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_block *block = block_of(io, batch);
    struct kiln_err err = {0};
    struct kiln_batch *back = block_batch(block, NULL, NULL, &err);

    if (!back)
        fail_msg("%s: %s", err.where, err.text);
    check_invariants(back);
    check_no_orphans(back);
    block_check_same(batch, back);
    if (kiln_block_verify(block, &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    kiln_batch_unref(back);
    kiln_block_unref(block);
    kiln_sim_free(io);
}

TEST(block, a_drawn_profile_comes_back_as_it_was)
{
    struct kiln_batch *batch = kiln_test_batch(
        &(struct kiln_drawn){.stacks = "main;parse@json.c:12;read 3 thread=main,n=7\n"
                                       "main;parse>inner 5\n"
                                       "main;lib.so+0x1234 2\n"
                                       "- 1\n",
                             .type = "cpu",
                             .unit = "nanoseconds",
                             .period_type = "cpu",
                             .period_unit = "nanoseconds",
                             .period = 10000000,
                             .time_ns = 1700000000000000000,
                             .duration_ns = 10000000000,
                             .resource = "service.name=shop,host.name=a",
                             .scope = "agent"},
        1);

    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, times_keep_their_values)
{
    struct kiln_batch *batch = kiln_test_batch(
        &(struct kiln_drawn){.stacks = "main;a 5@1700000000000000100 -6@1700000000000000300\n"
                                       "main;b @1700000000000000200 @1699999999999999999\n"
                                       "main;a 9@1700000000000000200\n",
                             .time_ns = 1700000000000000000,
                             .resource = "service.name=shop"},
        1);

    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, whatever_is_written_comes_back)
{
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct random_opts opts = {.seed = seed,
                                   .samples = seed % 10 == 3 ? 500 : 20,
                                   .orphans = seed % 2 == 0,
                                   .no_times = seed % 5 == 1,
                                   .plain_profiles = seed % 3 == 1};
        struct kiln_batch *batch = random_batch(&opts);

        assert_non_null(batch);
        check_round_trip(batch);
        kiln_batch_unref(batch);
    }
}

/* Two services, three series; the times are in seconds after 1000. */
#define SECOND UINT64_C(1000000000)

static struct kiln_batch *shops(void)
{
    const struct kiln_drawn profiles[] = {
        {.stacks = "main;a 1\nmain;shared 1\n",
         .type = "cpu",
         .time_ns = 1000 * SECOND,
         .resource = "service.name=shop"},
        {.stacks = "main;b 2\n", .type = "cpu", .time_ns = 1010 * SECOND},
        {.stacks = "main;c 4\n", .type = "wall", .time_ns = 1005 * SECOND},
        {.stacks = "main;late @1030000000000\n",
         .type = "cpu",
         .time_ns = 1002 * SECOND,
         .resource = "service.name=cart"},
        {.stacks = "main;shared 8\n", .type = "cpu", .time_ns = 1020 * SECOND},
    };

    return kiln_test_batch(profiles, KILN_ARRAY_LEN(profiles));
}

/* The totals of the samples that reading gives, in the order of profiles: "cpu 1000: 1 1". */
static void check_reads(struct kiln_block *block, const struct kiln_block_read_opts *opts,
                        const char *expected)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch = block_batch(block, opts, NULL, &err);
    struct kiln_buf text;

    if (!batch)
        fail_msg("%s: %s", err.where, err.text);
    kiln_buf_init(&text, 1 << 20);
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *p = &batch->profiles[i];

        kiln_buf_printf(&text,
                        "%.*s %llu:", KILN_STR_ARG(kiln_batch_str(batch, p->sample_type.type)),
                        (unsigned long long)(p->time_ns / SECOND));
        for (uint32_t k = 0; k < p->n_samples; k++)
            kiln_buf_printf(
                &text, " %lld",
                (long long)kiln_sample_total(batch, &batch->samples[p->first_sample + k]));
        kiln_buf_putc(&text, '\n');
    }
    CHECK_STR(kiln_buf_str(&text), expected);
    kiln_buf_done(&text);
    kiln_batch_unref(batch);
}

TEST(block, profiles_come_by_series_and_time)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();
    struct kiln_block *block = block_of(io, batch);

    check_reads(block, NULL,
                "cpu 1002: 1\ncpu 1020: 8\ncpu 1000: 1 1\ncpu 1010: 2\nwall 1005: 4\n");
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, the_footer_tells_what_is_in_it)
{
    struct kiln_block_id replaced[2] = {{.bytes = {1}}, {.bytes = {2}}};
    struct kiln_block_write_opts opts = {.tenant = KILN_STR("t"),
                                         .level = 2,
                                         .log_from = 17,
                                         .log_to = 29,
                                         .replaces = replaced,
                                         .n_replaces = 2,
                                         .memory_bytes = BLOCK_MEMORY};
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();
    const struct kiln_block_info *info;
    struct kiln_block_series series;
    struct kiln_block_id id;
    struct kiln_block *block;

    CHECK_OK(block_write(io, batch, &opts, &id, NULL));
    CHECK_OK(kiln_block_open(io, block_path(&id), &block, NULL));
    info = kiln_block_info(block);
    CHECK_STR(info->tenant, "t");
    CHECK_EQ(info->level, 2);
    CHECK_EQ(info->log_from, 17);
    CHECK_EQ(info->log_to, 29);
    CHECK_EQ(info->n_replaces, 2);
    assert_memory_equal(info->replaces, replaced, sizeof(replaced));
    assert_memory_equal(&info->id, &id, sizeof(id));
    CHECK_EQ(info->min_ns, 1000 * SECOND);
    CHECK_EQ(info->max_ns, 1030 * SECOND);
    CHECK_EQ(info->n_series, 3);
    CHECK_EQ(info->n_profiles, 5);
    CHECK_EQ(info->n_samples, 6);
    CHECK_EQ(info->n_observations, 6);
    CHECK_EQ(info->n_stacks, 6); /* one is in both services */
    CHECK(info->dict_bytes > 0 && info->bytes > 0 && info->made_ns > 0);
    CHECK_OK(kiln_block_series(block, 2, &series));
    CHECK_EQ(series.key.len, 10);
    assert_memory_equal(series.key.ptr, "shop\0wall\0", 10);
    CHECK_EQ(series.n_profiles, 1);
    CHECK_EQ(series.min_ns, 1005 * SECOND);
    CHECK(series.bytes > 0);
    CHECK_EQ(kiln_block_series(block, 3, &series), KILN_E_RANGE);
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, only_chosen_series_are_read)
{
    const uint64_t second = 2, first_and_last = 5;
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();
    struct kiln_block *block = block_of(io, batch);

    check_reads(block, &(struct kiln_block_read_opts){.series = &second},
                "cpu 1000: 1 1\ncpu 1010: 2\n");
    check_reads(block, &(struct kiln_block_read_opts){.series = &first_and_last},
                "cpu 1002: 1\ncpu 1020: 8\nwall 1005: 4\n");
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, stacks_of_other_services_are_left_behind)
{
    const uint64_t cart = 1;
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();
    struct kiln_block *block = block_of(io, batch);
    struct kiln_batch *back =
        block_batch(block, &(struct kiln_block_read_opts){.series = &cart}, NULL, NULL);

    assert_non_null(back);
    CHECK_EQ(back->dict.n_stacks, 3); /* none, late, shared */
    check_no_orphans(back);
    kiln_batch_unref(back);
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, a_profile_is_read_if_it_or_an_observation_is_in_time)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();
    struct kiln_block *block = block_of(io, batch);

    check_reads(block,
                &(struct kiln_block_read_opts){.start_ns = 1005 * SECOND, .end_ns = 1020 * SECOND},
                "cpu 1010: 2\nwall 1005: 4\n");
    check_reads(block,
                &(struct kiln_block_read_opts){.start_ns = 1030 * SECOND, .end_ns = 1031 * SECOND},
                "cpu 1002: 1\n");
    check_reads(block,
                &(struct kiln_block_read_opts){.start_ns = 1031 * SECOND, .end_ns = 1032 * SECOND},
                "");
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

/* Batches of many random profiles in one builder: `n_profiles` of `n_samples` each. */
static struct kiln_batch *many(uint32_t n_profiles, uint32_t n_samples, bool times)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct dice dice = {7};
    uint32_t stacks[200];

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t frames[9];

        for (uint32_t k = 0; k < 9; k++)
            frames[k] = kiln_builder_location(
                b, &(struct kiln_location){.address = 1 + dice_roll(&dice, 50)}, NULL, 0);
        stacks[i] = kiln_builder_stack(b, frames, 1 + (uint32_t)dice_roll(&dice, 9));
    }
    for (uint32_t p = 0; p < n_profiles; p++) {
        uint32_t profile = kiln_builder_add_profile(
            b, &(struct kiln_profile){.time_ns = (1000 + p) * SECOND, .period = SECOND / 19});

        for (uint32_t i = 0; i < n_samples; i++) {
            int64_t value = 1000 * (int64_t)dice_roll(&dice, 1000);
            uint64_t time = (1000 + p) * SECOND + i % 19 * (SECOND / 19) + dice_roll(&dice, 20000);

            kiln_builder_add_sample(b, profile, stacks[dice_roll(&dice, 200)], 0, 0, &value,
                                    times ? &time : NULL, 1);
        }
    }
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(block, profiles_of_many_pages_come_back)
{
    struct kiln_batch *batch = many(300, 150, false);

    check_round_trip(batch);
    kiln_batch_unref(batch);
    batch = many(300, 150, true);
    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, a_profile_larger_than_a_page_comes_back)
{
    struct kiln_batch *batch = many(2, 40000, false);

    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, any_page_can_be_read_without_those_before)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = many(600, 100, true);
    struct kiln_block *block = block_of(io, batch);

    for (uint64_t i = 0; i < 600; i += 99) {
        struct kiln_block_read_opts opts = {.start_ns = (1000 + i) * SECOND,
                                            .end_ns = (1000 + i) * SECOND + SECOND / 2};
        struct kiln_batch *back = block_batch(block, &opts, NULL, NULL);
        int64_t sum = 0, expected = 0;

        assert_non_null(back);
        CHECK_EQ(back->n_profiles, 1);
        for (uint32_t k = 0; k < back->n_samples; k++)
            sum += kiln_sample_total(back, &back->samples[k]);
        for (uint32_t k = 0; k < 100; k++)
            expected += kiln_sample_total(batch, &batch->samples[i * 100 + k]);
        CHECK_EQ(back->n_observations, 200);
        CHECK_EQ(sum, expected);
        kiln_batch_unref(back);
    }
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, two_blocks_read_into_one_builder_share_their_dictionary)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();
    struct kiln_block *blocks[] = {block_of(io, batch), block_of(io, batch)};
    uint32_t n_stacks[2], n_strings[2];
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    for (int i = 0; i < 2; i++) {
        struct kiln_block_reader *reader;
        struct kiln_block_profile p;

        CHECK_OK(kiln_block_read(blocks[i], NULL, b, &reader, NULL));
        while (kiln_block_next(reader, &p, NULL) > 0)
            CHECK(p.samples[0].stack < kiln_builder_peek(b)->dict.n_stacks);
        kiln_block_reader_free(reader);
        kiln_block_unref(blocks[i]);
        n_stacks[i] = kiln_builder_peek(b)->dict.n_stacks;
        n_strings[i] = kiln_builder_peek(b)->dict.n_strings;
    }
    CHECK_EQ(n_stacks[0], n_stacks[1]);
    CHECK_EQ(n_strings[0], n_strings[1]);
    kiln_builder_free(b);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, a_block_of_nothing_is_a_block)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;

    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, extreme_numbers_come_back)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;
    int64_t values[] = {INT64_MIN, INT64_MAX, 0, -1};
    uint64_t times[] = {UINT64_MAX, 0, 1, UINT64_MAX - 1};
    uint32_t profile, frame, stack;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){.dropped_attrs = UINT32_MAX});
    kiln_builder_add_scope(b, &(struct kiln_scope){.dropped_attrs = UINT32_MAX});
    frame = kiln_builder_location(
        b,
        &(struct kiln_location){
            .address = UINT64_MAX,
            .mapping = kiln_builder_mapping(
                b, &(struct kiln_mapping){.start = UINT64_MAX, .limit = 1, .offset = UINT64_MAX})},
        &(struct kiln_line){.line = INT64_MIN, .column = INT64_MAX}, 1);
    stack = kiln_builder_stack(b, &frame, 1);
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){.time_ns = UINT64_MAX,
                                                                 .duration_ns = UINT64_MAX,
                                                                 .period = INT64_MAX,
                                                                 .dropped_attrs = UINT32_MAX});
    kiln_builder_add_sample(b, profile, stack, 0, 0, values, times, 4);
    kiln_builder_add_sample(b, profile, stack, 0, 0, values, NULL, 1);
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){.period = INT64_MIN});
    kiln_builder_add_sample(b, profile, 0, 0, 0, NULL, times, 4);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    check_round_trip(batch);
    kiln_batch_unref(batch);
}

/* The codes of these values are far outside of the lists that a reader has. */
TEST(block, an_array_of_large_numbers_comes_back)
{
    struct kiln_value items[] = {kiln_value_double(0.75), kiln_value_int(123456789012)};
    struct kiln_builder *b;
    struct kiln_batch *batch;
    uint32_t attr;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("limits")),
                             kiln_builder_array(b, items, 2), 0);
    kiln_builder_add_resource(
        b, &(struct kiln_resource){.attrs = kiln_builder_set(b, &attr, 1, NULL)});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){.time_ns = 1700000000000000000});
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    check_round_trip(batch);
    kiln_batch_unref(batch);
}

TEST(block, a_tenant_must_be_a_safe_name)
{
    static const char *const names[] = {"", ".", "..", "a/b", "a b", "\xc3\xa4"};
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();

    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        struct kiln_block_write_opts opts = {.tenant = kiln_str_of(names[i]),
                                             .memory_bytes = BLOCK_MEMORY};
        struct kiln_block_id id;
        struct kiln_err err = {0};

        CHECK(block_write(io, batch, &opts, &id, &err) < 0);
        CHECK(strstr(err.text, "is no name for a tenant") != NULL);
    }
    CHECK_EQ(kiln_sim_used(io), 0);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

static int count_name(void *context, const char *name)
{
    (void)name;
    ++*(int *)context;
    return 0;
}

static int files_in(struct kiln_io *io, const char *folder)
{
    int n = 0, r = io->list(io, folder, count_name, &n);

    return r < 0 ? r : n;
}

TEST(block, a_writer_without_memory_says_so_and_leaves_nothing)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = many(20, 2000, true);

    for (size_t memory = 1000; memory < 4000000; memory += memory / 3) {
        struct kiln_block_write_opts opts = {.tenant = KILN_STR("t"), .memory_bytes = memory};
        struct kiln_block_id id;
        int r = block_write(io, batch, &opts, &id, NULL);

        CHECK(r == 0 || r == KILN_E_LIMIT);
        if (r == 0)
            CHECK_OK(io->unlink(io, block_path(&id)));
        CHECK(files_in(io, "blocks/t") <= 0);
    }
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, what_a_writer_needs_does_not_grow_with_the_rows)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = many(2000, 100, true);
    struct kiln_block_write_opts opts = {.tenant = KILN_STR("t"), .memory_bytes = 6 << 20};
    struct kiln_block_id id;

    CHECK_OK(block_write(io, batch, &opts, &id, NULL));
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, a_reader_without_memory_says_so)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = many(20, 2000, true);
    struct kiln_block *block = block_of(io, batch);
    int r = KILN_E_LIMIT;

    for (size_t memory = 1000; r < 0; memory *= 2) {
        struct kiln_block_read_opts opts = {.memory_bytes = memory};
        struct kiln_err err = {0};

        kiln_batch_unref(block_batch(block, &opts, &r, &err));
        CHECK(r == 0 || r == KILN_E_LIMIT);
        CHECK(r == 0 || err.text[0]);
        CHECK(memory < 8000000);
    }
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, running_out_of_memory_while_writing_is_an_error)
{
    struct kiln_io *io = kiln_sim_new();
    struct random_opts opts = {.seed = 5, .samples = 10};
    struct kiln_batch *batch = random_batch(&opts);
    struct kiln_starved s = {0};
    struct kiln_block_id id;

    while (kiln_test_starve(&s))
        s.r = block_write(io, batch, NULL, &id, NULL);
    CHECK(s.n > 30);
    CHECK_EQ(files_in(io, "blocks/t"), 1);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, running_out_of_memory_while_reading_is_an_error)
{
    struct kiln_io *io = kiln_sim_new();
    struct random_opts opts = {.seed = 5, .samples = 10};
    struct kiln_batch *batch = random_batch(&opts), *back = NULL;
    struct kiln_block_id id;
    struct kiln_starved s = {0};

    CHECK_OK(block_write(io, batch, NULL, &id, NULL));
    while (kiln_test_starve(&s)) {
        struct kiln_block *block;

        s.r = kiln_block_open(io, block_path(&id), &block, NULL);
        if (s.r == 0) {
            back = block_batch(block, NULL, &s.r, NULL);
            kiln_block_unref(block);
        }
    }
    CHECK(s.n > 30);
    block_check_same(batch, back);
    kiln_batch_unref(back);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

TEST(block, samples_of_one_identity_come_back_as_one)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch =
        kiln_test_batch(&(struct kiln_drawn){.stacks = "main;a 5@100 6@300 cpu=1\n"
                                                       "main;b 7@200\n"
                                                       "main;a 8@250 cpu=1\n"
                                                       "main;a 1 cpu=1\n"},
                        1);
    struct kiln_block *block = block_of(io, batch);
    struct kiln_batch *back = block_batch(block, NULL, NULL, NULL);

    assert_non_null(back);
    CHECK_EQ(back->n_samples, 3);
    CHECK_EQ(back->samples[0].n, 1); /* without a time */
    CHECK_EQ(back->samples[1].n, 3);
    CHECK_EQ(kiln_sample_values(back, &back->samples[1])[1], 8);
    CHECK_EQ(kiln_sample_times(back, &back->samples[1])[1], 250);
    CHECK_EQ(kiln_sample_values(back, &back->samples[2])[0], 7);
    kiln_batch_unref(back);
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

/* More profiles than there is room in the table of times. */
#define MANY ((UINT64_C(1) << 20) + 100)

TEST(block, a_million_profiles_of_their_own_time_come_back)
{
    struct kiln_block_write_opts opts = {.tenant = KILN_STR("t"), .memory_bytes = BLOCK_MEMORY * 2};
    const struct kiln_str key = KILN_STR("shop\0cpu\0");
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = shops();
    struct kiln_block_writer *w;
    struct kiln_block_reader *reader;
    struct kiln_block_profile p = {0};
    struct kiln_builder *b;
    struct kiln_block_id id;
    struct kiln_block *block;
    uint64_t n = 0;

    CHECK_OK(kiln_block_create(io, &opts, batch, &key, 1, &w, NULL));
    for (uint64_t i = 0; i < MANY; i++) {
        p.head.time_ns = 1000 * SECOND + i * i;
        p.head.duration_ns = i % 10;
        kiln_block_add(w, &p);
    }
    CHECK_OK(kiln_block_commit(w, &id, NULL));
    CHECK_OK(kiln_block_open(io, block_path(&id), &block, NULL));
    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_block_read(
        block, &(struct kiln_block_read_opts){.memory_bytes = BLOCK_MEMORY * 2}, b, &reader, NULL));
    for (; kiln_block_next(reader, &p, NULL) > 0; n++)
        CHECK(p.head.time_ns == 1000 * SECOND + n * n && p.head.duration_ns == n % 10);
    CHECK_EQ(n, MANY);
    kiln_block_reader_free(reader);
    kiln_builder_free(b);
    kiln_block_unref(block);
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

struct shared_read {
    struct kiln_block *block;
    struct kiln_batch *batch;
    pthread_t thread;
};

static void *read_shared(void *context)
{
    struct shared_read *read = context;

    read->batch = block_batch(read->block, NULL, NULL, NULL);
    kiln_block_unref(read->block);
    return NULL;
}

TEST(block, many_threads_read_one_block)
{
    struct kiln_io *io = kiln_sim_new();
    struct kiln_batch *batch = many(50, 100, true);
    struct kiln_block *block = block_of(io, batch);
    struct shared_read reads[4];

    for (int i = 0; i < 4; i++) {
        reads[i].block = kiln_block_ref(block);
        CHECK_OK(pthread_create(&reads[i].thread, NULL, read_shared, &reads[i]));
    }
    kiln_block_unref(block);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(pthread_join(reads[i].thread, NULL));
        assert_non_null(reads[i].batch);
        block_check_same(batch, reads[i].batch);
        kiln_batch_unref(reads[i].batch);
    }
    kiln_batch_unref(batch);
    kiln_sim_free(io);
}

static void check_capture(const char *relative)
{
    const char *path = kiln_test_data(relative);
    struct kiln_batch *batch;
    struct kiln_err err = {0};
    size_t len;
    char *data;

    if (!path)
        SKIP("there are no real captures here");
    data = kiln_test_read(path, &len);
    assert_non_null(data);
    if (kiln_decode((struct kiln_str){data, len}, &(struct kiln_decode_opts){0}, &batch, NULL,
                    &err) < 0)
        fail_msg("%s: %s", err.where, err.text);
    check_round_trip(batch);
    kiln_batch_unref(batch);
    free(data);
}

CAPTURE_TEST(block, requests_of_a_host_profiler_come_back)
{
    check_capture("otlp/host-mix.1.11/00001.otlp");
    check_capture("otlp/host-mix.1.11/00002.otlp");
}

CAPTURE_TEST(block, a_heap_profile_with_labels_comes_back)
{
    check_capture("pprof/go-cpu-span-labels.pb.gz");
    check_capture("pprof/go-alloc.pb.gz");
}

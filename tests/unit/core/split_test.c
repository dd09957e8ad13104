/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "core/merge.h"
#include "core/otlp_size.h"
#include "core/split.h"
#include "random_batch.h"
#include "resolve.h"
#include "stacks.h"
#include "test.h"

struct parts {
    struct kiln_batch **batch;
    uint32_t n;
};

static struct parts split(const struct kiln_batch *batch, const struct kiln_split_opts *opts)
{
    struct kiln_err err = {0};
    struct parts parts;

    CHECK_OK(kiln_split(batch, opts, &parts.batch, &parts.n, &err));
    return parts;
}

static void parts_done(struct parts *parts)
{
    for (uint32_t i = 0; i < parts->n; i++)
        kiln_batch_unref(parts->batch[i]);
    kiln_free(parts->batch);
}

static size_t encoded_size(const struct kiln_batch *batch, bool string_refs)
{
    struct kiln_buf out;
    size_t len;

    kiln_buf_init(&out, 1u << 30);
    CHECK_OK(kiln_otlp_encode(batch, &(struct kiln_otlp_encode_opts){.string_refs = string_refs},
                              &out, NULL));
    len = out.len;
    kiln_buf_done(&out);
    return len;
}

static uint64_t count_observations(const struct kiln_batch *batch)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < batch->n_samples; i++)
        n += batch->samples[i].n;
    return n;
}

static void check_same_union(const struct kiln_batch *batch, const struct parts *parts)
{
    struct resolved lines = {0};
    char *expected = resolve_batch(batch, 0), *actual;

    for (uint32_t i = 0; i < parts->n; i++) {
        check_invariants(parts->batch[i]);
        check_no_orphans(parts->batch[i]);
        resolve_add(&lines, parts->batch[i], 0);
    }
    actual = resolve_text(&lines);
    CHECK_TEXT(actual, expected);
    kiln_free(expected);
    kiln_free(actual);
}

TEST(split, without_limits_there_is_one_part)
{
    struct kiln_batch *batch = batch_of_stacks("main;read 3\nmain;idle 1\n");
    struct parts parts = split(batch, &(struct kiln_split_opts){0});

    CHECK_EQ(parts.n, 1);
    CHECK(kiln_batch_equal(parts.batch[0], batch));
    parts_done(&parts);
    kiln_batch_unref(batch);
}

TEST(split, an_empty_batch_is_one_empty_part)
{
    struct kiln_batch *batch;
    struct parts parts;

    CHECK_OK(kiln_merge(NULL, 0, NULL, &batch, NULL));
    parts = split(batch, &(struct kiln_split_opts){.samples_max = 1, .bytes_max = 1000});
    CHECK_EQ(parts.n, 1);
    CHECK_EQ(parts.batch[0]->n_resources, 0);
    parts_done(&parts);
    kiln_batch_unref(batch);
}

TEST(split, by_samples_goes_through_a_profile)
{
    struct kiln_batch *batch = batch_of_stacks("main;read 3\nmain;idle 1\nmain 7\n");
    struct parts parts = split(batch, &(struct kiln_split_opts){.samples_max = 2});

    CHECK_EQ(parts.n, 2);
    check_stacks(parts.batch[0], "main;read 3\nmain;idle 1\n");
    check_stacks(parts.batch[1], "main 7\n");
    CHECK_EQ(parts.batch[1]->dict.n_functions, 2); /* only main */
    parts_done(&parts);
    kiln_batch_unref(batch);
}

/* One sample of `n` timed values. */
static struct kiln_batch *long_sample(uint32_t n)
{
    struct kiln_profile p = {.time_ns = 1000, .duration_ns = n, .payload = KILN_STR("original")};
    struct kiln_batch *batch;
    struct kiln_builder *b;
    int64_t values[1000];
    uint64_t times[1000];

    for (uint32_t i = 0; i < n; i++) {
        values[i] = i % 7 ? (int64_t)i * i * i : -(int64_t)i;
        times[i] = 1000 + i;
    }
    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    p.payload_format = kiln_builder_string(b, KILN_STR("pprof"));
    kiln_builder_add_profile(b, &p);
    kiln_builder_add_sample(b, 0, 0, 0, 0, values, times, n);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(split, goes_through_a_sample_with_many_observations)
{
    struct kiln_batch *batch = long_sample(1000);
    struct parts by_samples = split(batch, &(struct kiln_split_opts){.samples_max = 300});
    struct parts by_bytes = split(batch, &(struct kiln_split_opts){.bytes_max = 1500});

    CHECK_EQ(by_samples.n, 4);
    CHECK_EQ(by_samples.batch[3]->samples[0].n, 100);
    CHECK(by_bytes.n > 7 && by_bytes.n < 13);
    check_same_union(batch, &by_samples);
    check_same_union(batch, &by_bytes);
    CHECK_STR(by_bytes.batch[0]->profiles[0].payload, "original");
    CHECK_EQ(by_bytes.batch[1]->profiles[0].payload.len, 0);
    CHECK_EQ(by_bytes.batch[1]->profiles[0].payload_format, 0);
    parts_done(&by_samples);
    parts_done(&by_bytes);
    kiln_batch_unref(batch);
}

TEST(split, an_observation_too_large_for_a_part_is_an_error_with_its_place)
{
    struct kiln_batch *batch = batch_of_stacks("main;read 3\nmain;idle 1\n");
    struct kiln_err err = {0};
    struct kiln_batch **parts;
    int64_t live = kiln_mem_live();
    uint32_t n;

    CHECK_EQ(kiln_split(batch, &(struct kiln_split_opts){.bytes_max = 100}, &parts, &n, &err),
             KILN_E_LIMIT);
    CHECK_TEXT(err.where, "resource_profiles[0].scope_profiles[0].profiles[0].samples[0]");
    CHECK(strstr(err.text, "100 are allowed"));
    CHECK_EQ(kiln_mem_live(), live);
    kiln_batch_unref(batch);
}

TEST(split, what_is_too_large_may_be_left_out)
{
    static char stacks[4096];
    struct kiln_err err = {0};
    struct kiln_batch *batch, **parts;
    int64_t live;
    uint32_t n, left_out = 0;

    snprintf(stacks, sizeof(stacks), "main;read 3\n%01000d 1\nmain;write 2\nmain;%01000d 1\n", 0,
             0);
    batch = batch_of_stacks(stacks);
    live = kiln_mem_live();
    CHECK_OK(kiln_split(batch, &(struct kiln_split_opts){.bytes_max = 600, .left_out = &left_out},
                        &parts, &n, &err));
    CHECK_EQ(left_out, 2);
    CHECK(strstr(err.text, "600 are allowed"));
    for (uint32_t i = 0, samples = 0; i < n; i++) {
        samples += parts[i]->n_samples;
        CHECK(i + 1 < n || samples == 2);
        kiln_batch_unref(parts[i]);
    }
    kiln_free(parts);
    CHECK_EQ(kiln_mem_live(), live);
    kiln_batch_unref(batch);
}

TEST(split, too_many_parts_are_an_error)
{
    struct kiln_batch *batch = batch_of_stacks("a 1\nb 2\nc 3\n");
    struct kiln_split_opts opts = {.samples_max = 1, .parts_max = 2};
    struct kiln_batch **parts;
    int64_t live = kiln_mem_live();
    uint32_t n;

    CHECK_EQ(kiln_split(batch, &opts, &parts, &n, NULL), KILN_E_LIMIT);
    CHECK_EQ(kiln_mem_live(), live);
    kiln_batch_unref(batch);
}

TEST(split, parts_are_within_the_limit_full_and_together_the_whole)
{
    uint64_t parts_seen = 0, bytes_used = 0, bytes_allowed = 0;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kiln_batch *batch =
            random_batch(&(struct random_opts){.seed = seed, .samples = 60, .orphans = true});
        struct kiln_split_opts opts = {.bytes_max = 2500 + seed * 40};
        struct parts parts = split(batch, &opts);

        check_same_union(batch, &parts);
        for (uint32_t i = 0; i < parts.n; i++) {
            uint64_t bound = kiln_otlp_size_max(parts.batch[i]);

            CHECK(bound <= opts.bytes_max);
            CHECK(encoded_size(parts.batch[i], false) <= bound);
            CHECK(encoded_size(parts.batch[i], true) <= bound);
            if (i + 1 < parts.n) {
                bytes_used += bound;
                bytes_allowed += opts.bytes_max;
            }
        }
        parts_seen += parts.n;
        parts_done(&parts);
        kiln_batch_unref(batch);
    }
    CHECK(parts_seen > 300);
    CHECK(bytes_used > bytes_allowed / 100 * 85);
}

TEST(split, by_samples_keeps_every_observation_once)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = seed});
        struct parts parts =
            split(batch, &(struct kiln_split_opts){.samples_max = (uint32_t)(1 + seed % 9)});

        check_same_union(batch, &parts);
        for (uint32_t i = 0; i < parts.n; i++)
            CHECK(count_observations(parts.batch[i]) <= 1 + seed % 9);
        parts_done(&parts);
        kiln_batch_unref(batch);
    }
}

TEST(split, merging_the_parts_gives_the_whole_again)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kiln_batch *batch =
            random_batch(&(struct random_opts){.seed = seed, .plain_profiles = true});
        struct parts parts = split(batch, &(struct kiln_split_opts){.samples_max = 7});
        struct kiln_batch *merged_parts, *merged;

        CHECK_OK(kiln_merge(parts.batch, parts.n, NULL, &merged_parts, NULL));
        CHECK_OK(kiln_merge(&batch, 1, NULL, &merged, NULL));
        CHECK(kiln_batch_equal(merged_parts, merged));
        kiln_batch_unref(merged_parts);
        kiln_batch_unref(merged);
        parts_done(&parts);
        kiln_batch_unref(batch);
    }
}

TEST(split, the_bound_is_close_to_the_real_size)
{
    uint64_t bounds = 0, sizes = 0;

    for (uint64_t seed = 0; seed < 50; seed++) {
        struct kiln_batch *batch =
            random_batch(&(struct random_opts){.seed = seed, .samples = 200});

        bounds += kiln_otlp_size_max(batch);
        sizes += encoded_size(batch, false);
        CHECK(kiln_otlp_size_max(batch) >= encoded_size(batch, false));
        kiln_batch_unref(batch);
    }
    CHECK(bounds < sizes * 2); /* these batches are mostly attributes, counted twice */
}

TEST(split, a_rough_look_says_the_same_as_the_bound)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct kiln_batch *batch =
            random_batch(&(struct random_opts){.seed = seed, .samples = (uint32_t)(seed * 3)});
        uint64_t bound = kiln_otlp_size_max(batch);

        CHECK(kiln_otlp_fits(batch, bound * 100));
        CHECK(kiln_otlp_fits(batch, bound));
        CHECK(!kiln_otlp_fits(batch, bound - 1));
        kiln_batch_unref(batch);
    }
}

TEST(split, running_out_of_memory_anywhere_leaks_nothing)
{
    struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = 3, .samples = 10});
    int64_t live = kiln_mem_live();
    struct parts parts;
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        kiln_mem_fail_at(n);
        r = kiln_split(batch, &(struct kiln_split_opts){.samples_max = 9}, &parts.batch, &parts.n,
                       NULL);
        kiln_mem_fail_at(0);
        CHECK(r == 0 || kiln_mem_live() == live);
        assert_true(n < 20000);
    }
    parts_done(&parts);
    kiln_batch_unref(batch);
}

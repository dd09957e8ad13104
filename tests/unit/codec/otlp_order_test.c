/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_check.h"
#include "drawn.h"
#include "random_batch.h"
#include "resolve.h"
#include "starved.h"
#include "test.h"

static const struct kiln_otlp_encode_opts dense = {.dense = true};

static struct kiln_str encode(const struct kiln_batch *batch,
                              const struct kiln_otlp_encode_opts *opts, struct kiln_buf *out)
{
    kiln_buf_init(out, 64 << 20);
    CHECK_OK(kiln_otlp_encode(batch, opts, out, NULL));
    return kiln_buf_str(out);
}

static struct kiln_batch *decode(struct kiln_str bytes)
{
    struct kiln_batch *batch;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    CHECK_OK(kiln_otlp_decode(bytes, NULL, b, NULL, NULL));
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

/* How often the bytes break a rule of OTLP. */
static uint64_t errors_of(struct kiln_str bytes)
{
    const struct kiln_check_opts opts = {.dupes = true};
    struct kiln_check *check;
    uint64_t n;

    CHECK_OK(kiln_otlp_check(bytes, &opts, &check, NULL));
    n = check->n_errors;
    kiln_check_free(check);
    return n;
}

static void check_says_the_same(const struct kiln_batch *batch, struct kiln_str bytes)
{
    struct kiln_batch *again = decode(bytes);
    char *expected = resolve_batch(batch, 0), *actual = resolve_batch(again, 0);

    check_invariants(again);
    CHECK_TEXT(actual, expected);
    CHECK_EQ(again->n_resources, batch->n_resources);
    CHECK_EQ(again->n_samples, batch->n_samples);
    free(expected);
    free(actual);
    kiln_batch_unref(again);
}

TEST(otlp_order, a_dense_message_says_the_same_and_keeps_the_rules)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct kiln_batch *batch = random_batch(&(struct random_opts){
            .seed = seed, .samples = 60, .resources = 9, .orphans = seed % 2});
        struct kiln_buf plain, out;
        struct kiln_str bytes = encode(batch, &dense, &out);

        check_says_the_same(batch, bytes);
        CHECK_EQ(errors_of(bytes), errors_of(encode(batch, NULL, &plain)));
        kiln_buf_done(&plain);
        kiln_buf_done(&out);
        kiln_batch_unref(batch);
    }
}

static void put_stacks(struct kiln_buf *text, const struct kiln_batch *batch)
{
    const struct kiln_dict *d = &batch->dict;

    for (uint32_t i = 0; i < d->n_stacks; i++) {
        for (uint32_t k = d->stacks[i].n; k-- > 0;) {
            const struct kiln_location *location = &d->locations[d->frames[d->stacks[i].first + k]];
            uint32_t function = d->lines[location->first].function;

            kiln_buf_add_str(text, d->strings[d->functions[function].name]);
            kiln_buf_puts(text, k ? ";" : "");
        }
        kiln_buf_putc(text, ' ');
    }
}

static void check_dense_stacks(const char *drawing, const char *expected)
{
    struct kiln_batch *batch = kiln_test_stacks(drawing), *again;
    struct kiln_buf out, text;

    again = decode(encode(batch, &dense, &out));
    kiln_buf_init(&text, 1 << 16);
    put_stacks(&text, again);
    kiln_buf_putc(&text, '\0');
    CHECK_TEXT(text.ptr, expected);
    kiln_buf_done(&text);
    kiln_buf_done(&out);
    kiln_batch_unref(again);
    kiln_batch_unref(batch);
}

TEST(otlp_order, stacks_with_the_same_outer_frames_stand_together)
{
    check_dense_stacks("main;a 1\nother;x 1\nmain;b;c 1\nmain;d 1\nother 1\nmain;b;e 1\n",
                       " other main;a main;d main;b;c main;b;e other;x ");
}

TEST(otlp_order, samples_stand_by_attributes_value_and_stack)
{
    struct kiln_batch *batch = kiln_test_stacks(
                          "main;a 7 t=1\nmain;b 1 t=2\nmain;c 7 t=1\nmain;d 2 t=1\n"),
                      *again;
    struct kiln_buf out;
    int64_t values[4];

    again = decode(encode(batch, &dense, &out));
    CHECK_EQ(again->n_samples, 4);
    for (int i = 0; i < 4; i++)
        values[i] = kiln_sample_total(again, &again->samples[i]);
    CHECK_EQ(values[0], 2);
    CHECK_EQ(values[1], 7);
    CHECK_EQ(values[2], 7);
    CHECK_EQ(values[3], 1);
    CHECK(again->samples[1].stack < again->samples[2].stack);
    kiln_buf_done(&out);
    kiln_batch_unref(again);
    kiln_batch_unref(batch);
}

TEST(otlp_order, resources_of_a_service_stand_together)
{
    const struct kiln_drawn profiles[] = {
        {.stacks = "main 1", .resource = "service.name=b,process.pid=1"},
        {.stacks = "main 2", .resource = "service.name=a,process.pid=2"},
        {.stacks = "main 3", .resource = "service.name=b,process.pid=3"},
        {.stacks = "main 4", .resource = "process.pid=4"},
    };
    const int64_t expected[] = {4, 2, 1, 3};
    struct kiln_batch *batch = kiln_test_batch(profiles, 4), *again;
    struct kiln_buf out;

    again = decode(encode(batch, &dense, &out));
    CHECK_EQ(again->n_samples, 4);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(kiln_sample_total(again, &again->samples[i]), expected[i]);
    kiln_buf_done(&out);
    kiln_batch_unref(again);
    kiln_batch_unref(batch);
}

/* A stack of these functions. */
static struct kiln_batch *batch_of(const char *const *names, uint32_t n)
{
    uint32_t frames[8], profile;
    struct kiln_batch *batch;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_function function = {.name = kiln_builder_string(b, kiln_str_of(names[i]))};
        struct kiln_line line = {.function = kiln_builder_function(b, &function)};

        frames[i] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
    }
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, profile, kiln_builder_stack(b, frames, n), 0, 1);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static void check_joints(const struct kiln_batch *batch)
{
    struct kiln_joints joints = {.n = 0};
    const struct kiln_otlp_encode_opts opts = {.dense = true, .ret_joints = &joints};
    /* resources, then: the dictionary with its strings, its mappings, its stacks */
    const char tags[] = {2 << 3 | 2, 1 << 3 | 2, 7 << 3 | 2};
    struct kiln_buf out, packed, again;
    struct kiln_str bytes = encode(batch, &opts, &out);

    CHECK_EQ(joints.n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(joints.at[i] > (i ? joints.at[i - 1] : 0) && joints.at[i] < bytes.len);
        CHECK_EQ(bytes.ptr[joints.at[i]], tags[i]);
    }
    kiln_buf_init(&packed, 1 << 20);
    kiln_buf_init(&again, 1 << 20);
    CHECK_OK(kiln_compress_joined(KILN_ZSTD, KILN_DENSE, bytes, &joints, &packed));
    CHECK_EQ(kiln_decompressed_hint(KILN_ZSTD, kiln_buf_str(&packed)), bytes.len);
    CHECK_OK(kiln_decompress(KILN_ZSTD, kiln_buf_str(&packed), &again, NULL));
    CHECK(kiln_str_eq(kiln_buf_str(&again), bytes));
    kiln_buf_done(&again);
    kiln_buf_done(&packed);
    kiln_buf_done(&out);
}

TEST(otlp_order, the_parts_of_a_message_begin_where_it_says)
{
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct kiln_batch *batch =
            random_batch(&(struct random_opts){.seed = seed, .samples = 30, .resources = 3});

        check_joints(batch);
        kiln_batch_unref(batch);
    }
}

TEST(otlp_order, names_that_are_made_up_stand_last)
{
    const char *const names[] = {"ls+0x10", "main", "ls+0x20", "read", "operator+"};
    const char *const expected[] = {"main", "read", "operator+", "ls+0x10", "ls+0x20"};
    struct kiln_batch *batch = batch_of(names, 5), *again;
    struct kiln_buf out, same;

    again = decode(encode(batch, &dense, &out));
    CHECK_EQ(again->dict.n_strings, 6);
    for (uint32_t i = 0; i < 5; i++)
        CHECK(kiln_str_eq(again->dict.strings[i + 1], kiln_str_of(expected[i])));
    check_says_the_same(batch, kiln_buf_str(&out));
    CHECK(kiln_str_eq(kiln_buf_str(&out), encode(again, &dense, &same)));
    kiln_buf_done(&same);
    kiln_buf_done(&out);
    kiln_batch_unref(again);
    kiln_batch_unref(batch);
}

TEST(otlp_order, says_so_where_memory_runs_out)
{
    struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = 7, .samples = 30});
    struct kiln_starved s = {0};

    while (kiln_test_starve(&s)) {
        struct kiln_buf out;

        kiln_buf_init(&out, 1 << 20);
        s.r = kiln_otlp_encode(batch, &dense, &out, NULL);
        kiln_buf_done(&out);
    }
    CHECK(s.n > 4);
    kiln_batch_unref(batch);
}

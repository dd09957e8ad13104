/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "pprof_make.h"
#include "starved.h"

static struct kiln_buf encode(const struct kiln_batch *batch, struct kiln_pprof_losses *losses)
{
    struct kiln_pprof_opts opts = {.losses = losses};
    struct kiln_err err = {0};
    struct kiln_buf out;

    kiln_buf_init(&out, 1u << 24);
    CHECK_OK(kiln_pprof_encode(batch, &opts, &out, &err));
    return out;
}

/* Encodes and decodes; *ret_bytes must be freed after the batch. */
static struct kiln_batch *again(const struct kiln_batch *batch, struct kiln_buf *ret_bytes,
                                struct kiln_pprof_losses *losses)
{
    struct kiln_err err;
    struct kiln_batch *copy;

    *ret_bytes = encode(batch, losses);
    copy = decode_bytes(kiln_buf_str(ret_bytes), &err);
    if (!copy)
        print_error("%s: %s\n", err.where, err.text);
    CHECK(copy != NULL);
    return copy;
}

static struct kiln_batch *finish(struct kiln_builder *b)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch = NULL;

    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    return batch;
}

/* A stack drawn as text, root first: "main;read". */
static uint32_t stack(struct kiln_builder *b, const char *names)
{
    struct kiln_str rest = kiln_str_of(names);
    uint32_t list[8], n = 0;

    while (rest.ptr) {
        struct kiln_function f = {.name = kiln_builder_string(b, kiln_str_cut(&rest, ';'))};
        struct kiln_line line = {.function = kiln_builder_function(b, &f), .line = 3};

        memmove(list + 1, list, n++ * sizeof(*list));
        list[0] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
    }
    return kiln_builder_stack(b, list, n);
}

static struct kiln_value_type type(struct kiln_builder *b, const char *name, const char *unit)
{
    return (struct kiln_value_type){kiln_builder_string(b, kiln_str_of(name)),
                                    kiln_builder_string(b, kiln_str_of(unit))};
}

static uint32_t text_set(struct kiln_builder *b, const char *key, const char *value)
{
    uint32_t attr = kiln_builder_text_attr(b, kiln_str_of(key), kiln_str_of(value));

    return kiln_builder_set(b, &attr, 1, NULL);
}

/* A batch of one resource and one scope, ready for profiles. */
static struct kiln_builder *start(void)
{
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    return b;
}

static int64_t value_of(const struct kiln_batch *batch, uint32_t profile, uint32_t sample)
{
    return kiln_sample_total(batch,
                             &batch->samples[batch->profiles[profile].first_sample + sample]);
}

/* A pprof with something in every field. */
static struct making full_profile(void)
{
    struct making m = make(), location = make(), sample = make();

    put_fields(&m, 1, 1, 1, 2, 2, 0);
    put_fields(&m, 1, 1, 3, 2, 4, 0);
    put_bytes(&sample, 1, KILN_STR("\x05\x05\x06"));
    put_bytes(&sample, 2, KILN_STR("\x01\x02"));
    put_fields(&sample, 3, 1, 5, 3, 7, 4, 2, 0);
    put_fields(&sample, 3, 1, 5, 3, 8, 4, 4, 0);
    put_fields(&sample, 3, 1, 5, 2, 6, 0);
    put_fields(&sample, 3, 1, 6, 3, 0, 0);
    put_bytes(&m, 2, kiln_buf_str(&sample.buf));
    put_bytes(&m, 2, KILN_STR("\x12\x02\x07\x00"));
    put_bytes(&m, 2, KILN_STR("\x12\x02\x07\x00"));
    put_fields(&m, 3, 1, 9, 0);
    put_fields(&m, 3, 1, 8, 2, 1, 3, 2, 4, 3, 5, 6, 6, 7, 8, 1, 9, 1, 10, 1, 0);
    put_number(&location, 1, 5);
    put_number(&location, 2, 9);
    put_fields(&location, 4, 1, 4, 2, 20, 3, 2, 0);
    put_fields(&location, 4, 1, 3, 2, 10, 0);
    put_number(&location, 5, 1);
    put_bytes(&m, 4, kiln_buf_str(&location.buf));
    put_fields(&m, 4, 1, 6, 0); /* says nothing at all */
    put_fields(&m, 5, 1, 3, 2, 5, 3, 6, 4, 7, 5, 8, 0);
    put_fields(&m, 5, 1, 4, 0);
    put_strings(&m, "samples count cpu ns key text build drop keep doc");
    put_number(&m, 7, 8);
    put_number(&m, 8, 9);
    put_number(&m, 9, 5);
    put_number(&m, 10, 6);
    put_fields(&m, 11, 1, 3, 2, 4, 0);
    put_number(&m, 12, 7);
    put_bytes(&m, 13, KILN_STR("\x05\x00\x06"));
    put_number(&m, 14, 1);
    put_number(&m, 15, 10);
    kiln_buf_done(&location.buf);
    kiln_buf_done(&sample.buf);
    return m;
}

TEST(pprof_encode, nothing_is_lost_between_pprof_and_pprof)
{
    struct making m = full_profile();
    struct kiln_pprof_losses losses = {0};
    struct kiln_batch *first, *second;
    struct kiln_buf bytes;
    struct kiln_err err;

    first = decode_bytes(kiln_buf_str(&m.buf), &err);
    CHECK(first != NULL);
    CHECK_EQ(first->profiles[0].n_samples, 3);
    second = again(first, &bytes, &losses);
    CHECK(kiln_batch_equal(first, second));
    CHECK_EQ(losses.attributes + losses.scopes + losses.values_as_text + losses.periods, 0);
    kiln_batch_unref(first);
    kiln_batch_unref(second);
    kiln_buf_done(&bytes);
    kiln_buf_done(&m.buf);
}

TEST(pprof_encode, the_same_batch_gives_the_same_bytes)
{
    struct making m = full_profile();
    struct kiln_pprof_losses losses;
    struct kiln_err err;
    struct kiln_batch *batch = decode_bytes(kiln_buf_str(&m.buf), &err);
    struct kiln_buf a = encode(batch, &losses), b = encode(batch, &losses);

    CHECK(kiln_str_eq(kiln_buf_str(&a), kiln_buf_str(&b)));
    kiln_batch_unref(batch);
    kiln_buf_done(&a);
    kiln_buf_done(&b);
    kiln_buf_done(&m.buf);
}

TEST(pprof_encode, counts_with_a_cpu_period_also_become_cpu_time)
{
    struct kiln_builder *b = start();
    struct kiln_profile p = {.sample_type = type(b, "samples", "count"),
                             .period_type = type(b, "cpu", "nanoseconds"),
                             .period = 50};
    struct kiln_pprof_losses losses;
    struct kiln_batch *batch, *copy;
    struct kiln_buf bytes;

    kiln_builder_add_profile(b, &p);
    kiln_builder_add_sample(b, 0, stack(b, "main;read"), 0, 0, NULL, (uint64_t[]){1, 2, 3}, 3);
    batch = finish(b);
    copy = again(batch, &bytes, &losses);
    CHECK_EQ(copy->n_profiles, 2);
    CHECK_STR(kiln_batch_str(copy, copy->profiles[0].sample_type.type), "cpu");
    CHECK_EQ(value_of(copy, 0, 0), 150);
    CHECK_STR(kiln_batch_str(copy, copy->profiles[1].sample_type.type), "samples");
    CHECK_EQ(value_of(copy, 1, 0), 3);
    CHECK_EQ(losses.timestamps, 3);
    kiln_batch_unref(batch);
    kiln_batch_unref(copy);
    kiln_buf_done(&bytes);
}

TEST(pprof_encode, profiles_that_are_not_parallel_meet_by_identity)
{
    struct kiln_builder *b = start();
    struct kiln_pprof_losses losses;
    struct kiln_batch *batch, *copy;
    struct kiln_buf bytes;

    kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = type(b, "objects", "count")});
    kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = type(b, "space", "bytes")});
    kiln_builder_add_value(b, 0, stack(b, "main;a"), 0, 1);
    kiln_builder_add_value(b, 0, stack(b, "main;b"), 0, 2);
    kiln_builder_add_value(b, 1, stack(b, "main;b"), 0, 20);
    kiln_builder_add_value(b, 1, stack(b, "main;c"), 0, 30);
    batch = finish(b);
    copy = again(batch, &bytes, &losses);
    CHECK_EQ(copy->profiles[0].n_samples, 3);
    CHECK_EQ(value_of(copy, 0, 1), 2);
    CHECK_EQ(value_of(copy, 1, 1), 20);
    CHECK_EQ(value_of(copy, 1, 0), 0);
    CHECK_EQ(value_of(copy, 1, 2), 30);
    kiln_batch_unref(batch);
    kiln_batch_unref(copy);
    kiln_buf_done(&bytes);
}

TEST(pprof_encode, resources_and_links_become_labels)
{
    struct kiln_link link = {{0xab, [15] = 1}, {0xcd, [7] = 2}};
    struct kiln_pprof_losses losses;
    struct kiln_batch *batch, *copy;
    struct kiln_builder *b;
    struct kiln_buf bytes;

    CHECK_OK(kiln_builder_new(NULL, &b));
    for (uint32_t i = 0; i < 2; i++) {
        struct kiln_resource r = {.attrs = text_set(b, "service.name", i ? "cart" : "shop")};

        kiln_builder_add_resource(b, &r);
        kiln_builder_add_scope(b, &(struct kiln_scope){0});
        kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = type(b, "x", "count")});
        kiln_builder_add_sample(b, i, stack(b, "main"), text_set(b, "thread", "t"),
                                kiln_builder_link(b, &link), (int64_t[]){5}, NULL, 1);
    }
    batch = finish(b);
    copy = again(batch, &bytes, &losses);
    CHECK_EQ(copy->n_samples, 2);
    CHECK_STR(kiln_set_text(copy, copy->samples[1].attrs, KILN_STR("service.name")), "cart");
    CHECK_STR(kiln_set_text(copy, copy->samples[1].attrs, KILN_STR("thread")), "t");
    CHECK_STR(kiln_set_text(copy, copy->samples[0].attrs, KILN_STR("span_id")), "cd00000000000002");
    CHECK_STR(kiln_set_text(copy, copy->samples[0].attrs, KILN_STR("trace_id")),
              "ab000000000000000000000000000001");
    kiln_batch_unref(batch);
    kiln_batch_unref(copy);
    kiln_buf_done(&bytes);
}

TEST(pprof_encode, values_without_a_kind_in_pprof_become_text_and_are_counted)
{
    struct kiln_builder *b = start();
    struct kiln_value inner = kiln_value_bool(true);
    struct kiln_pprof_losses losses;
    struct kiln_batch *batch, *copy;
    struct kiln_buf bytes;
    uint32_t attrs[4];

    attrs[0] =
        kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("d")), kiln_value_double(1.5), 0);
    attrs[1] =
        kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("f")), kiln_value_bool(true), 0);
    attrs[2] =
        kiln_builder_attr(b, kiln_builder_string(b, KILN_STR("m")),
                          kiln_builder_map(b, &(struct kiln_attr){.key = 1, .value = inner}, 1), 0);
    attrs[3] = kiln_builder_text_attr(b, KILN_STR("e"), KILN_STR(""));
    kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = type(b, "x", "count")});
    kiln_builder_add_value(b, 0, stack(b, "main"), kiln_builder_set(b, attrs, 4, NULL), 1);
    batch = finish(b);
    copy = again(batch, &bytes, &losses);
    CHECK_STR(kiln_set_text(copy, copy->samples[0].attrs, KILN_STR("d")), "1.5");
    CHECK_STR(kiln_set_text(copy, copy->samples[0].attrs, KILN_STR("f")), "true");
    CHECK_STR(kiln_set_text(copy, copy->samples[0].attrs, KILN_STR("m")), "{\"d\":true}");
    CHECK_EQ(kiln_set_find(copy, copy->samples[0].attrs, KILN_STR("e"))->value.kind,
             KILN_VALUE_STRING);
    CHECK_EQ(losses.values_as_text, 3);
    kiln_batch_unref(batch);
    kiln_batch_unref(copy);
    kiln_buf_done(&bytes);
}

/*
 * A profile of one frame of the kernel's, without a mapping, there and back.  *ret_bytes must be
 * freed after the batch.
 */
static struct kiln_batch *kernel_frame_again(const char *name, struct kiln_buf *ret_bytes,
                                             struct kiln_pprof_losses *losses)
{
    struct kiln_builder *b = start();
    struct kiln_location location = {.attrs = text_set(b, "profile.frame.type", "kernel"),
                                     .address = 9};
    struct kiln_function function = {.name = kiln_builder_string(b, kiln_str_of(name))};
    struct kiln_line line = {.function = kiln_builder_function(b, &function)};
    uint32_t leaf = kiln_builder_location(b, &location, &line, *name ? 1 : 0);
    struct kiln_batch *batch, *copy;

    kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = type(b, "x", "count")});
    kiln_builder_add_value(b, 0, kiln_builder_stack(b, &leaf, 1), 0, 1);
    batch = finish(b);
    copy = again(batch, ret_bytes, losses);
    kiln_batch_unref(batch);
    return copy;
}

TEST(pprof_encode, a_frame_type_without_a_mapping_becomes_one)
{
    struct kiln_pprof_losses losses;
    struct kiln_buf bytes;
    struct kiln_batch *copy = kernel_frame_again("schedule", &bytes, &losses);

    CHECK_STR(kiln_batch_str(copy, copy->dict.mappings[copy->dict.locations[1].mapping].filename),
              "[kernel]");
    CHECK_EQ(losses.attributes, 0);
    kiln_batch_unref(copy);
    kiln_buf_done(&bytes);
}

TEST(pprof_encode, a_frame_known_by_its_address_alone_gets_no_made_up_mapping)
{
    struct kiln_pprof_losses losses;
    struct kiln_buf bytes;
    struct kiln_batch *copy = kernel_frame_again("", &bytes, &losses);

    CHECK_EQ(copy->dict.locations[1].mapping, 0);
    CHECK_EQ(losses.attributes, 1);
    kiln_batch_unref(copy);
    kiln_buf_done(&bytes);
}

TEST(pprof_encode, sums_stop_at_the_limit_and_are_counted)
{
    struct kiln_builder *b = start();
    struct kiln_pprof_losses losses;
    struct kiln_batch *batch, *copy;
    struct kiln_buf bytes;

    for (uint32_t i = 0; i < 2; i++) {
        kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = type(b, "x", "count")});
        kiln_builder_add_value(b, i, stack(b, "main"), 0, INT64_MAX - 1);
    }
    batch = finish(b);
    copy = again(batch, &bytes, &losses);
    CHECK(value_of(copy, 0, 0) == INT64_MAX);
    CHECK_EQ(losses.overflows, 1);
    kiln_batch_unref(batch);
    kiln_batch_unref(copy);
    kiln_buf_done(&bytes);
}

TEST(pprof_encode, running_out_of_memory_anywhere_leaks_nothing)
{
    struct making m = full_profile();
    struct kiln_err err;
    struct kiln_batch *batch = decode_bytes(kiln_buf_str(&m.buf), &err);
    struct kiln_starved s = {0};

    while (kiln_test_starve(&s)) {
        struct kiln_buf out;

        kiln_buf_init(&out, 1u << 24);
        s.r = kiln_pprof_encode(batch, NULL, &out, &err);
        kiln_buf_done(&out);
    }
    CHECK_EQ(kiln_mem_live(), s.live);
    CHECK(s.n > 10);
    kiln_batch_unref(batch);
    kiln_buf_done(&m.buf);
}

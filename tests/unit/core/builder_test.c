/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "core/builder.h"
#include "test.h"

static struct kiln_builder *make(void)
{
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    return b;
}

static struct kiln_batch *finish(struct kiln_builder *b)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch;

    CHECK_OK(kiln_builder_finish(b, &batch, &err));
    return batch;
}

/* A resource, a scope and `n` profiles. */
static void add_profiles(struct kiln_builder *b, uint32_t n)
{
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    for (uint32_t i = 0; i < n; i++)
        kiln_builder_add_profile(b, &(struct kiln_profile){0});
}

TEST(builder, an_empty_batch_has_the_zero_values)
{
    struct kiln_batch *batch = finish(make());

    CHECK_EQ(batch->dict.n_strings, 1);
    CHECK_EQ(batch->dict.n_stacks, 1);
    CHECK_EQ(batch->dict.n_sets, 1);
    CHECK_STR(kiln_batch_str(batch, 0), "");
    kiln_batch_unref(batch);
}

TEST(builder, equal_entries_get_equal_indexes)
{
    struct kiln_builder *b = make();
    struct kiln_function f = {.name = kiln_builder_string(b, KILN_STR("main"))};
    struct kiln_line line = {.function = kiln_builder_function(b, &f), .line = 7};
    uint32_t leaf = kiln_builder_location(b, &(struct kiln_location){.address = 1}, &line, 1);
    uint32_t root = kiln_builder_location(b, &(struct kiln_location){.address = 2}, NULL, 0);

    CHECK_EQ(kiln_builder_string(b, KILN_STR("main")), f.name);
    CHECK_EQ(kiln_builder_function(b, &f), line.function);
    CHECK_EQ(kiln_builder_location(b, &(struct kiln_location){.address = 1}, &line, 1), leaf);
    CHECK_NE(kiln_builder_location(b, &(struct kiln_location){.address = 1}, NULL, 0), leaf);
    CHECK_EQ(kiln_builder_stack(b, (uint32_t[]){leaf, root}, 2), 1);
    CHECK_EQ(kiln_builder_stack(b, (uint32_t[]){root, leaf}, 2), 2);
    CHECK_EQ(kiln_builder_stack(b, (uint32_t[]){leaf, root}, 2), 1);
    CHECK_EQ(kiln_builder_stack(b, NULL, 0), 0);
    kiln_builder_free(b);
}

TEST(builder, a_set_is_sorted_and_the_later_of_two_equal_keys_wins)
{
    struct kiln_builder *b = make();
    uint32_t a1 = kiln_builder_text_attr(b, KILN_STR("a"), KILN_STR("1"));
    uint32_t z = kiln_builder_text_attr(b, KILN_STR("z"), KILN_STR("1"));
    uint32_t a2 = kiln_builder_text_attr(b, KILN_STR("a"), KILN_STR("2"));
    uint32_t lost = 0;
    uint32_t set = kiln_builder_set(b, (uint32_t[]){z, a1}, 2, &lost);

    CHECK_EQ(kiln_builder_set(b, (uint32_t[]){a1, z}, 2, &lost), set);
    CHECK_EQ(lost, 0);
    CHECK_EQ(kiln_builder_set(b, (uint32_t[]){a2, z, a1}, 3, &lost), set);
    CHECK_EQ(lost, 1);
    CHECK_STR(kiln_set_text(kiln_builder_peek(b), set, KILN_STR("a")), "1");
    kiln_builder_free(b);
}

TEST(builder, a_large_set_follows_the_same_rules)
{
    struct kiln_builder *b = make();
    uint32_t attrs[100], lost = 0, set;
    char key[8];

    for (uint32_t i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "k%u", i % 50);
        attrs[i] =
            kiln_builder_attr(b, kiln_builder_string(b, kiln_str_of(key)), kiln_value_int(i), 0);
    }
    set = kiln_builder_set(b, attrs, 100, &lost);
    CHECK_EQ(lost, 50);
    CHECK_EQ(kiln_builder_peek(b)->dict.sets[set].n, 50);
    CHECK_EQ(kiln_set_find(kiln_builder_peek(b), set, KILN_STR("k7"))->value.i, 57);
    kiln_builder_free(b);
}

/* OTLP senders refer to entry 0 for "no attribute". */
TEST(builder, a_set_leaves_the_empty_attribute_out)
{
    struct kiln_builder *b = make();
    uint32_t unnamed = kiln_builder_attr(b, 0, kiln_value_int(5), 0);
    uint32_t a = kiln_builder_text_attr(b, KILN_STR("a"), KILN_STR("1")), lost = 0, set;
    uint32_t many[100] = {[3] = a, [7] = unnamed};

    CHECK_EQ(kiln_builder_attr(b, 0, (struct kiln_value){0}, 0), 0);
    CHECK_EQ(kiln_builder_set(b, (uint32_t[]){0}, 1, &lost), 0);
    CHECK_EQ(kiln_builder_set(b, many, 3, &lost), 0);
    set = kiln_builder_set(b, (uint32_t[]){unnamed, 0, a, 0}, 4, &lost);
    CHECK_EQ(kiln_builder_peek(b)->dict.sets[set].n, 2);
    CHECK_EQ(kiln_builder_set(b, many, 100, &lost), set);
    CHECK_EQ(lost, 0);
    kiln_builder_free(b);
}

TEST(builder, equal_nested_values_are_one)
{
    struct kiln_builder *b = make();
    struct kiln_value ab[] = {kiln_value_int(1), kiln_value_int(2)};
    uint32_t key = kiln_builder_string(b, KILN_STR("list"));
    uint32_t attr = kiln_builder_attr(b, key, kiln_builder_array(b, ab, 2), 0);

    CHECK_EQ(kiln_builder_attr(b, key, kiln_builder_array(b, ab, 2), 0), attr);
    CHECK_NE(kiln_builder_attr(b, key, kiln_builder_array(b, ab, 1), 0), attr);
    kiln_builder_free(b);
}

TEST(builder, samples_may_come_in_any_order_of_profiles)
{
    struct kiln_builder *b = make();
    struct kiln_batch *batch;

    add_profiles(b, 3);
    kiln_builder_add_value(b, 0, 0, 0, 10);
    kiln_builder_add_value(b, 2, 0, 0, 30);
    kiln_builder_add_value(b, 0, 0, 0, 11);
    kiln_builder_add_value(b, 1, 0, 0, 20);
    batch = finish(b);
    CHECK_EQ(batch->profiles[0].n_samples, 2);
    CHECK_EQ(batch->profiles[1].first_sample, 2);
    CHECK_EQ(batch->profiles[2].first_sample, 3);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 10);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[1]), 11);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[2]), 20);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[3]), 30);
    kiln_batch_unref(batch);
}

TEST(builder, timestamps_without_values_count_one_each)
{
    struct kiln_builder *b = make();
    struct kiln_batch *batch;

    add_profiles(b, 1);
    kiln_builder_add_sample(b, 0, 0, 0, 0, NULL, (uint64_t[]){100, 200, 300}, 3);
    kiln_builder_add_sample(b, 0, 0, 0, 0, (int64_t[]){5, 6}, (uint64_t[]){100, 200}, 2);
    batch = finish(b);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 3);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[1]), 11);
    CHECK_EQ(kiln_sample_times(batch, &batch->samples[1])[1], 200);
    kiln_batch_unref(batch);
}

TEST(builder, a_limit_is_an_error_and_not_a_crash)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_err err = {0};
    struct kiln_builder *b;
    struct kiln_batch *batch = NULL;
    char text[16];

    limits.memory_bytes = 64u << 10;
    CHECK_OK(kiln_builder_new(&limits, &b));
    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof(text), "s%d", i);
        kiln_builder_string(b, kiln_str_of(text));
    }
    CHECK_EQ(kiln_builder_finish(b, &batch, &err), KILN_E_LIMIT);
    CHECK_EQ(err.code, KILN_E_LIMIT);
    CHECK(batch == NULL);
}

/* Builds a little of everything; any allocation in it may fail. */
static int build_some(struct kiln_batch **ret)
{
    struct kiln_builder *b;
    char text[16];
    uint32_t previous = 0;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    add_profiles(b, kiln_builder_error(b) ? 0 : 1);
    for (int i = 0; i < 200 && !kiln_builder_error(b); i++) {
        struct kiln_function f = {0};
        struct kiln_line line = {0};
        uint32_t stack[2], attr;

        snprintf(text, sizeof(text), "f%d", i);
        f.name = kiln_builder_string(b, kiln_str_of(text));
        line.function = kiln_builder_function(b, &f);
        stack[0] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
        stack[1] = previous;
        previous = stack[0];
        attr = kiln_builder_text_attr(b, KILN_STR("k"), kiln_str_of(text));
        kiln_builder_add_value(b, 0, kiln_builder_stack(b, stack, 2),
                               kiln_builder_set(b, &attr, 1, NULL), i);
    }
    return kiln_builder_finish(b, ret, NULL);
}

TEST(builder, running_out_of_memory_anywhere_leaks_nothing)
{
    int64_t live = kiln_mem_live();
    struct kiln_batch *batch = NULL;
    uint64_t n = 0;
    int r;

    do {
        kiln_mem_fail_at(++n);
        r = build_some(&batch);
        kiln_mem_fail_at(0);
        if (r < 0)
            CHECK_EQ(kiln_mem_live(), live);
    } while (r < 0);
    CHECK(n > 20);
    kiln_batch_unref(batch);
    CHECK_EQ(kiln_mem_live(), live);
}

TEST(builder, a_grid_gives_parallel_profiles)
{
    struct kiln_builder *b = make();
    struct kiln_batch *batch;
    struct kiln_grid grid;

    add_profiles(b, 2);
    CHECK_OK(kiln_builder_open_grid(b, 2, 2, &grid));
    kiln_builder_set_row(b, &grid, 1, 0, 0, (int64_t[]){3, 30});
    kiln_builder_set_row(b, &grid, 0, 0, 0, (int64_t[]){2, 20});
    batch = finish(b);
    CHECK_EQ(batch->profiles[1].first_sample, 2);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 2);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[1]), 3);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[3]), 30);
    kiln_batch_unref(batch);
}

TEST(builder, a_stack_written_in_place_is_found_like_any_other)
{
    struct kiln_builder *b = make();
    uint32_t leaf = kiln_builder_location(b, &(struct kiln_location){.address = 1}, NULL, 0);
    uint32_t known = kiln_builder_stack(b, (uint32_t[]){leaf, 0}, 2);
    uint32_t *room = kiln_builder_stack_room(b, 8);

    room[0] = leaf;
    room[1] = 0;
    CHECK_EQ(kiln_builder_stack_take(b, 2), known);
    room = kiln_builder_stack_room(b, 8);
    room[0] = leaf;
    CHECK_EQ(kiln_builder_stack_take(b, 1), known + 1);
    CHECK_EQ(kiln_builder_peek(b)->dict.n_frames, 3);
    kiln_builder_free(b);
}

TEST(builder, dropped_indexes_come_back_when_something_is_looked_for)
{
    struct kiln_builder *b = make();
    uint32_t text = kiln_builder_string(b, KILN_STR("main"));
    uint32_t leaf = kiln_builder_location(b, &(struct kiln_location){.address = 1}, NULL, 0);

    kiln_builder_drop_indexes(b);
    CHECK_EQ(kiln_builder_string(b, KILN_STR("main")), text);
    CHECK_EQ(kiln_builder_location(b, &(struct kiln_location){.address = 1}, NULL, 0), leaf);
    CHECK_NE(kiln_builder_string(b, KILN_STR("read")), text);
    kiln_builder_free(b);
}

TEST(builder, a_sample_without_an_observation_is_counted)
{
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, 0, 0, 7);
    CHECK_EQ(kiln_builder_silent(b), 0);
    kiln_builder_add_sample(b, 0, 0, 0, 0, NULL, NULL, 0);
    CHECK_EQ(kiln_builder_silent(b), 1);
    kiln_builder_free(b);
}

TEST(builder, values_of_one_profile_can_be_scaled)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    kiln_builder_add_value(b, 0, 0, 0, 5);
    kiln_builder_add_value(b, 1, 0, 0, 7);
    kiln_builder_add_value(b, 1, 0, 0, INT64_MAX / 2);
    kiln_builder_add_value(b, 0, 0, 0, 6); /* out of order */
    kiln_builder_scale_profile(b, 1, 10);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[0]), 5);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[1]), 6);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[2]), 70);
    CHECK_EQ(kiln_sample_total(batch, &batch->samples[3]), INT64_MAX);
    kiln_batch_unref(batch);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/delta.h"

#include <stdlib.h>

#include "base/mem.h"
#include "drawn.h"
#include "random_batch.h"
#include "stacks.h"
#include "test.h"

/* A reading of alloc_space at a time, and of inuse_space beside it. */
static struct kiln_batch *reading(uint64_t time_ns, const char *allocated, const char *in_use)
{
    const struct kiln_drawn profiles[] = {
        {.stacks = allocated,
         .type = "alloc_space",
         .unit = "bytes",
         .time_ns = time_ns,
         .resource = "service.name=shop",
         .scope = "heap"},
        {.stacks = in_use, .type = "inuse_space", .unit = "bytes", .time_ns = time_ns},
    };

    return kiln_test_batch(profiles, 2);
}

/* The difference, as it is drawn; both readings are gone. */
static void check_delta(struct kiln_batch *before, struct kiln_batch *now, const char *drawing,
                        bool is_reset)
{
    bool reset = !is_reset;
    struct kiln_batch *batch;

    CHECK_OK(kiln_delta(before, now, NULL, &batch, &reset, NULL));
    check_stacks(batch, drawing);
    CHECK_EQ(reset, is_reset);
    kiln_batch_unref(batch);
    kiln_batch_unref(before);
    kiln_batch_unref(now);
}

TEST(delta, flows_become_differences_and_levels_stay)
{
    check_delta(reading(1000, "main;a 10\nmain;b 5\nmain;c 7\n", "main;a 4\n"),
                reading(3000, "main;a 12\nmain;b 5\nmain;c 8\nmain;d 1\n", "main;a 3\n"),
                "main;a 2\nmain;c 1\nmain;d 1\nmain;a 3\n", false);
}

TEST(delta, a_difference_covers_the_time_between_and_says_what_it_is)
{
    struct kiln_batch *before = reading(1000, "main 10\n", "main 1\n");
    struct kiln_batch *now = reading(3000, "main 12\n", "main 1\n"), *batch;
    const struct kiln_attr *attr;

    CHECK_OK(kiln_delta(before, now, NULL, &batch, NULL, NULL));
    CHECK_EQ(batch->n_profiles, 2);
    CHECK_EQ(batch->profiles[0].time_ns, 1000);
    CHECK_EQ(batch->profiles[0].duration_ns, 2000);
    attr = kiln_set_find(batch, batch->profiles[0].attrs, KILN_STR("profile.delta"));
    CHECK(attr && attr->value.kind == KILN_VALUE_BOOL && attr->value.flag == 1);
    CHECK_EQ(batch->profiles[1].time_ns, 3000);
    CHECK(!kiln_set_find(batch, batch->profiles[1].attrs, KILN_STR("profile.delta")));
    CHECK_STR(kiln_set_text(batch, batch->resources[0].attrs, KILN_STR("service.name")), "shop");
    CHECK_STR(kiln_batch_str(batch, batch->scopes[0].name), "heap");
    kiln_batch_unref(batch);
    kiln_batch_unref(before);
    kiln_batch_unref(now);
}

TEST(delta, levels_can_be_left_out)
{
    struct kiln_batch *before = reading(1000, "main 10\n", "main 3\n");
    struct kiln_batch *now = reading(3000, "main 12\n", "main 3\n"), *batch;
    struct kiln_delta_opts opts = {.no_levels = true};

    CHECK_OK(kiln_delta(before, now, &opts, &batch, NULL, NULL));
    check_stacks(batch, "main 2\n");
    kiln_batch_unref(batch);
    kiln_batch_unref(before);
    kiln_batch_unref(now);
}

TEST(delta, the_first_reading_is_a_baseline)
{
    check_delta(NULL, reading(1000, "main;a 10\n", "main;a 4\n"), "main;a 4\n", false);
}

TEST(delta, a_smaller_sum_is_a_new_beginning)
{
    check_delta(reading(1000, "main;a 10\nmain;b 5\n", "main;a 4\n"),
                reading(3000, "main;a 11\nmain;b 1\n", "main;a 3\n"),
                "main;a 11\nmain;b 1\nmain;a 3\n", true);
}

TEST(delta, a_stack_that_shrinks_alone_counts_nothing)
{
    check_delta(reading(1000, "main;a 10\nmain;b 5\n", "main;a 4\n"),
                reading(3000, "main;a 9\nmain;b 8\n", "main;a 3\n"), "main;b 3\nmain;a 3\n", false);
}

TEST(delta, nothing_new_is_no_profile)
{
    struct kiln_batch *before = reading(1000, "main 10\n", "");
    struct kiln_batch *now = reading(3000, "main 10\n", ""), *batch;

    CHECK_OK(kiln_delta(before, now, NULL, &batch, NULL, NULL));
    CHECK_EQ(batch->n_profiles, 0);
    kiln_batch_unref(batch);
    kiln_batch_unref(before);
    kiln_batch_unref(now);
}

TEST(delta, attributes_tell_samples_apart_and_equal_ones_are_added_up)
{
    check_delta(reading(1000, "main 10 bytes=8\nmain 3 bytes=16\n", ""),
                reading(3000, "main 4 bytes=8\nmain 5 bytes=16\nmain 8 bytes=8\n", ""),
                "main 2\nmain 2\n", false);
}

TEST(delta, a_program_that_moved_began_anew)
{
    struct kiln_batch *readings[2];
    bool reset;
    struct kiln_batch *batch;

    for (uint32_t i = 0; i < 2; i++) {
        struct kiln_builder *b;
        struct kiln_profile profile = {.time_ns = 1000 + i};

        CHECK_OK(kiln_builder_new(NULL, &b));
        kiln_builder_mapping(
            b, &(struct kiln_mapping){.start = 0x1000 * (i + 1),
                                      .filename = kiln_builder_string(b, KILN_STR("/bin/app"))});
        kiln_builder_add_resource(b, &(struct kiln_resource){0});
        kiln_builder_add_scope(b, &(struct kiln_scope){0});
        profile.sample_type.type = kiln_builder_string(b, KILN_STR("alloc_space"));
        profile.sample_type.unit = kiln_builder_string(b, KILN_STR("bytes"));
        kiln_test_draw(b, kiln_builder_add_profile(b, &profile), i ? "main 15\n" : "main 10\n");
        CHECK_OK(kiln_builder_finish(b, &readings[i], NULL));
    }
    CHECK_OK(kiln_delta(readings[0], readings[1], NULL, &batch, &reset, NULL));
    CHECK(reset);
    check_stacks(batch, "main 15\n");
    kiln_batch_unref(batch);
    kiln_batch_unref(readings[0]);
    kiln_batch_unref(readings[1]);
}

/* Adds the value of each main;fN to sums[N]. */
static void add_up(const struct kiln_batch *batch, int64_t *sums)
{
    char *text = stacks_of_batch(batch);
    long long value;
    int which;

    for (char *line = text; sscanf(line, "main;f%d %lld", &which, &value) == 2;
         line = strchr(line, '\n') + 1)
        sums[which] += value;
    kiln_free(text);
}

/* The sum of all differences is the last reading less the first, whatever grew in between. */
TEST(delta, differences_add_up_to_the_last_less_the_first)
{
    enum { STACKS = 8, READINGS = 12 };

    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct dice dice = {seed};
        int64_t counts[STACKS] = {0}, first[STACKS], sums[STACKS] = {0};
        struct kiln_batch *before = NULL;

        for (int round = 0; round < READINGS; round++) {
            struct kiln_batch *now, *batch;
            struct kiln_buf drawing;

            kiln_buf_init(&drawing, 4096);
            for (int i = 0; i < STACKS; i++) {
                counts[i] += dice_roll(&dice, 3) ? 0 : (int64_t)dice_roll(&dice, 1000);
                if (counts[i])
                    kiln_buf_printf(&drawing, "main;f%d %lld\n", i, (long long)counts[i]);
            }
            kiln_buf_putc(&drawing, '\0');
            now = reading(1000 + (uint64_t)round, drawing.ptr, "");
            kiln_buf_done(&drawing);
            if (round == 0)
                memcpy(first, counts, sizeof(first));
            CHECK_OK(kiln_delta(before, now, NULL, &batch, NULL, NULL));
            add_up(batch, sums);
            kiln_batch_unref(batch);
            kiln_batch_unref(before);
            before = now;
        }
        for (int i = 0; i < STACKS; i++)
            CHECK_EQ(sums[i], counts[i] - first[i]);
        kiln_batch_unref(before);
    }
}

TEST(delta, out_of_memory_is_an_ordinary_error)
{
    struct kiln_batch *before = reading(1000, "main;a 10 k=1\n", "main 1\n");
    struct kiln_batch *now = reading(3000, "main;a 12 k=1\nmain;b 1\n", "main 1\n");
    int64_t live = kiln_mem_live();

    for (uint64_t n = 1;; n++) {
        struct kiln_batch *batch = NULL;
        int r;

        kiln_mem_fail_at(n);
        r = kiln_delta(before, now, NULL, &batch, NULL, NULL);
        kiln_batch_unref(batch);
        if (!kiln_mem_failed())
            break;
        CHECK(r < 0);
    }
    kiln_mem_fail_at(0);
    CHECK_EQ(kiln_mem_live(), live);
    kiln_batch_unref(before);
    kiln_batch_unref(now);
}

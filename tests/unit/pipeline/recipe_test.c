/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What receivers write is followed in their own tests (support/intake.h); here is what they do not
 * write.
 */
#include "pipeline/receivers/recipe.h"

#include "base/mem.h"
#include "intake.h"
#include "test.h"

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

/* Follows a recipe for a pprof of CPU time; returns what that says. */
static int follow(struct kiln_str recipe, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_builder *b;
    struct kiln_buf raw;
    int r;

    intake_cpu_pprof(&raw);
    CHECK_OK(kiln_builder_new(NULL, &b));
    r = kiln_recipe_follow(recipe, kiln_buf_str(&raw), b, err);
    if (r == 0)
        CHECK_OK(kiln_builder_finish(b, ret_batch, NULL));
    else
        kiln_builder_free(b);
    kiln_buf_done(&raw); /* texts may be gone now: numbers are all that is looked at */
    return r;
}

TEST(recipe, bytes_that_are_no_recipe_are_refused)
{
    static const struct {
        struct kiln_str bytes;
        const char *text;
    } cases[] = {
        {BYTES(""), "it is for a body that is not known"},
        {BYTES("\x08\x02"), "it is for a body that is not known"},
        {BYTES("\x08"), "the input ends in the middle of something"},
        {BYTES("\x08\x01\x68\x01"), "it has a field that is not known"},
        {BYTES("\x08\x01\x12\x02\x1a\x00"), "a pair has a field that is not known"},
        {BYTES("\x08\x01\x12\x00"), "a label has no name"},
        {BYTES("\x08\x01\x12\x04\x0a\x02\xff\xff"), "a label is not valid UTF-8"},
        {BYTES("\x08\x01\x1a\x01\xff"), "a text is too long, or not UTF-8"},
        {BYTES("\x08\x01\x42\x01\x01"), "an id has 16 bytes"},
        {BYTES("\x08\x01\x1a\x7f"), "the input ends in the middle of something"},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        struct kiln_err err = {0};
        struct kiln_batch *batch;

        CHECK(follow(cases[i].bytes, &batch, &err) < 0);
        CHECK_TEXT(err.text, cases[i].text);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(recipe, more_labels_or_names_than_anybody_may_send_are_refused)
{
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    struct kiln_buf recipe;

    kiln_buf_init(&recipe, 1u << 20);
    kiln_buf_add(&recipe, "\x08\x01", 2);
    for (int i = 0; i <= KILN_TAGS_MAX; i++)
        kiln_buf_printf(&recipe, "\x12\x09\x0a\x04%04d\x12\x01v", i);
    CHECK_EQ(follow(kiln_buf_str(&recipe), &batch, &err), KILN_E_MALFORMED);
    CHECK_TEXT(err.text, "there are more than 100 labels");
    kiln_buf_clear(&recipe);
    for (int i = 0; i <= 32; i++)
        kiln_buf_add(&recipe, "\x62\x03\x0a\x01t", 5);
    err = (struct kiln_err){0};
    CHECK_EQ(follow(kiln_buf_str(&recipe), &batch, &err), KILN_E_LIMIT);
    kiln_buf_done(&recipe);
}

TEST(recipe, times_come_from_the_recipe_alone)
{
    struct kiln_tags tags = {.from_ns = 1700000000000000000, .moves = true};
    struct kiln_err err = {0};
    struct kiln_batch *batch;
    struct kiln_buf recipe;

    kiln_buf_init(&recipe, KILN_RECIPE_MAX);
    CHECK_OK(kiln_recipe_encode(&(struct kiln_recipe){.tags = &tags}, &recipe));
    CHECK_OK(follow(kiln_buf_str(&recipe), &batch, &err));
    CHECK_EQ(batch->profiles[0].time_ns, 1700000000000000000);
    kiln_batch_unref(batch);
    kiln_buf_done(&recipe);
}

TEST(recipe, one_that_is_too_long_is_not_written)
{
    static char value[KILN_TAG_VALUE_MAX];
    static char names[KILN_TAGS_MAX][8];
    static struct kiln_tags tags;
    struct kiln_buf recipe;

    memset(value, 'x', sizeof(value));
    for (int i = 0; i < KILN_TAGS_MAX; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        CHECK_OK(kiln_tags_add(&tags, kiln_str_of(names[i]),
                               (struct kiln_str){value, sizeof(value)}, NULL));
    }
    kiln_buf_init(&recipe, KILN_RECIPE_MAX);
    CHECK_EQ(kiln_recipe_encode(&(struct kiln_recipe){.tags = &tags}, &recipe), KILN_E_LIMIT);
    CHECK_EQ(recipe.len, 0);
    kiln_buf_done(&recipe);
}

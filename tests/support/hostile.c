/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "core/builder.h"
#include "drawn.h"
#include "hostile.h"
#include "random_batch.h"
#include "test.h"

#define NAME_MAX_BYTES 10000

static const struct kiln_str pieces[] = {
    {"<script>alert(1)</script>", 25},
    {"]]>", 3},
    {"</title></g></svg>", 18},
    {"<!--", 4},
    {"&amp;&#0;&bogus;", 16},
    {"\" onload=\"x()", 13},
    {"' x='", 5},
    {"\\\" ; }", 6},
    {"\\n\\l\\", 5},
    {"\0\1\033[31m\177", 8},
    {"\xff\xfe\xc3(\xe2\x82", 7},
    {"\xed\xa0\x80\xf4\x90\x80\x80", 7},
    {"\u202e\u2066\ufeff\uffff", 12},
    {"a;b\n\r\t", 6},
    {"größe", 7},
    {"%s%n%1$n", 8},
    {"/", 1},
    {"::(", 3},
};

static uint32_t random_name(struct kiln_builder *b, struct dice *dice)
{
    static char name[NAME_MAX_BYTES];
    size_t wanted = dice_roll(dice, 50) == 0 ? NAME_MAX_BYTES : dice_roll(dice, 60), len = 0;

    while (len < wanted) {
        struct kiln_str piece = pieces[dice_roll(dice, KILN_ARRAY_LEN(pieces))];
        size_t n = piece.len < sizeof(name) - len ? piece.len : sizeof(name) - len;

        memcpy(name + len, piece.ptr, n);
        len += n;
    }
    return kiln_builder_string(b, (struct kiln_str){name, len});
}

static uint32_t random_location(struct kiln_builder *b, struct dice *dice)
{
    struct kiln_function f = {.name = random_name(b, dice), .filename = random_name(b, dice)};
    struct kiln_mapping m = {.start = 1, .limit = 2, .filename = random_name(b, dice)};
    struct kiln_line line = {.function = kiln_builder_function(b, &f),
                             .line = (int64_t)dice_roll(dice, UINT64_MAX)};
    struct kiln_location l = {.address = dice_roll(dice, 1u << 20),
                              .mapping = kiln_builder_mapping(b, &m)};

    return kiln_builder_location(b, &l, &line, dice_roll(dice, 5) != 0);
}

struct kiln_view *kiln_test_hostile_view(uint64_t seed)
{
    struct dice dice = {seed};
    uint32_t locations[40], stack[12];
    struct kiln_profile p = {.duration_ns = dice_roll(&dice, UINT64_MAX)};
    struct kiln_batch *batch;
    struct kiln_builder *b;

    CHECK_OK(kiln_builder_new(NULL, &b));
    p.sample_type.type = random_name(b, &dice);
    p.sample_type.unit = random_name(b, &dice);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &p);
    for (size_t i = 0; i < KILN_ARRAY_LEN(locations); i++)
        locations[i] = random_location(b, &dice);
    for (int i = 0; i < 60; i++) {
        uint32_t n = (uint32_t)dice_roll(&dice, KILN_ARRAY_LEN(stack) + 1);
        int64_t value = dice_roll(&dice, 9) ? (int64_t)dice_roll(&dice, 1000)
                                            : (int64_t)dice_roll(&dice, UINT64_MAX);

        for (uint32_t k = 0; k < n; k++)
            stack[k] = locations[dice_roll(&dice, KILN_ARRAY_LEN(locations))];
        kiln_builder_add_value(b, 0, kiln_builder_stack(b, stack, n), 0, value);
    }
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return kiln_test_view(batch, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pyroscope_flame.h"

#include "base/mem.h"
#include "drawn_flame.h"
#include "starved.h"
#include "test.h"

static struct kiln_leash leash;

/* Boxes of a level as "x,total,self,name ...", both sides of a diff; until the next call. */
static const char *level_text(const struct kiln_levels *levels, uint32_t level)
{
    static char text[1024];
    int n = 0;

    text[0] = '\0';
    for (uint32_t i = levels->first[level]; i < levels->first[level + 1]; i++) {
        const struct kiln_box *box = &levels->boxes[i];

        for (uint32_t k = 0; k < levels->n_sides; k++)
            n += snprintf(text + n, sizeof(text) - (size_t)n, "%lld,%lld,%lld,",
                          (long long)box->side[k].x, (long long)box->side[k].total,
                          (long long)box->side[k].self);
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%.*s ",
                      KILN_STR_ARG(levels->names[box->name]));
    }
    return text;
}

TEST(pyroscope_flame, boxes_lie_below_their_callers_from_left_to_right)
{
    struct kiln_flame *flame = kiln_test_flame("a;b 2\na;c 3\na 1\nd;c 4\n", 100);
    struct kiln_levels levels;

    leash = (struct kiln_leash){0};
    CHECK_OK(kiln_levels_init(&levels, flame, &leash));
    CHECK_EQ(levels.n_levels, 3);
    CHECK_TEXT(level_text(&levels, 0), "0,10,0,total ");
    CHECK_TEXT(level_text(&levels, 1), "0,6,1,a 0,4,0,d ");
    CHECK_TEXT(level_text(&levels, 2), "1,2,2,b 0,3,3,c 0,4,4,c ");
    CHECK_EQ(levels.total, 10);
    CHECK_EQ(levels.max_self, 4);
    CHECK_EQ(levels.n_names, 5);
    kiln_levels_done(&levels);
    CHECK_EQ(leash.memory, 0);
    kiln_flame_free(flame);
}

TEST(pyroscope_flame, what_was_folded_is_the_last_box)
{
    struct kiln_flame *flame = kiln_test_flame("a;b 5\na;z 1\na;y 1\n", 3);
    struct kiln_levels levels;

    CHECK_OK(kiln_levels_init(&levels, flame, &leash));
    CHECK_TEXT(level_text(&levels, 2), "0,5,5,b 0,2,2,other ");
    kiln_levels_done(&levels);
    kiln_flame_free(flame);
}

TEST(pyroscope_flame, nothing_is_one_empty_box)
{
    struct kiln_flame *flame = kiln_test_flame("", 2);
    struct kiln_levels levels;

    CHECK_OK(kiln_levels_init(&levels, flame, &leash));
    CHECK_EQ(levels.n_levels, 1);
    CHECK_TEXT(level_text(&levels, 0), "0,0,0,total ");
    kiln_levels_done(&levels);
    kiln_flame_free(flame);
}

TEST(pyroscope_flame, a_diff_has_both_sides_in_each_box)
{
    struct kiln_flame *left = kiln_test_flame("a;b 2\nd 1\n", 100);
    struct kiln_flame *right = kiln_test_flame("a;c 3\nd 5\n", 100);
    struct kiln_flame_diff *diff;
    struct kiln_levels levels;

    CHECK_OK(kiln_flame_diff_new(left, right, &(struct kiln_flame_diff_opts){0}, &diff, NULL));
    CHECK_OK(kiln_levels_init_diff(&levels, diff, &leash));
    CHECK_TEXT(level_text(&levels, 0), "0,3,0,0,8,0,total ");
    CHECK_TEXT(level_text(&levels, 1), "0,2,0,0,3,0,a 0,1,1,0,5,5,d ");
    CHECK_TEXT(level_text(&levels, 2), "0,2,2,0,0,0,b 0,0,0,0,3,3,c ");
    CHECK_EQ(levels.ticks[0], 3);
    CHECK_EQ(levels.ticks[1], 8);
    CHECK_EQ(levels.total, 11);
    kiln_levels_done(&levels);
    kiln_flame_diff_free(diff);
    kiln_flame_free(left);
    kiln_flame_free(right);
}

static const char *tree_hex(const char *stacks)
{
    static char text[512];
    struct kiln_flame *flame = kiln_test_flame(stacks, 100);
    struct kiln_pb_out w;
    struct kiln_buf out;
    size_t n = 0;

    kiln_pb_out_init(&w, 16, 4096);
    kiln_buf_init(&out, 4096);
    kiln_tree_bytes_put(flame, &w);
    CHECK_OK(kiln_pb_out_flush(&w, &out));
    for (size_t i = 0; i < out.len; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", (unsigned char)out.ptr[i]);
    text[n] = '\0';
    kiln_buf_done(&out);
    kiln_pb_out_done(&w);
    kiln_flame_free(flame);
    return text;
}

TEST(pyroscope_flame, tree_bytes_have_the_last_child_first)
{
    /* root: no name, 0, one child; a: 1, two children; c: 300, none; b: 2, one child; x: 4 */
    CHECK_TEXT(tree_hex("a;b 2\na;b;x 4\na;c 300\na 1\n"), "000001"
                                                           "01610102"
                                                           "0163ac0200"
                                                           "01620201"
                                                           "01780400");
    CHECK_TEXT(tree_hex(""), "");
}

TEST(pyroscope_flame, no_memory_is_an_error)
{
    struct kiln_flame *flame = kiln_test_flame("a;b 2\na;c 3\nd;c 4\n", 100);
    struct kiln_starved s = {0};
    struct kiln_levels levels;

    while (kiln_test_starve(&s))
        s.r = kiln_levels_init(&levels, flame, &leash);
    CHECK(s.n > 5);
    kiln_levels_done(&levels);
    CHECK_EQ(leash.memory, 0);
    leash.memory_max = 10;
    CHECK_EQ(kiln_levels_init(&levels, flame, &leash), KILN_E_LIMIT);
    leash = (struct kiln_leash){0};
    kiln_flame_free(flame);
}

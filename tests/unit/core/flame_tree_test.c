/* SPDX-License-Identifier: Apache-2.0 */
#include "core/flame_tree.h"

#include "codec/svg.h"
#include "codec/text_tree.h"
#include "drawn.h"
#include "drawn_flame.h"
#include "test.h"

static const struct kiln_flame_facts facts = {
    .type = {.type = {"cpu", 3}, .unit = {"nanoseconds", 11}, .name = {"process_cpu", 11}},
    .count = 12,
    .count_left = 8,
    .duration_ns = 1000,
    .n_profiles = 2,
};

TEST(flame_tree, a_view_of_a_flame_has_its_stacks_again)
{
    struct kiln_flame *flame = kiln_test_flame("main;parse 3\nmain;read 1\nmain 2\n", 0);
    struct kiln_view *view;

    CHECK_OK(kiln_flame_view_new(flame, &facts, &view, NULL));
    CHECK_TEXT(kiln_test_view_text(view), "main 2\nmain;parse 3\nmain;read 1\n");
    CHECK_EQ(view->total, 6);
    CHECK(view->count == 12);
    CHECK(view->rows[0].count == 4);
    CHECK_EQ(view->n_profiles, 2);
    kiln_view_free(view);
    kiln_flame_free(flame);
}

TEST(flame_tree, what_was_folded_is_a_frame_without_a_function)
{
    struct kiln_flame *flame = kiln_test_flame("main;parse 3\nmain;read 1\nmain;x 1\n", 3);
    struct kiln_view *view;

    CHECK_OK(kiln_flame_view_new(flame, &facts, &view, NULL));
    CHECK_TEXT(kiln_test_view_text(view), "main;other 2\nmain;parse 3\n");
    for (uint32_t i = 0; i < view->n_frames; i++)
        CHECK_EQ(view->frames[i].unnamed, kiln_str_eq(view->frames[i].name, KILN_STR("other")));
    kiln_view_free(view);
    kiln_flame_free(flame);
}

TEST(flame_tree, views_are_drawn_as_those_of_a_batch)
{
    struct kiln_flame *flame = kiln_test_flame("main;parse 3\nmain;read 1\n", 0);
    struct kiln_view *view;
    struct kiln_buf out;

    CHECK_OK(kiln_flame_view_new(flame, &facts, &view, NULL));
    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_svg_encode_view(view, NULL, &out, NULL));
    CHECK(kiln_str_contains(kiln_buf_str(&out), KILN_STR("parse")));
    kiln_buf_clear(&out);
    CHECK_OK(kiln_text_tree_encode_view(view, NULL, &out, NULL));
    CHECK(kiln_str_contains(kiln_buf_str(&out), KILN_STR("75.0 %")));
    kiln_buf_done(&out);
    kiln_view_free(view);
    kiln_flame_free(flame);
}

TEST(flame_tree, a_diff_is_a_tree_with_both_numbers_the_left_ones_scaled)
{
    struct kiln_flame *l = kiln_test_flame("main;a 3\nmain;b 1\n", 0);
    struct kiln_flame *r = kiln_test_flame("main;a 5\nmain;c 2\n", 0);
    const struct kiln_flame_diff_opts opts = {.scale = 2};
    const struct kiln_tree_opts by_name = {.order = KILN_TREE_BY_NAME};
    struct kiln_flame_diff *diff;
    struct kiln_view *view;
    struct kiln_tree *tree;
    struct kiln_buf out;

    CHECK_OK(kiln_flame_diff_new(l, r, &opts, &diff, NULL));
    kiln_flame_free(l);
    kiln_flame_free(r);
    CHECK_OK(kiln_flame_diff_view_new(diff, &facts, &view, NULL));
    CHECK_OK(kiln_flame_diff_tree_new(diff, view, &facts, &by_name, &tree, NULL));
    CHECK_TEXT(kiln_test_tree_text(tree), "root 8->7 0->0\n"
                                          "  main 8->7 0->0\n"
                                          "    a 6->5 6->5\n"
                                          "    b 2->0 2->0\n"
                                          "    c 0->2 0->2\n");
    CHECK(tree->is_diff);
    CHECK(tree->nodes[0].count_a == 8 && tree->nodes[0].count_b == 12);
    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_svg_encode(view, tree, NULL, &out, NULL));
    kiln_buf_done(&out);
    kiln_tree_free(tree);
    kiln_view_free(view);
    kiln_flame_diff_free(diff);
}

TEST(flame_tree, a_flame_of_a_view_is_that_of_its_stacks)
{
    static const char stacks[] = "main;b;a 3\nmain;a;a 4\nmain 2\nmain;c 1\n";
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(stacks), NULL);
    struct kiln_flame_wants wants = {.nodes_max = 100, .functions = true};
    struct kiln_flame *flame, *wanted = kiln_test_flame(stacks, 0);
    char text[512];

    CHECK_OK(kiln_flame_of_view(view, &wants, &flame, NULL));
    snprintf(text, sizeof(text), "%s", kiln_test_flame_tree_text(wanted));
    CHECK_TEXT(kiln_test_flame_tree_text(flame), text);
    CHECK_EQ(flame->total, 10);
    CHECK_EQ(flame->nodes_all, 7);
    CHECK_EQ(flame->other, 0);
    CHECK_EQ(flame->n_functions, 4);
    CHECK_STR(flame->names[flame->functions[0].name].name, "a");
    CHECK_EQ(flame->functions[0].self, 7);
    CHECK_EQ(flame->functions[0].total, 7);
    kiln_flame_free(flame);
    kiln_flame_free(wanted);
    kiln_view_free(view);
}

TEST(flame_tree, a_flame_of_a_view_folds_what_is_small)
{
    struct kiln_view *view =
        kiln_test_view(kiln_test_stacks("main;b 3\nmain;a 1\nmain;c 1\n"), NULL);
    struct kiln_flame_wants wants = {.nodes_max = 2};
    struct kiln_flame *flame;

    CHECK_OK(kiln_flame_of_view(view, &wants, &flame, NULL));
    CHECK_TEXT(kiln_test_flame_tree_text(flame), "total 5 0\n main 5 0\n  b 3 3\n  other 2 2\n");
    CHECK_EQ(flame->nodes_all, 5);
    CHECK_EQ(flame->nodes[1].end, 4);
    CHECK(!flame->functions);
    kiln_flame_free(flame);
    wants.memory_bytes = 64;
    CHECK_EQ(kiln_flame_of_view(view, &wants, &flame, NULL), KILN_E_LIMIT);
    kiln_view_free(view);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "drawn.h"
#include "starved.h"
#include "test.h"

/* Draws stacks, makes the tree, compares its text. */
static void check_tree(const char *stacks, struct kiln_tree_opts opts, const char *expected)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(stacks), NULL);
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new(view, &opts, &tree, NULL));
    CHECK_TEXT(kiln_test_tree_text(tree), expected);
    kiln_tree_free(tree);
    kiln_view_free(view);
}

TEST(tree, children_are_sorted_by_total_and_then_by_name)
{
    check_tree("main;parse;read 3\nmain;parse 1\nmain;write 9\nmain;alloc 4\n",
               (struct kiln_tree_opts){0},
               "root 17 0\n"
               "  main 17 0\n"
               "    write 9 9\n"
               "    alloc 4 4\n"
               "    parse 4 1\n"
               "      read 3 3\n");
}

TEST(tree, children_can_be_sorted_by_name)
{
    check_tree("main;b 9\nmain;a 1\n", (struct kiln_tree_opts){.order = KILN_TREE_BY_NAME},
               "root 10 0\n  main 10 0\n    a 1 1\n    b 9 9\n");
}

TEST(tree, from_the_leaf_callers_lie_below_callees)
{
    check_tree("main;parse;read 3\nmain;read 2\n", (struct kiln_tree_opts){.from_leaf = true},
               "root 5 0\n"
               "  read 5 0\n"
               "    parse 3 0\n"
               "      main 3 3\n"
               "    main 2 2\n");
}

TEST(tree, an_empty_stack_is_the_self_of_the_root)
{
    check_tree("- 3\nmain 2\n", (struct kiln_tree_opts){0}, "root 5 3\n  main 2 2\n");
    check_tree("", (struct kiln_tree_opts){0}, "root 0 0\n");
}

TEST(tree, the_smallest_nodes_are_folded_and_totals_stay_exact)
{
    check_tree("main;a;x 50\nmain;b;y 30\nmain;c 5\nmain;d 4\nmain 1\n",
               (struct kiln_tree_opts){.nodes_max = 4},
               "root 90 0\n"
               "  main 90 1\n"
               "    a 50 0\n"
               "      x 50 50\n"
               "    (other) 39 39\n");
}

TEST(tree, nodes_below_a_share_are_folded)
{
    check_tree("main;a;x 90\nmain;b;y 6\nmain;c 4\n", (struct kiln_tree_opts){.min_share = 0.05},
               "root 100 0\n"
               "  main 100 0\n"
               "    a 90 0\n"
               "      x 90 90\n"
               "    b 6 0\n"
               "      y 6 6\n"
               "    (other) 4 4\n");
}

TEST(tree, a_diff_has_both_sides_and_scales_the_base)
{
    struct kiln_view *a = kiln_test_view(kiln_test_stacks("main;parse 4\nmain;old 2\n"), NULL);
    struct kiln_view *b = kiln_test_view(kiln_test_stacks("main;new 7\nmain;parse 5\n"), NULL);
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new_diff(a, b, 2, &(struct kiln_tree_opts){0}, &tree, NULL));
    CHECK_TEXT(kiln_test_tree_text(tree), "root 12->12 0->0\n"
                                          "  main 12->12 0->0\n"
                                          "    parse 8->5 8->5\n"
                                          "    new 0->7 0->7\n"
                                          "    old 4->0 4->0\n");
    kiln_tree_free(tree);
    kiln_view_free(a);
    kiln_view_free(b);
}

TEST(tree, a_diff_can_be_turned_around_and_folded)
{
    struct kiln_view *a = kiln_test_view(kiln_test_stacks("main;x;read 90\nmain;tiny 1\n"), NULL);
    struct kiln_view *b = kiln_test_view(kiln_test_stacks("main;y;read 95\nmain;less 2\n"), NULL);
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new_diff(
        a, b, 1, &(struct kiln_tree_opts){.from_leaf = true, .min_share = 0.1}, &tree, NULL));
    CHECK_TEXT(kiln_test_tree_text(tree), "root 91->97 0->0\n"
                                          "  read 90->95 0->0\n"
                                          "    y 0->95 0->0\n"
                                          "      main 0->95 0->95\n"
                                          "    x 90->0 0->0\n"
                                          "      main 90->0 90->0\n"
                                          "  (other) 1->2 1->2\n");
    CHECK(tree->is_diff);
    kiln_tree_free(tree);
    kiln_view_free(a);
    kiln_view_free(b);
}

TEST(tree, negative_values_are_folded_by_their_size)
{
    check_tree("main;a -50\nmain;b 30\nmain;c 1\n", (struct kiln_tree_opts){.nodes_max = 4},
               "root -19 0\n"
               "  main -19 0\n"
               "    a -50 -50\n"
               "    b 30 30\n"
               "    (other) 1 1\n");
    check_tree("main;a -50\nmain;b 30\nmain;c 1\n", (struct kiln_tree_opts){0},
               "root -19 0\n"
               "  main -19 0\n"
               "    a -50 -50\n"
               "    b 30 30\n"
               "    c 1 1\n");
}

TEST(tree, of_equal_nodes_the_first_ones_stay)
{
    check_tree("a 5\nb 5\nc 5\nd 5\n", (struct kiln_tree_opts){.nodes_max = 3},
               "root 20 0\n  a 5 5\n  b 5 5\n  (other) 10 10\n");
    check_tree("a 5\nb 5\n", (struct kiln_tree_opts){.nodes_max = 1},
               "root 10 0\n  (other) 10 10\n");
}

TEST(tree, totals_saturate)
{
    check_tree("main;a 9223372036854775807\nmain;b 9223372036854775807\n",
               (struct kiln_tree_opts){0},
               "root 9223372036854775807 0\n"
               "  main 9223372036854775807 0\n"
               "    a 9223372036854775807 9223372036854775807\n"
               "    b 9223372036854775807 9223372036854775807\n");
}

TEST(tree, subtrees_parents_and_depths_agree)
{
    struct kiln_view *view =
        kiln_test_view(kiln_test_stacks("m;a;b 3\nm;a;c 2\nm;d 9\nn 1\nm;a 1\n"), NULL);
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new(view, &(struct kiln_tree_opts){0}, &tree, NULL));
    CHECK_EQ(tree->nodes[0].subtree, tree->n_nodes);
    CHECK_EQ(tree->max_depth, 3);
    CHECK_EQ(tree->nodes[0].count_b, 16);
    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct kiln_tree_node *node = &tree->nodes[i];
        const struct kiln_tree_node *parent = &tree->nodes[node->parent];

        CHECK(node->parent < i);
        CHECK(i + node->subtree <= node->parent + parent->subtree);
        CHECK_EQ(node->depth, parent->depth + 1);
    }
    kiln_tree_free(tree);
    kiln_view_free(view);
}

/* A batch of `n` stacks of `depth` functions: a chain that each of them leaves one frame later. */
static struct kiln_batch *deep_batch(uint32_t depth, uint32_t n)
{
    uint32_t *leaf_first = malloc(depth * sizeof(*leaf_first)), functions[2];
    struct kiln_builder *b;
    struct kiln_batch *batch;

    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    kiln_builder_add_profile(b, &(struct kiln_profile){0});
    for (uint32_t i = 0; i < 2; i++) {
        struct kiln_line line = {
            .function = kiln_builder_function(
                b, &(struct kiln_function){
                       .name = kiln_builder_string(b, i ? KILN_STR("pong") : KILN_STR("ping"))})};

        functions[i] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
    }
    for (uint32_t i = 0; i < depth; i++)
        leaf_first[i] = functions[0];
    for (uint32_t i = 0; i < n; i++) {
        leaf_first[i] = functions[1];
        kiln_builder_add_value(b, 0, kiln_builder_stack(b, leaf_first, depth), 0, 1);
    }
    free(leaf_first);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

TEST(tree, the_deepest_stacks_need_no_recursion)
{
    struct kiln_view *view = kiln_test_view(deep_batch(65536, 3), NULL);
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new(view, &(struct kiln_tree_opts){0}, &tree, NULL));
    CHECK_EQ(tree->max_depth, 65536);
    CHECK_EQ(tree->n_nodes, 1 + 65535 + 1 + 2 + 3);
    CHECK_EQ(tree->nodes[65533].total_b, 3);
    kiln_tree_free(tree);
    CHECK_OK(kiln_tree_new(view, &(struct kiln_tree_opts){.from_leaf = true, .nodes_max = 1000},
                           &tree, NULL));
    CHECK_EQ(tree->nodes[0].total_b, 3);
    CHECK(tree->n_nodes <= 2000);
    kiln_tree_free(tree);
    kiln_view_free(view);
}

TEST(tree, memory_is_limited_and_running_out_of_it_leaks_nothing)
{
    struct kiln_view *a = kiln_test_view(kiln_test_stacks("m;a 3\nm;b 2\nm;c 1\n"), NULL);
    struct kiln_view *b = kiln_test_view(kiln_test_stacks("m;a 4\nm;b;d 9\n"), NULL);
    struct kiln_tree_opts opts = {.nodes_max = 3, .min_share = 0.01, .memory_bytes = 64};
    int64_t live = kiln_mem_live();
    struct kiln_tree *tree = NULL;
    struct kiln_starved s = {0};

    CHECK_EQ(kiln_tree_new(a, &opts, &tree, NULL), KILN_E_LIMIT);
    CHECK_EQ(kiln_mem_live(), live);
    opts.memory_bytes = 0;
    while (kiln_test_starve(&s))
        s.r = kiln_tree_new_diff(a, b, 1, &opts, &tree, NULL);
    CHECK(s.n > 10);
    kiln_tree_free(tree);
    CHECK_EQ(kiln_mem_live(), live);
    kiln_view_free(a);
    kiln_view_free(b);
}

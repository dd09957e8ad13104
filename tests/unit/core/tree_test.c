/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "drawn.h"
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

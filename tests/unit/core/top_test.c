/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "drawn.h"
#include "test.h"

static void check_top(const char *stacks, enum kiln_top_order order, const char *expected)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(stacks), NULL);

    CHECK_TEXT(kiln_test_top_text(view, order), expected);
    kiln_view_free(view);
}

TEST(top, self_is_at_the_leaf_and_total_on_the_way)
{
    check_top("main;parse;read 3\nmain;parse 1\nmain;write 9\n", KILN_TOP_BY_SELF,
              "write 9 9\nread 3 3\nparse 1 4\nmain 0 13\n");
    check_top("main;parse;read 3\nmain;parse 1\nmain;write 9\n", KILN_TOP_BY_TOTAL,
              "main 0 13\nwrite 9 9\nparse 1 4\nread 3 3\n");
    check_top("main;b 1\nmain;a 2\n", KILN_TOP_BY_NAME, "a 2 2\nb 1 1\nmain 0 3\n");
}

TEST(top, recursion_counts_once)
{
    check_top("main;fib;fib;fib 5\nmain;fib 1\n", KILN_TOP_BY_SELF, "fib 6 6\nmain 0 6\n");
}

TEST(top, the_same_name_in_other_places_is_one_row)
{
    check_top("a;x 1\nb;x 2\nx;a 4\n", KILN_TOP_BY_TOTAL, "x 3 7\na 4 5\nb 0 2\n");
}

TEST(top, sums_saturate)
{
    check_top("a 9223372036854775807\nb;a 9223372036854775807\n", KILN_TOP_BY_NAME,
              "a 9223372036854775807 9223372036854775807\nb 0 9223372036854775807\n");
}

TEST(top, observations_are_counted_too)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks("main;a;a @1 @2\nmain @3\n"), NULL);
    struct kiln_top_row *rows;
    uint32_t n;

    CHECK_OK(kiln_top(view, KILN_TOP_BY_SELF, &rows, &n));
    CHECK_EQ(n, 2);
    CHECK_EQ(rows[0].count_self, 2);
    CHECK_EQ(rows[0].count_total, 2);
    CHECK_EQ(rows[1].count_self, 1);
    CHECK_EQ(rows[1].count_total, 3);
    kiln_free(rows);
    kiln_view_free(view);
}

TEST(top, of_nothing_is_nothing)
{
    check_top("", KILN_TOP_BY_SELF, "");
    check_top("- 5\n", KILN_TOP_BY_SELF, "");
}

/* ---- sandwich ---- */

static void check_sandwich(const char *stacks, const char *name, const char *callers,
                           const char *callees)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks(stacks), NULL);
    struct kiln_tree *up, *down;

    CHECK_OK(kiln_sandwich(view, kiln_str_of(name), &(struct kiln_tree_opts){0}, &up, &down, NULL));
    CHECK_TEXT(kiln_test_tree_text(up), callers);
    CHECK_TEXT(kiln_test_tree_text(down), callees);
    kiln_tree_free(up);
    kiln_tree_free(down);
    kiln_view_free(view);
}

TEST(sandwich, callers_are_above_and_callees_below)
{
    check_sandwich("main;parse;read 3\nmain;load;read;wait 2\nmain;write 9\n", "^read$",
                   "root 5 0\n"
                   "  read 5 0\n"
                   "    parse 3 0\n"
                   "      main 3 3\n"
                   "    load 2 0\n"
                   "      main 2 2\n",
                   "root 5 0\n"
                   "  read 5 3\n"
                   "    wait 2 2\n");
}

TEST(sandwich, recursion_counts_once_at_the_outermost_call)
{
    check_sandwich("main;fib;fib;fib 4\nmain;fib 1\n", "fib", "root 5 0\n  fib 5 0\n    main 5 5\n",
                   "root 5 0\n  fib 5 1\n    fib 4 0\n      fib 4 4\n");
}

TEST(sandwich, several_names_may_match)
{
    check_sandwich("main;get 1\nmain;put 2\n", "get|put",
                   "root 3 0\n  put 2 0\n    main 2 2\n  get 1 0\n    main 1 1\n",
                   "root 3 0\n  put 2 2\n  get 1 1\n");
    check_sandwich("main;get 1\n", "nothing", "root 0 0\n", "root 0 0\n");
}

TEST(sandwich, a_bad_pattern_is_an_error)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks("main 1\n"), NULL);
    struct kiln_err err = {0};
    struct kiln_tree *up = NULL;

    CHECK_EQ(kiln_sandwich(view, KILN_STR("["), &(struct kiln_tree_opts){0}, &up, NULL, &err),
             KILN_E_PATTERN);
    CHECK_EQ(err.code, KILN_E_PATTERN);
    CHECK(up == NULL);
    kiln_view_free(view);
}

TEST(sandwich, either_half_may_be_left_out)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks("main;get 1\n"), NULL);
    struct kiln_tree *down;

    CHECK_OK(kiln_sandwich(view, KILN_STR("main"), &(struct kiln_tree_opts){0}, NULL, &down, NULL));
    CHECK_EQ(down->n_nodes, 3);
    kiln_tree_free(down);
    kiln_view_free(view);
}

TEST(sandwich, running_out_of_memory_leaks_nothing)
{
    struct kiln_view *view = kiln_test_view(kiln_test_stacks("main;get 1\nrun;put;get 2\n"), NULL);
    int64_t live = kiln_mem_live();

    for (uint64_t n = 1; n < 60; n++) {
        struct kiln_tree *up = NULL, *down = NULL;

        kiln_mem_fail_at(n);
        if (kiln_sandwich(view, KILN_STR("get"), &(struct kiln_tree_opts){0}, &up, &down, NULL) < 0)
            CHECK(up == NULL && down == NULL);
        kiln_mem_fail_at(0);
        kiln_tree_free(up);
        kiln_tree_free(down);
        CHECK_EQ(kiln_mem_live(), live);
    }
    kiln_view_free(view);
}

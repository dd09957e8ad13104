/* SPDX-License-Identifier: Apache-2.0 */
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

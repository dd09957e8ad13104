/* SPDX-License-Identifier: Apache-2.0 */
#include "core/flame_fold.h"

#include <errno.h>
#include <stdlib.h>

#include "drawn_flame.h"
#include "test.h"

static const char *folded(const char *stacks, uint32_t cut_before, uint32_t nodes_max)
{
    struct kiln_flame *flame = kiln_test_flame(stacks, cut_before);
    const char *text;

    CHECK_OK(kiln_flame_fold(flame, nodes_max));
    text = kiln_test_flame_tree_text(flame);
    kiln_flame_free(flame);
    return text;
}

TEST(flame_fold, a_small_flame_stays_as_it_is)
{
    CHECK_TEXT(folded("main;a 3\nmain;b 1\n", 0, 4), "total 4 0\n"
                                                     " main 4 0\n"
                                                     "  a 3 3\n"
                                                     "  b 1 1\n");
}

TEST(flame_fold, of_equal_nodes_the_first_stay_and_totals_are_exact)
{
    CHECK_TEXT(folded("main;a 1\nmain;b 1\nmain;c 1\n", 0, 3), "total 3 0\n"
                                                               " main 3 0\n"
                                                               "  a 1 1\n"
                                                               "  other 2 2\n");
}

TEST(flame_fold, a_node_takes_its_subtree_with_it)
{
    CHECK_TEXT(folded("main;a;x;y 1\nmain;b 5\nmain;b;z 2\nmain 1\n", 0, 3), "total 9 0\n"
                                                                             " main 9 1\n"
                                                                             "  b 7 5\n"
                                                                             "   other 2 2\n"
                                                                             "  other 1 1\n");
}

TEST(flame_fold, what_was_folded_before_is_folded_with_the_rest)
{
    CHECK_TEXT(folded("main;a 4\nmain;b 3\nmain;c 2\nmain;d 1\n", 4, 3), "total 10 0\n"
                                                                         " main 10 0\n"
                                                                         "  a 4 4\n"
                                                                         "  other 6 6\n");
}

TEST(flame_fold, one_node_is_the_root_alone)
{
    CHECK_TEXT(folded("main;a 4\nmain;b 3\n", 0, 1), "total 7 0\n"
                                                     " other 7 7\n");
}

/* Any tree, any limit: as many nodes as were asked for, every total the sum of its parts. */
TEST(flame_fold, sums_stay_sums_in_any_tree)
{
    for (uint32_t seed = 1; seed < 60; seed++) {
        struct kiln_flame *flame;
        char stacks[4096];
        size_t at = 0;
        uint32_t n = 0;

        srand(seed);
        for (int i = 0; i < 60; i++)
            at += (size_t)snprintf(stacks + at, sizeof(stacks) - at, "%c;%c;%c %d\n",
                                   'a' + rand() % 4, 'a' + rand() % 4, 'a' + rand() % 4,
                                   1 + rand() % 3);
        flame = kiln_test_flame(stacks, seed % 2 ? 0 : 30);
        CHECK_OK(kiln_flame_fold(flame, seed % 25 + 1));
        for (uint32_t i = 0; i < flame->n_nodes; i++) {
            const struct kiln_flame_node *node = &flame->nodes[i];
            int64_t sum = node->self;

            n += !flame->other || node->name != flame->other;
            for (uint32_t c = i + 1; c < node->end; c = flame->nodes[c].end) {
                CHECK_EQ(flame->nodes[c].parent, i);
                CHECK_EQ(flame->nodes[c].depth, node->depth + 1);
                sum += flame->nodes[c].total;
            }
            CHECK_EQ(sum, node->total);
        }
        CHECK_EQ(flame->nodes[0].end, flame->n_nodes);
        CHECK_EQ(flame->nodes[0].total, flame->total);
        CHECK(n <= seed % 25 + 1);
        kiln_flame_free(flame);
    }
}

TEST(flame_fold, without_memory_nothing_happens)
{
    for (uint64_t n = 1;; n++) {
        struct kiln_flame *flame = kiln_test_flame("main;a 1\nmain;b 1\nmain;c 1\n", 0);
        int r;

        kiln_mem_fail_at(n);
        r = kiln_flame_fold(flame, 3);
        kiln_mem_fail_at(0);
        if (r == 0) {
            CHECK_EQ(n, 4);
            kiln_flame_free(flame);
            return;
        }
        CHECK_EQ(r, -ENOMEM);
        CHECK_EQ(flame->n_nodes, 5);
        kiln_flame_free(flame);
    }
}

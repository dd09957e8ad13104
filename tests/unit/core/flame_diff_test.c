/* SPDX-License-Identifier: Apache-2.0 */
#include "core/flame_diff.h"

#include <math.h>

#include "core/diff.h"
#include "drawn.h"
#include "drawn_flame.h"
#include "test.h"

/* The diff of two drawings, of flames with at most `nodes` nodes each. */
static struct kiln_flame_diff *diff_of(const char *left, const char *right, uint32_t nodes,
                                       struct kiln_flame_diff_opts opts)
{
    struct kiln_flame *l = kiln_test_flame(left, nodes), *r = kiln_test_flame(right, nodes);
    struct kiln_flame_diff *diff;

    CHECK_OK(kiln_flame_diff_new(l, r, &opts, &diff, NULL));
    kiln_flame_free(l);
    kiln_flame_free(r);
    return diff;
}

static void check_tree(const char *left, const char *right, uint32_t nodes,
                       struct kiln_flame_diff_opts opts, const char *expected)
{
    struct kiln_flame_diff *diff = diff_of(left, right, nodes, opts);

    CHECK_TEXT(kiln_test_flame_diff_text(diff), expected);
    for (uint32_t i = 0; i < diff->n_nodes; i++) {
        CHECK(diff->nodes[i].end > i && diff->nodes[i].end <= diff->n_nodes);
        CHECK(i == 0 || diff->nodes[diff->nodes[i].parent].depth + 1 == diff->nodes[i].depth);
        CHECK(i == 0 || diff->nodes[i].end <= diff->nodes[diff->nodes[i].parent].end);
    }
    kiln_flame_diff_free(diff);
}

TEST(flame_diff, nodes_are_aligned_by_their_names_from_the_root)
{
    check_tree("main;parse 3\nmain;read 1\nmain 2\n", "main;parse;lex 4\nmain;write 5\nidle 1\n", 0,
               (struct kiln_flame_diff_opts){0},
               "total 6->10 0->0\n"
               " idle 0->1 0->1\n"
               " main 6->9 2->0\n"
               "  parse 3->4 3->0\n"
               "   lex 0->4 0->4\n"
               "  read 1->0 1->0\n"
               "  write 0->5 0->5\n");
}

TEST(flame_diff, a_side_may_be_empty)
{
    check_tree("", "main 5\n", 0, (struct kiln_flame_diff_opts){0},
               "total 0->5 0->0\n main 0->5 0->5\n");
    check_tree("main 5\n", "", 0, (struct kiln_flame_diff_opts){0},
               "total 5->0 0->0\n main 5->0 5->0\n");
}

TEST(flame_diff, functions_named_total_and_other_are_not_the_root_and_what_was_folded)
{
    check_tree("total;other 3\na 1\n", "total;other 4\nb 1\n", 3, (struct kiln_flame_diff_opts){0},
               "total 4->5 0->0\n"
               " total 3->4 0->0\n"
               "  other 3->4 3->4\n"
               " other 1->1 1->1\n");
}

TEST(flame_diff, what_one_side_folded_is_folded_on_the_other_side_too)
{
    /* Right keeps total, main and big: its small 2 may be in "other" there, and is not gone. */
    check_tree("main;big 9\nmain;small 2\n", "main;big 9\nmain;small 2\nmain;x 1\n", 3,
               (struct kiln_flame_diff_opts){0},
               "total 11->12 0->0\n"
               " main 11->12 0->0\n"
               "  big 9->9 9->9\n"
               "  other 2->3 2->3\n");
}

TEST(flame_diff, a_node_larger_than_all_that_was_folded_is_really_gone)
{
    check_tree("main;big 9\nmain;old 7\n", "main;big 9\nmain;x 1\nmain;y 1\n", 3,
               (struct kiln_flame_diff_opts){.nodes_max = 4},
               "total 16->11 0->0\n"
               " main 16->11 0->0\n"
               "  big 9->9 9->9\n"
               "  other 7->2 7->2\n");
    check_tree("main;big 9\nmain;old 7\nmain;w 1\n", "main;big 9\nmain;x 1\nmain;y 1\n", 4,
               (struct kiln_flame_diff_opts){0},
               "total 17->11 0->0\n"
               " main 17->11 0->0\n"
               "  big 9->9 9->9\n"
               "  old 7->0 7->0\n"
               "  other 1->2 1->2\n");
}

TEST(flame_diff, the_largest_of_either_side_stay_after_aligning)
{
    check_tree("main;a 9\nmain;b;c 1\nmain;d 2\n", "main;a 1\nmain;b;c 8\nmain;e 2\n", 0,
               (struct kiln_flame_diff_opts){.nodes_max = 5},
               "total 12->11 0->0\n"
               " main 12->11 0->0\n"
               "  a 9->1 9->1\n"
               "  b 1->8 0->0\n"
               "   c 1->8 1->8\n"
               "  other 2->2 2->2\n");
}

TEST(flame_diff, the_left_side_is_scaled_for_what_stays_and_for_changes)
{
    struct kiln_flame_diff *diff =
        diff_of("main;a 50\nmain;b 40\n", "main;a 100\nmain;b 80\nmain;c 60\n", 0,
                (struct kiln_flame_diff_opts){.scale = 2, .count_left = 90, .count_right = 240});

    CHECK(diff->change == 60);
    CHECK(diff->scale == 2);
    CHECK_EQ(diff->total.left, 90);
    CHECK_EQ(diff->n_functions, 4);
    CHECK_STR(diff->names[diff->functions[0].name].name, "c");
    CHECK(diff->functions[0].self_change == 60);
    CHECK(!diff->functions[0].self_is_noise);
    for (uint32_t i = 1; i < 4; i++)
        CHECK(diff->functions[i].self_change == 0 && diff->functions[i].self_is_noise);
    kiln_flame_diff_free(diff);
}

/* The row of a function in a diff of views. */
static const struct kiln_diff_row *row_of(const struct kiln_diff *diff, struct kiln_str name)
{
    for (uint32_t i = 0; i < diff->n_rows; i++) {
        if (kiln_str_eq(diff->rows[i].frame.name, name))
            return &diff->rows[i];
    }
    return NULL;
}

static void check_against_views(const char *left, const char *right, enum kiln_normalize normalize)
{
    struct kiln_view *a = kiln_test_view(kiln_test_stacks(left), NULL);
    struct kiln_view *b = kiln_test_view(kiln_test_stacks(right), NULL);
    struct kiln_diff *plain;
    struct kiln_flame_diff *diff;

    CHECK_OK(kiln_diff_new(a, b, normalize, &plain, NULL));
    diff = diff_of(left, right, 0,
                   (struct kiln_flame_diff_opts){
                       .scale = plain->scale_a,
                       .against_total = plain->normalized == KILN_NORMALIZE_TOTAL,
                       .count_left = a->count,
                       .count_right = b->count,
                   });
    CHECK_EQ(diff->n_functions, plain->n_rows);
    CHECK(fabs(diff->noise - plain->total_noise) < 1e-9 * (1 + plain->total_noise));
    for (uint32_t i = 0; i < diff->n_functions; i++) {
        const struct kiln_flame_diff_function *f = &diff->functions[i];
        const struct kiln_diff_row *row = row_of(plain, diff->names[f->name].name);

        CHECK(row != NULL);
        CHECK_EQ(f->self.right, row->self_b);
        CHECK_EQ(f->total.right, row->total_b);
        CHECK(fabs(f->self_noise - row->self_noise) < 1e-9 * (1 + row->self_noise));
        CHECK(fabs(f->total_noise - row->total_noise) < 1e-9 * (1 + row->total_noise));
        CHECK_EQ(f->self_is_noise, row->self_within_noise);
        CHECK_EQ(f->total_is_noise, row->total_within_noise);
    }
    kiln_flame_diff_free(diff);
    kiln_diff_free(plain);
    kiln_view_free(a);
    kiln_view_free(b);
}

TEST(flame_diff, noise_is_what_a_diff_of_views_says)
{
    static const char left[] = "main;a 500\nmain;b;c 40\nmain;d 2\nmain;a;a 7\n";
    static const char right[] = "main;a 90\nmain;b;c 80\nmain;e 2\nx 3\n";

    check_against_views(left, right, KILN_NORMALIZE_NONE);
    check_against_views(left, right, KILN_NORMALIZE_TOTAL);
}

TEST(flame_diff, no_memory_is_an_ordinary_error)
{
    struct kiln_flame *l = kiln_test_flame("main;a 5\nmain;b 4\n", 3);
    struct kiln_flame *r = kiln_test_flame("main;a 5\nmain;c 4\n", 0);
    const struct kiln_flame_diff_opts opts = {.nodes_max = 3};
    int64_t live = kiln_mem_live();
    int code = -1;

    for (uint64_t n = 1; code < 0; n++) {
        struct kiln_flame_diff *diff = NULL;

        kiln_mem_fail_at(n);
        code = kiln_flame_diff_new(l, r, &opts, &diff, NULL);
        kiln_mem_fail_at(0);
        kiln_flame_diff_free(diff);
        CHECK_EQ(kiln_mem_live(), live);
        CHECK(n < 1000);
    }
    kiln_flame_free(l);
    kiln_flame_free(r);
}

TEST(flame_diff, more_than_it_may_take_is_refused)
{
    struct kiln_flame *l = kiln_test_flame("main;a 5\nmain;b 4\n", 0);
    const struct kiln_flame_diff_opts opts = {.memory_bytes = 512};
    struct kiln_flame_diff *diff = NULL;

    CHECK_EQ(kiln_flame_diff_new(l, l, &opts, &diff, NULL), KILN_E_LIMIT);
    kiln_flame_free(l);
}

/* ---- any flames ---- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Up to 30 stacks of up to five of the six functions a to f. */
static void draw_random(uint32_t *seed, char *text, size_t size)
{
    uint32_t n = next_random(seed) % 30;
    size_t len = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = 1 + next_random(seed) % 5;

        for (uint32_t k = 0; k < depth; k++)
            len += (size_t)snprintf(text + len, size - len, "%s%c", k ? ";" : "",
                                    'a' + (int)(next_random(seed) % 6));
        len += (size_t)snprintf(text + len, size - len, " %u\n", 1 + next_random(seed) % 50);
    }
}

/* Every total is what the node and its children have, on both sides; "other" is last and a leaf. */
static void check_sums(const struct kiln_flame_diff *diff)
{
    for (uint32_t i = 0; i < diff->n_nodes; i++) {
        const struct kiln_flame_diff_node *node = &diff->nodes[i];
        struct kiln_flame_pair sum = node->self;

        for (uint32_t k = i + 1; k < node->end; k = diff->nodes[k].end) {
            const struct kiln_flame_diff_node *child = &diff->nodes[k];

            CHECK_EQ(child->parent, i);
            CHECK(child->name != diff->other || (child->end == node->end && child->end == k + 1));
            sum.left += child->total.left;
            sum.right += child->total.right;
        }
        CHECK_EQ(sum.left, node->total.left);
        CHECK_EQ(sum.right, node->total.right);
    }
    CHECK_EQ(diff->nodes[0].total.left, diff->total.left);
    CHECK_EQ(diff->nodes[0].total.right, diff->total.right);
    CHECK_EQ(diff->nodes[0].end, diff->n_nodes);
}

static uint32_t count_kept(const struct kiln_flame_diff *diff)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < diff->n_nodes; i++)
        n += !diff->other || diff->nodes[i].name != diff->other;
    return n;
}

TEST(flame_diff, sums_stay_sums_however_the_flames_were_cut)
{
    uint32_t seed = 7;
    char left[1024], right[1024];

    for (int round = 0; round < 500; round++) {
        uint32_t cut = next_random(&seed) % 20, nodes_max = next_random(&seed) % 20;
        struct kiln_flame_diff *diff;

        draw_random(&seed, left, sizeof(left));
        draw_random(&seed, right, sizeof(right));
        diff = diff_of(left, right, cut,
                       (struct kiln_flame_diff_opts){.nodes_max = nodes_max, .scale = 1.5});
        check_sums(diff);
        CHECK(nodes_max == 0 || count_kept(diff) <= nodes_max);
        kiln_flame_diff_free(diff);
    }
}

TEST(flame_diff, of_a_flame_and_itself_nothing_changes)
{
    uint32_t seed = 11;
    char text[1024];

    for (int round = 0; round < 200; round++) {
        struct kiln_flame_diff *diff;

        draw_random(&seed, text, sizeof(text));
        diff = diff_of(text, text, next_random(&seed) % 20, (struct kiln_flame_diff_opts){0});
        for (uint32_t i = 0; i < diff->n_nodes; i++)
            CHECK_EQ(diff->nodes[i].total.left, diff->nodes[i].total.right);
        for (uint32_t i = 0; i < diff->n_functions; i++)
            CHECK(diff->functions[i].self_is_noise && diff->functions[i].total_is_noise);
        kiln_flame_diff_free(diff);
    }
}

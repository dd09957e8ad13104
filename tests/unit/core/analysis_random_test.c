/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random batches: what views, trees, tops and diffs say agrees with each other and with the samples
 * added up the slow way.
 */
#include <math.h>

#include "base/mem.h"
#include "base/sat.h"
#include "drawn.h"
#include "random_batch.h"
#include "test.h"

#define SEEDS 60

/* ---- the slow way ---- */

/* Whether the stack has the function, and whether its leaf is the function. */
static void look(const struct kiln_batch *batch, uint32_t stack, struct kiln_str name,
                 bool *ret_has, bool *ret_leaf)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range range = d->stacks[stack];

    *ret_has = *ret_leaf = false;
    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_location *location = &d->locations[d->frames[range.first + i]];

        for (uint32_t k = 0; k < location->n; k++) {
            const struct kiln_function *f = &d->functions[d->lines[location->first + k].function];

            if (!kiln_str_eq(d->strings[f->name ? f->name : f->system_name], name))
                continue;
            *ret_has = true;
            *ret_leaf = *ret_leaf || (i == 0 && k == 0);
        }
    }
}

static void slow_sums(const struct kiln_view *view, const struct kiln_type *types,
                      struct kiln_str name, struct kiln_top_row *ret)
{
    const struct kiln_batch *batch = view->batch;

    *ret = (struct kiln_top_row){0};
    for (uint32_t p = 0; p < batch->n_profiles; p++) {
        const struct kiln_profile *profile = &batch->profiles[p];

        for (uint32_t i = 0; i < profile->n_samples; i++) {
            const struct kiln_sample *sample = &batch->samples[profile->first_sample + i];
            int64_t value = kiln_sat_mul(kiln_sample_total(batch, sample), types[p].scale);
            bool has, leaf;

            if (!kiln_type_equal(&types[p], &view->type))
                continue;
            look(batch, sample->stack, name, &has, &leaf);
            ret->total += has ? value : 0;
            ret->self += leaf ? value : 0;
        }
    }
}

/* ---- invariants ---- */

static void check_tree(const struct kiln_tree *tree, const struct kiln_view *view)
{
    int64_t *children = kiln_calloc(tree->n_nodes, sizeof(*children));

    CHECK(children != NULL);
    CHECK_EQ(tree->nodes[0].total_b, view->total);
    CHECK_EQ(tree->nodes[0].subtree, tree->n_nodes);
    for (uint32_t i = tree->n_nodes - 1; i > 0; i--) {
        const struct kiln_tree_node *node = &tree->nodes[i];

        CHECK_EQ(node->total_b, node->self_b + children[i]);
        CHECK_EQ(node->depth, tree->nodes[node->parent].depth + 1);
        children[node->parent] += node->total_b;
    }
    CHECK_EQ(tree->nodes[0].self_b + children[0], view->total);
    kiln_free(children);
}

static void check_selfs(const struct kiln_tree *tree, const struct kiln_view *view)
{
    struct kiln_top_row *rows;
    uint32_t n;

    CHECK_OK(kiln_top(view, KILN_TOP_BY_NAME, &rows, &n));
    for (uint32_t i = 0; i < n; i++) {
        int64_t self = 0;

        for (uint32_t k = 0; k < tree->n_nodes; k++)
            self += tree->nodes[k].frame == rows[i].frame ? tree->nodes[k].self_b : 0;
        CHECK_EQ(self, rows[i].self);
    }
    kiln_free(rows);
}

static void check_trees(const struct kiln_view *view)
{
    struct kiln_tree_opts opts = {0};
    struct kiln_tree *tree;

    CHECK_OK(kiln_tree_new(view, &opts, &tree, NULL));
    check_tree(tree, view);
    check_selfs(tree, view);
    kiln_tree_free(tree);
    for (opts.nodes_max = 1; opts.nodes_max < 40; opts.nodes_max += 7) {
        opts.from_leaf = !opts.from_leaf;
        opts.min_share = opts.from_leaf ? 0.02 : 0;
        CHECK_OK(kiln_tree_new(view, &opts, &tree, NULL));
        CHECK(tree->n_nodes <= 2 * opts.nodes_max);
        check_tree(tree, view);
        kiln_tree_free(tree);
    }
}

/* Every named function, against the samples. */
static void check_top(const struct kiln_view *view)
{
    struct kiln_top_row *rows, slow;
    struct kiln_type *types;
    uint32_t n;

    CHECK_OK(kiln_types_of_batch(view->batch, false, &types));
    CHECK_OK(kiln_top(view, KILN_TOP_BY_SELF, &rows, &n));
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_frame *frame = &view->frames[rows[i].frame];

        if (frame->unnamed)
            continue;
        slow_sums(view, types, frame->name, &slow);
        CHECK_EQ(rows[i].self, slow.self);
        CHECK_EQ(rows[i].total, slow.total);
    }
    kiln_free(rows);
    kiln_free(types);
}

static struct kiln_view *random_view(uint64_t seed, const struct kiln_view_opts *opts)
{
    struct kiln_batch *batch = random_batch(&(struct random_opts){.seed = seed, .samples = 40});
    struct kiln_view *view = NULL;

    CHECK(batch != NULL);
    if (batch->n_profiles)
        CHECK_OK(kiln_view_new(batch, opts, &view, NULL));
    kiln_batch_unref(batch);
    return view;
}

TEST(random, tops_and_trees_agree_with_the_samples)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct kiln_view *view = random_view(seed, &(struct kiln_view_opts){0});

        if (!view)
            continue;
        check_top(view);
        check_trees(view);
        kiln_view_free(view);
    }
}

TEST(random, every_granularity_has_the_same_total)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        int64_t total = 0;

        for (int g = KILN_BY_FUNCTION; g <= KILN_BY_ADDRESS; g++) {
            struct kiln_view_opts opts = {.granularity = (enum kiln_granularity)g};
            struct kiln_view *view = random_view(seed, &opts);

            if (!view)
                break;
            if (g == KILN_BY_FUNCTION)
                total = view->total;
            CHECK_EQ(view->total, total);
            check_trees(view);
            kiln_view_free(view);
        }
    }
}

TEST(random, focus_and_ignore_part_the_whole)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct kiln_str pattern = KILN_STR("[a-m]$");
        struct kiln_view *with = random_view(seed, &(struct kiln_view_opts){.focus = pattern});
        struct kiln_view *without = random_view(seed, &(struct kiln_view_opts){.ignore = pattern});

        if (with) {
            CHECK_EQ(with->total + without->total, with->total_unfiltered);
            CHECK_EQ(with->total_unfiltered, without->total_unfiltered);
        }
        kiln_view_free(with);
        kiln_view_free(without);
    }
}

TEST(random, a_view_compared_with_itself_has_not_changed)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct kiln_view *view = random_view(seed, &(struct kiln_view_opts){0});
        struct kiln_diff *diff;
        struct kiln_tree *tree;

        if (!view)
            continue;
        CHECK_OK(kiln_diff_new(view, view, KILN_NORMALIZE_TOTAL, &diff, NULL));
        for (uint32_t i = 0; i < diff->n_rows; i++) {
            CHECK(diff->rows[i].self_within_noise && diff->rows[i].total_within_noise);
            CHECK(diff->rows[i].self_a == (double)diff->rows[i].self_b);
        }
        kiln_diff_free(diff);
        CHECK_OK(kiln_tree_new_diff(view, view, 1, &(struct kiln_tree_opts){0}, &tree, NULL));
        for (uint32_t i = 0; i < tree->n_nodes; i++)
            CHECK_EQ(tree->nodes[i].total_a, tree->nodes[i].total_b);
        check_tree(tree, view);
        kiln_tree_free(tree);
        kiln_view_free(view);
    }
}

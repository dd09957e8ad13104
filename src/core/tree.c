/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of whole views; tree_grow.c makes a tree out of paths.
 */
#include <errno.h>

#include "base/sat.h"
#include "core/pair.h"
#include "core/tree_int.h"

void kiln_tree_free(struct kiln_tree *tree)
{
    if (!tree)
        return;
    kiln_free(tree->owned_frames);
    kiln_free(tree->nodes);
    kiln_free(tree);
}

static void add_rows(struct kiln_grower *g, const struct kiln_view *view, bool from_leaf)
{
    for (uint32_t i = 0; i < view->n_rows; i++) {
        const struct kiln_view_row *row = &view->rows[i];
        const struct kiln_tree_path path = {view->path + row->first, row->n, 0};
        const struct kiln_tree_weight weight = {.b = row->value, .count_b = row->count};

        if (from_leaf)
            kiln_grower_copy(g, &path, NULL, true, &weight);
        else
            kiln_grower_add(g, path.frames, path.n, &weight);
    }
}

int kiln_tree_new(const struct kiln_view *view, const struct kiln_tree_opts *opts,
                  struct kiln_tree **ret_tree, struct kiln_err *err)
{
    struct kiln_grower g;
    int r;

    r = kiln_grower_init(&g, opts->memory_bytes, view->n_rows, opts->from_leaf ? view->n_path : 0);
    if (r == 0) {
        add_rows(&g, view, opts->from_leaf);
        r = kiln_grower_finish(&g, view->frames, view->n_frames, opts, ret_tree);
    }
    kiln_grower_done(&g);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* ---- two views ---- */

struct side {
    const struct kiln_view *view;
    const uint32_t *map; /* its frames -> those of the pair */
    double scale;
    bool is_a;
};

static struct kiln_tree_weight weight_of(const struct side *side, const struct kiln_view_row *row)
{
    if (!side->is_a)
        return (struct kiln_tree_weight){.b = row->value, .count_b = row->count};
    return (struct kiln_tree_weight){
        .a = side->scale == 1 ? row->value : kiln_sat_round((double)row->value * side->scale),
        .count_a = row->count,
    };
}

static void add_side(struct kiln_grower *g, const struct side *side, bool from_leaf)
{
    for (uint32_t i = 0; i < side->view->n_rows; i++) {
        const struct kiln_view_row *row = &side->view->rows[i];
        const struct kiln_tree_path path = {side->view->path + row->first, row->n, 0};
        const struct kiln_tree_weight weight = weight_of(side, row);

        kiln_grower_copy(g, &path, side->map, from_leaf, &weight);
    }
}

static int grow_pair(const struct kiln_pair *pair, const struct side sides[2],
                     const struct kiln_tree_opts *opts, struct kiln_tree **ret_tree)
{
    const struct kiln_view *x = sides[0].view, *y = sides[1].view;
    struct kiln_grower g;
    int r;

    r = kiln_grower_init(&g, opts->memory_bytes, (uint64_t)x->n_rows + y->n_rows,
                         (uint64_t)x->n_path + y->n_path);
    if (r == 0) {
        add_side(&g, &sides[0], opts->from_leaf);
        add_side(&g, &sides[1], opts->from_leaf);
        r = kiln_grower_finish(&g, pair->frames, pair->n_frames, opts, ret_tree);
    }
    kiln_grower_done(&g);
    return r;
}

int kiln_tree_new_diff(const struct kiln_view *a, const struct kiln_view *b, double scale_a,
                       const struct kiln_tree_opts *opts, struct kiln_tree **ret_tree,
                       struct kiln_err *err)
{
    struct kiln_tree *tree = NULL;
    struct kiln_pair pair;
    int r;

    r = kiln_pair_init(&pair, a, b);
    if (r == 0) {
        const struct side sides[2] = {{b, pair.map_b, 1, false}, {a, pair.map_a, scale_a, true}};

        r = grow_pair(&pair, sides, opts, &tree);
        if (r == 0 && !tree->owned_frames) {
            tree->frames = tree->owned_frames = pair.frames;
            pair.frames = NULL;
        }
        kiln_pair_done(&pair);
    }
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    tree->is_diff = true;
    *ret_tree = tree;
    return 0;
}

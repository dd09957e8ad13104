/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of whole views; tree_grow.c has how a tree grows.
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

static int add_path(struct kiln_grower *g, const uint32_t *path, uint32_t n, bool from_leaf,
                    const struct kiln_weight *weight)
{
    if (from_leaf && n)
        return kiln_grower_add(g, path + n - 1, n, -1, weight);
    return kiln_grower_add(g, path, n, 1, weight);
}

static int add_rows(struct kiln_grower *g, const struct kiln_view *view, bool from_leaf)
{
    int r = 0;

    for (uint32_t i = 0; i < view->n_rows && r == 0; i++) {
        const struct kiln_view_row *row = &view->rows[i];

        r = add_path(g, view->path + row->first, row->n, from_leaf,
                     &(struct kiln_weight){.b = row->value, .count_b = row->count});
    }
    return r;
}

int kiln_tree_new(const struct kiln_view *view, const struct kiln_tree_opts *opts,
                  struct kiln_tree **ret_tree, struct kiln_err *err)
{
    struct kiln_grower g;
    int r;

    r = kiln_grower_init(&g, opts->memory_bytes);
    if (r == 0)
        r = add_rows(&g, view, opts->from_leaf);
    if (r == 0)
        r = kiln_grower_finish(&g, view->frames, view->n_frames, opts, ret_tree);
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

static struct kiln_weight weight_of(const struct side *side, const struct kiln_view_row *row)
{
    if (!side->is_a)
        return (struct kiln_weight){.b = row->value, .count_b = row->count};
    return (struct kiln_weight){
        .a = side->scale == 1 ? row->value : kiln_sat_round((double)row->value * side->scale),
        .count_a = row->count,
    };
}

static int add_side(struct kiln_grower *g, const struct side *side, bool from_leaf)
{
    uint32_t *path = NULL, cap = 0;
    int r = 0;

    for (uint32_t i = 0; i < side->view->n_rows && r == 0; i++) {
        const struct kiln_view_row *row = &side->view->rows[i];
        struct kiln_weight weight = weight_of(side, row);

        r = kiln_grow(&g->budget, (void **)&path, &cap, row->n, sizeof(*path), UINT32_MAX);
        if (r < 0)
            break;
        for (uint32_t k = 0; k < row->n; k++)
            path[k] = side->map[side->view->path[row->first + k]];
        r = add_path(g, path, row->n, from_leaf, &weight);
    }
    kiln_array_free(&g->budget, (void **)&path, &cap, sizeof(*path));
    return r;
}

static int grow_pair(const struct kiln_pair *pair, const struct side sides[2],
                     const struct kiln_tree_opts *opts, struct kiln_tree **ret_tree)
{
    struct kiln_grower g;
    int r;

    r = kiln_grower_init(&g, opts->memory_bytes);
    for (int i = 0; i < 2 && r == 0; i++)
        r = add_side(&g, &sides[i], opts->from_leaf);
    if (r == 0)
        r = kiln_grower_finish(&g, pair->frames, pair->n_frames, opts, ret_tree);
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

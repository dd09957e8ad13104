/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view as a flame: name 0 is the root's, name i + 1 that of frame i, and the last that of what
 * was folded.  The tree has its children in the order of names already.
 */
#include <errno.h>

#include "core/flame_tree.h"
#include "core/top.h"

#define MEMORY_BYTES ((size_t)1 << 30)

static int make_names(struct kiln_flame *flame, const struct kiln_view *view)
{
    size_t n = (size_t)view->n_frames + 2, bytes = n * sizeof(*flame->names);
    int r = kiln_budget_take(&flame->budget, bytes);

    if (r < 0)
        return r;
    flame->names = kiln_malloc(bytes);
    if (!flame->names)
        return -ENOMEM;
    flame->n_names = view->n_frames + 1;
    flame->names[0] = (struct kiln_flame_name){KILN_STR("total"), KILN_STR(""), KILN_STR(""),
                                               KILN_STR(""), false};
    for (uint32_t i = 0; i < view->n_frames; i++) {
        const struct kiln_frame *frame = &view->frames[i];

        flame->names[i + 1] = (struct kiln_flame_name){frame->name, frame->file, frame->module,
                                                       frame->kind, frame->inlined};
    }
    return 0;
}

/* The number of the name of what was folded, which has the frame behind those of the view. */
static void name_other(struct kiln_flame *flame)
{
    flame->other = flame->n_names;
    flame->names[flame->n_names++] = (struct kiln_flame_name){KILN_STR("other"), KILN_STR(""),
                                                              KILN_STR(""), KILN_STR(""), false};
}

static void copy_nodes(struct kiln_flame *flame, const struct kiln_tree *tree)
{
    for (uint32_t i = 0; i < tree->n_nodes; i++) {
        const struct kiln_tree_node *node = &tree->nodes[i];

        flame->nodes[i] = (struct kiln_flame_node){
            .name = node->frame == KILN_TREE_ROOT ? 0 : node->frame + 1,
            .parent = node->parent,
            .end = i + node->subtree,
            .depth = node->depth,
            .self = node->self_b,
            .total = node->total_b,
        };
    }
    flame->n_nodes = tree->n_nodes;
    flame->nodes_all = tree->n_all;
}

static int make_nodes(struct kiln_flame *flame, const struct kiln_view *view, uint32_t nodes_max,
                      struct kiln_err *err)
{
    const struct kiln_tree_opts opts = {
        .order = KILN_TREE_BY_NAME,
        .nodes_max = nodes_max < UINT32_MAX ? nodes_max + 1 : nodes_max,
        .memory_bytes = flame->budget.limit - flame->budget.used,
    };
    struct kiln_tree *tree;
    size_t bytes;
    int r = kiln_tree_new(view, &opts, &tree, err);

    if (r < 0)
        return r;
    bytes = (size_t)tree->n_nodes * sizeof(*flame->nodes);
    r = kiln_budget_take(&flame->budget, bytes);
    if (r == 0)
        flame->nodes = kiln_malloc(bytes);
    if (r == 0 && !flame->nodes)
        r = -ENOMEM;
    if (r == 0) {
        copy_nodes(flame, tree);
        if (tree->owned_frames)
            name_other(flame);
    }
    kiln_tree_free(tree);
    return r;
}

static int make_functions(struct kiln_flame *flame, const struct kiln_view *view)
{
    size_t bytes = (size_t)view->n_frames * sizeof(*flame->functions);
    struct kiln_top_row *rows;
    uint32_t n;
    int r = kiln_budget_take(&flame->budget, bytes);

    if (r == 0)
        r = kiln_top(view, KILN_TOP_BY_SELF, &rows, &n);
    if (r < 0)
        return r;
    flame->functions = kiln_malloc(bytes ? bytes : 1);
    for (uint32_t i = 0; flame->functions && i < n; i++)
        flame->functions[i] =
            (struct kiln_flame_function){rows[i].frame + 1, rows[i].self, rows[i].total};
    flame->n_functions = flame->functions ? n : 0;
    kiln_free(rows);
    return flame->functions ? 0 : -ENOMEM;
}

int kiln_flame_of_view(const struct kiln_view *view, const struct kiln_flame_wants *wants,
                       struct kiln_flame **ret_flame, struct kiln_err *err)
{
    struct kiln_flame *flame = kiln_calloc(1, sizeof(*flame));
    int r;

    if (!flame)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    flame->budget.limit = wants->memory_bytes ? wants->memory_bytes : MEMORY_BYTES;
    kiln_arena_init(&flame->arena, &flame->budget);
    flame->total = view->total;
    r = make_names(flame, view);
    if (r == 0 && wants->functions)
        r = make_functions(flame, view);
    if (r == 0 && wants->nodes_max)
        r = make_nodes(flame, view, wants->nodes_max, err);
    if (r < 0) {
        kiln_flame_free(flame);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_flame = flame;
    return 0;
}

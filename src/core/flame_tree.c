/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node with something of its own is a row: its path is that of the nodes above it, which a walk
 * in preorder has at hand.  Frame i is name i + 1, for the first name is the root's.
 */
#include "core/flame_tree.h"

#include <errno.h>
#include <math.h>

#include "base/sat.h"
#include "core/tree_int.h"
#include "core/view_int.h"

/* A node of either kind. */
struct item {
    uint32_t name, depth;
    struct kiln_flame_pair self;
};

struct source {
    const struct kiln_flame_name *names;
    const struct kiln_flame_node *nodes;
    const struct kiln_flame_diff_node *diff_nodes;
    uint32_t n_names, n_nodes, other;
    int64_t total;
};

static struct item item_at(const struct source *s, uint32_t i)
{
    if (s->nodes)
        return (struct item){s->nodes[i].name, s->nodes[i].depth, {0, s->nodes[i].self}};
    return (struct item){s->diff_nodes[i].name, s->diff_nodes[i].depth, s->diff_nodes[i].self};
}

/* ---- views ---- */

static int make_frames(struct kiln_view_box *box, const struct source *s)
{
    struct kiln_view *view = &box->view;
    uint32_t n = s->n_names ? s->n_names - 1 : 0;
    int r = kiln_reserve(&box->budget, (void **)&view->frames, &box->frames_cap, (uint64_t)n + 1,
                         sizeof(*view->frames), UINT32_MAX);

    for (uint32_t i = 0; i < n && r == 0; i++) {
        const struct kiln_flame_name *name = &s->names[i + 1];
        bool other = s->other == i + 1;

        view->frames[i] = (struct kiln_frame){
            .name = name->name.len ? name->name : KILN_STR("(no name)"),
            .function = other ? KILN_STR("") : name->name,
            .file = name->file,
            .module = name->module,
            .kind = name->kind,
            .unnamed = other || !name->name.len,
        };
        view->n_frames++;
    }
    return r;
}

/* Rows and the length of their paths; `left` too: rows of either side. */
static void count_rows(const struct source *s, bool left, uint64_t *ret_rows, uint64_t *ret_path,
                       uint32_t *ret_depth)
{
    *ret_rows = *ret_path = *ret_depth = 0;
    for (uint32_t i = 0; i < s->n_nodes; i++) {
        struct item item = item_at(s, i);

        *ret_depth = item.depth > *ret_depth ? item.depth : *ret_depth;
        if (!item.self.right && !(left && item.self.left))
            continue;
        *ret_rows += 1;
        *ret_path += item.depth;
    }
}

/* Keeps the frames from the root to the node at hand. */
static void step(uint32_t *spine, const struct item *item)
{
    if (item->depth)
        spine[item->depth - 1] = item->name - 1;
}

static double share_of(double count, int64_t value, int64_t total)
{
    return total ? count * fabs((double)value / (double)total) : 0;
}

static int make_rows(struct kiln_view_box *box, const struct source *s, double count)
{
    struct kiln_view *view = &box->view;
    uint64_t n_rows, n_path;
    uint32_t depth, spine_cap = 0, *spine = NULL;
    int r;

    count_rows(s, false, &n_rows, &n_path, &depth);
    r = kiln_reserve(&box->budget, (void **)&view->rows, &box->rows_cap, n_rows + 1,
                     sizeof(*view->rows), UINT32_MAX);
    if (r == 0)
        r = kiln_reserve(&box->budget, (void **)&view->path, &box->path_cap, n_path + 1,
                         sizeof(*view->path), UINT32_MAX);
    if (r == 0)
        r = kiln_reserve(&box->budget, (void **)&spine, &spine_cap, (uint64_t)depth + 1,
                         sizeof(*spine), UINT32_MAX);
    for (uint32_t i = 0; i < s->n_nodes && r == 0; i++) {
        struct item item = item_at(s, i);

        step(spine, &item);
        if (!item.self.right)
            continue;
        memcpy(view->path + view->n_path, spine, item.depth * sizeof(*spine));
        view->rows[view->n_rows++] = (struct kiln_view_row){
            .first = view->n_path,
            .n = item.depth,
            .value = item.self.right,
            .count = share_of(count, item.self.right, s->total),
        };
        view->n_path += item.depth;
    }
    kiln_array_free(&box->budget, (void **)&spine, &spine_cap, sizeof(*spine));
    return r;
}

static int view_new(const struct source *s, const struct kiln_flame_facts *facts,
                    struct kiln_view **ret_view, struct kiln_err *err)
{
    struct kiln_view_box *box = kiln_calloc(1, sizeof(*box));
    int r;

    if (!box)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    box->budget.limit = facts->memory_bytes ? facts->memory_bytes : KILN_VIEW_MEMORY_BYTES;
    kiln_arena_init(&box->arena, &box->budget);
    box->view.type = facts->type;
    box->view.total = box->view.total_unfiltered = s->total;
    box->view.count = facts->count;
    box->view.time_ns = facts->time_ns;
    box->view.duration_ns = facts->duration_ns;
    box->view.n_profiles = facts->n_profiles;
    r = make_frames(box, s);
    if (r == 0)
        r = make_rows(box, s, facts->count);
    if (r < 0) {
        kiln_view_free(&box->view);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_view = &box->view;
    return 0;
}

int kiln_flame_view_new(const struct kiln_flame *flame, const struct kiln_flame_facts *facts,
                        struct kiln_view **ret_view, struct kiln_err *err)
{
    const struct source source = {
        .names = flame->names,
        .nodes = flame->nodes,
        .n_names = flame->n_names,
        .n_nodes = flame->n_nodes,
        .other = flame->other,
        .total = flame->total,
    };

    return view_new(&source, facts, ret_view, err);
}

static struct source source_of_diff(const struct kiln_flame_diff *diff)
{
    return (struct source){
        .names = diff->names,
        .diff_nodes = diff->nodes,
        .n_names = diff->n_names,
        .n_nodes = diff->n_nodes,
        .other = diff->other,
        .total = diff->total.right,
    };
}

int kiln_flame_diff_view_new(const struct kiln_flame_diff *diff,
                             const struct kiln_flame_facts *facts, struct kiln_view **ret_view,
                             struct kiln_err *err)
{
    const struct source source = source_of_diff(diff);

    return view_new(&source, facts, ret_view, err);
}

/* ---- trees of diffs ---- */

static void add_paths(struct kiln_grower *g, const struct kiln_flame_diff *diff,
                      const struct kiln_flame_facts *facts, uint32_t *spine, bool from_leaf)
{
    const struct source source = source_of_diff(diff);

    for (uint32_t i = 0; i < source.n_nodes; i++) {
        struct item item = item_at(&source, i);
        struct kiln_tree_path path = {spine, item.depth, 0};
        struct kiln_tree_weight weight = {
            .a = kiln_sat_round((double)item.self.left * diff->scale),
            .b = item.self.right,
            .count_a = share_of(facts->count_left, item.self.left, diff->total.left),
            .count_b = share_of(facts->count, item.self.right, diff->total.right),
        };

        step(spine, &item);
        if (item.self.left || item.self.right)
            kiln_grower_copy(g, &path, NULL, from_leaf, &weight);
    }
}

int kiln_flame_diff_tree_new(const struct kiln_flame_diff *diff, const struct kiln_view *view,
                             const struct kiln_flame_facts *facts,
                             const struct kiln_tree_opts *opts, struct kiln_tree **ret_tree,
                             struct kiln_err *err)
{
    const struct source source = source_of_diff(diff);
    struct kiln_tree *tree = NULL;
    struct kiln_grower g;
    uint64_t n_rows, n_path;
    uint32_t depth, *spine;
    int r;

    count_rows(&source, true, &n_rows, &n_path, &depth);
    spine = kiln_calloc((size_t)depth + 1, sizeof(*spine));
    if (!spine)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_grower_init(&g, opts->memory_bytes, n_rows, n_path);
    if (r == 0) {
        add_paths(&g, diff, facts, spine, opts->from_leaf);
        r = kiln_grower_finish(&g, view->frames, view->n_frames, opts, &tree);
    }
    kiln_grower_done(&g);
    kiln_free(spine);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    tree->is_diff = true;
    *ret_tree = tree;
    return 0;
}

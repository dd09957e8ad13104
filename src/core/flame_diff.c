/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of both flames become one table.  Nodes: siblings stand in the order of their names, so two
 * lists of siblings are merged like two sorted lists, with a stack for the lists that are still
 * open; the result is all nodes in preorder.  Then nodes beyond the nodes_max largest, and what was
 * folded before, are folded into "other" in one pass.
 *
 * The observations behind a part of a flame are not known; they are taken to be its share of all.
 */
#include "core/flame_diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/sat.h"
#include "core/intern.h"
#include "core/noise.h"

#define MEMORY_BYTES ((size_t)1 << 30)
#define NODES_MAX    (UINT32_MAX / 2)

/* Siblings that are still to be merged; positions of nodes, l_end behind the last. */
struct open_list {
    uint32_t l, l_end, r, r_end;
    uint32_t parent;
    int64_t l_other, r_other; /* what a side has folded here */
};

struct making {
    struct kiln_flame_diff *diff;
    const struct kiln_flame *left, *right;
    uint32_t *map_left, *map_right; /* their names -> ours */
    struct kiln_intern names;
    struct open_list *stack;
    double *sizes;
    struct kiln_noise_side whole_left, whole_right;
    uint32_t n_stack, names_cap, nodes_cap, functions_cap, map_left_cap, map_right_cap, stack_cap;
    uint32_t sizes_cap;
};

/* ---- names ---- */

static uint32_t find_name(const struct making *m, uint64_t hash, struct kiln_str name)
{
    for (struct kiln_probe p = kiln_intern_probe(&m->names, hash);
         kiln_intern_next(&m->names, &p);) {
        if (kiln_str_eq(m->diff->names[p.entry].name, name))
            return p.entry;
    }
    return UINT32_MAX;
}

static int copy_name(struct kiln_flame_diff *diff, const struct kiln_flame_name *from)
{
    struct kiln_flame_name *to = &diff->names[diff->n_names];

    *to = (struct kiln_flame_name){
        .name = kiln_arena_copy(&diff->arena, from->name),
        .file = kiln_arena_copy(&diff->arena, from->file),
        .module = kiln_arena_copy(&diff->arena, from->module),
        .kind = kiln_arena_copy(&diff->arena, from->kind),
        .inlined = from->inlined,
    };
    if (!to->name.ptr || !to->file.ptr || !to->module.ptr || !to->kind.ptr)
        return -ENOMEM;
    diff->n_names++;
    return 0;
}

static int add_name(struct making *m, const struct kiln_flame_name *from, uint32_t *ret)
{
    uint64_t hash = kiln_hash(from->name.ptr, from->name.len);
    uint32_t found = find_name(m, hash, from->name);
    int r;

    if (found == UINT32_MAX) {
        found = m->diff->n_names;
        r = kiln_grow(&m->diff->budget, (void **)&m->diff->names, &m->names_cap,
                      (uint64_t)found + 1, sizeof(*m->diff->names), NODES_MAX);
        if (r == 0)
            r = kiln_intern_add(&m->names, &m->diff->budget, hash, found);
        if (r == 0)
            r = copy_name(m->diff, from);
        if (r < 0)
            return r;
    }
    *ret = found;
    return 0;
}

/* [0] is "total" whatever a function is called: the root is never looked for. */
static int add_root(struct making *m)
{
    const struct kiln_flame_name total = {.name = KILN_STR("total")};
    int r = kiln_grow(&m->diff->budget, (void **)&m->diff->names, &m->names_cap, 1,
                      sizeof(*m->diff->names), NODES_MAX);

    return r < 0 ? r : copy_name(m->diff, &total);
}

/* "other" is nobody's function either. */
static int need_other(struct making *m)
{
    const struct kiln_flame_name other = {.name = KILN_STR("other")};
    int r = 0;

    if (m->diff->other)
        return 0;
    r = kiln_grow(&m->diff->budget, (void **)&m->diff->names, &m->names_cap,
                  (uint64_t)m->diff->n_names + 1, sizeof(*m->diff->names), NODES_MAX);
    if (r == 0)
        r = copy_name(m->diff, &other);
    if (r == 0)
        m->diff->other = m->diff->n_names - 1;
    return r;
}

static int map_names(struct making *m, const struct kiln_flame *flame, uint32_t **map,
                     uint32_t *cap)
{
    int r =
        kiln_reserve(&m->diff->budget, (void **)map, cap, flame->n_names, sizeof(**map), NODES_MAX);

    for (uint32_t i = 0; i < flame->n_names && r == 0; i++) {
        if (i == 0)
            (*map)[i] = 0;
        else if (i == flame->other && (r = need_other(m)) == 0)
            (*map)[i] = m->diff->other;
        else if (r == 0)
            r = add_name(m, &flame->names[i], &(*map)[i]);
    }
    return r;
}

/* ---- nodes ---- */

static int add_node(struct making *m, const struct kiln_flame_diff_node *node)
{
    struct kiln_flame_diff *diff = m->diff;
    int r = kiln_grow(&diff->budget, (void **)&diff->nodes, &m->nodes_cap,
                      (uint64_t)diff->n_nodes + 1, sizeof(*node), NODES_MAX);

    if (r == 0)
        diff->nodes[diff->n_nodes++] = *node;
    return r;
}

/* The total of what was folded among siblings: it is the last of them. */
static int64_t folded_among(const struct kiln_flame *flame, uint32_t at, uint32_t end)
{
    for (; flame->other && at < end; at = flame->nodes[at].end) {
        if (flame->nodes[at].name == flame->other)
            return flame->nodes[at].total;
    }
    return 0;
}

static int push(struct making *m, struct open_list list)
{
    int r = kiln_grow(&m->diff->budget, (void **)&m->stack, &m->stack_cap, (uint64_t)m->n_stack + 1,
                      sizeof(list), NODES_MAX);

    if (r < 0)
        return r;
    list.l_other = folded_among(m->left, list.l, list.l_end);
    list.r_other = folded_among(m->right, list.r, list.r_end);
    m->stack[m->n_stack++] = list;
    return 0;
}

/* Which of two siblings comes first: below zero the left one; zero: they are the same. */
static int compare_siblings(const struct making *m, const struct open_list *list)
{
    const struct kiln_flame_node *l = &m->left->nodes[list->l], *r = &m->right->nodes[list->r];
    bool l_other, r_other;

    if (list->l == list->l_end || list->r == list->r_end)
        return list->l == list->l_end ? 1 : -1;
    l_other = m->left->other && l->name == m->left->other;
    r_other = m->right->other && r->name == m->right->other;
    if (l_other || r_other)
        return l_other - r_other;
    if (m->map_left[l->name] == m->map_right[r->name])
        return 0;
    return kiln_str_cmp(m->left->names[l->name].name, m->right->names[r->name].name);
}

/* A node that one side lacks, and that may be in what that side has folded. */
static bool may_be_folded(const struct making *m, const struct kiln_flame_node *l,
                          const struct kiln_flame_node *r, const struct open_list *list)
{
    double scale = m->diff->scale;

    if (l && r)
        return false;
    if (l)
        return list->r_other > 0 && (double)l->total * scale <= (double)list->r_other;
    return list->l_other > 0 && (double)r->total <= (double)list->l_other * scale;
}

/* Takes the next node off the list on top of the stack. */
static int merge_next(struct making *m)
{
    struct open_list *list = &m->stack[m->n_stack - 1], below = {0};
    const struct kiln_flame_node *l = NULL, *r = NULL;
    struct kiln_flame_diff_node node = {.parent = list->parent};
    int order = compare_siblings(m, list), code;

    node.depth = m->diff->nodes[list->parent].depth + 1;
    if (order <= 0) {
        l = &m->left->nodes[list->l];
        below.l = list->l + 1;
        below.l_end = list->l = l->end;
        node.name = m->map_left[l->name];
        node.self.left = l->self;
        node.total.left = l->total;
    }
    if (order >= 0) {
        r = &m->right->nodes[list->r];
        below.r = list->r + 1;
        below.r_end = list->r = r->end;
        node.name = m->map_right[r->name];
        node.self.right = r->self;
        node.total.right = r->total;
    }
    if (may_be_folded(m, l, r, list)) {
        node.name = m->diff->other;
        node.self = node.total;
        below = (struct open_list){0};
    }
    code = add_node(m, &node);
    below.parent = m->diff->n_nodes - 1;
    return code < 0 ? code : push(m, below);
}

static int merge_nodes(struct making *m)
{
    const struct kiln_flame_node *l = &m->left->nodes[0], *r = &m->right->nodes[0];
    const struct kiln_flame_diff_node root = {
        .self = {l->self, r->self},
        .total = {l->total, r->total},
    };
    int code = add_node(m, &root);

    if (code == 0)
        code = push(m, (struct open_list){.l = 1, .l_end = l->end, .r = 1, .r_end = r->end});
    while (code == 0 && m->n_stack) {
        const struct open_list *list = &m->stack[m->n_stack - 1];

        if (list->l < list->l_end || list->r < list->r_end)
            code = merge_next(m);
        else
            m->diff->nodes[m->stack[--m->n_stack].parent].end = m->diff->n_nodes;
    }
    return code;
}

/* ---- folding ---- */

static double size_of(const struct making *m, const struct kiln_flame_diff_node *node)
{
    return fmax(fabs((double)node->total.left * m->diff->scale), fabs((double)node->total.right));
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/* The size that nodes must have to stay, and how many of exactly that size do. */
static int find_limit(struct making *m, uint32_t nodes_max, double *ret_limit, uint32_t *ret_equal)
{
    const struct kiln_flame_diff *diff = m->diff;
    uint32_t n = 0;
    int r;

    *ret_limit = -1;
    *ret_equal = 0;
    if (nodes_max == 0 || diff->n_nodes <= nodes_max)
        return 0;
    r = kiln_reserve(&m->diff->budget, (void **)&m->sizes, &m->sizes_cap, diff->n_nodes,
                     sizeof(*m->sizes), NODES_MAX);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < diff->n_nodes; i++) {
        if (!diff->other || diff->nodes[i].name != diff->other)
            m->sizes[n++] = size_of(m, &diff->nodes[i]);
    }
    if (n <= nodes_max)
        return 0;
    qsort(m->sizes, n, sizeof(*m->sizes), descending);
    *ret_limit = m->sizes[nodes_max - 1];
    for (uint32_t i = 0; i < nodes_max; i++)
        *ret_equal += m->sizes[i] == *ret_limit;
    return 0;
}

static struct kiln_flame_pair add_pair(struct kiln_flame_pair a, struct kiln_flame_pair b)
{
    return (struct kiln_flame_pair){kiln_sat_add(a.left, b.left), kiln_sat_add(a.right, b.right)};
}

/* A node that stays, while its subtree is gone through. */
struct kept {
    uint32_t old_end, node;
    struct kiln_flame_pair folded;
    bool folds;
};

struct folding {
    struct kept *open;
    struct kiln_flame_diff_node *out;
    uint32_t n_open, n_out, open_cap, out_cap;
};

static void close_kept(struct making *m, struct folding *f)
{
    struct kept *kept = &f->open[--f->n_open];

    if (kept->folds) {
        f->out[f->n_out] = (struct kiln_flame_diff_node){
            .name = m->diff->other,
            .parent = kept->node,
            .end = f->n_out + 1,
            .depth = f->out[kept->node].depth + 1,
            .self = kept->folded,
            .total = kept->folded,
        };
        f->n_out++;
    }
    f->out[kept->node].end = f->n_out;
}

static void keep(struct folding *f, const struct kiln_flame_diff_node *node)
{
    uint32_t parent = f->n_open ? f->open[f->n_open - 1].node : 0;

    f->out[f->n_out] = *node;
    f->out[f->n_out].parent = parent;
    f->open[f->n_open++] = (struct kept){.old_end = node->end, .node = f->n_out++};
}

/* One pass: nodes that stay are written, the others are added to the "other" of their parent. */
static void fold_pass(struct making *m, struct folding *f, double limit, uint32_t equal)
{
    const struct kiln_flame_diff *diff = m->diff;
    uint32_t i = 0;

    while (i < diff->n_nodes) {
        const struct kiln_flame_diff_node *node = &diff->nodes[i];
        double size = size_of(m, node);
        bool stays = i == 0 || size > limit || (size == limit && equal);

        while (f->n_open && f->open[f->n_open - 1].old_end <= i)
            close_kept(m, f);
        if (stays && (i == 0 || !diff->other || node->name != diff->other)) {
            equal -= size == limit && equal;
            keep(f, node);
            i++;
        } else {
            struct kept *above = &f->open[f->n_open - 1];

            above->folded = add_pair(above->folded, node->total);
            above->folds = true;
            i = node->end;
        }
    }
    while (f->n_open)
        close_kept(m, f);
}

static uint32_t deepest(const struct kiln_flame_diff *diff)
{
    uint32_t depth = 0;

    for (uint32_t i = 0; i < diff->n_nodes; i++)
        depth = diff->nodes[i].depth > depth ? diff->nodes[i].depth : depth;
    return depth;
}

static int fold(struct making *m, uint32_t nodes_max)
{
    struct kiln_flame_diff *diff = m->diff;
    struct folding f = {0};
    double limit;
    uint32_t equal;
    int r = find_limit(m, nodes_max, &limit, &equal);

    if (r == 0 && limit >= 0)
        r = need_other(m);
    if (r < 0 || !diff->other)
        return r;
    r = kiln_reserve(&diff->budget, (void **)&f.open, &f.open_cap, (uint64_t)deepest(diff) + 2,
                     sizeof(*f.open), NODES_MAX);
    if (r == 0) /* each "other" stands for one node that went, at least */
        r = kiln_reserve(&diff->budget, (void **)&f.out, &f.out_cap, diff->n_nodes, sizeof(*f.out),
                         NODES_MAX);
    if (r == 0) {
        fold_pass(m, &f, limit, equal);
        kiln_array_free(&diff->budget, (void **)&diff->nodes, &m->nodes_cap, sizeof(*diff->nodes));
        diff->nodes = f.out;
        m->nodes_cap = f.out_cap;
        diff->n_nodes = f.n_out;
    }
    kiln_array_free(&diff->budget, (void **)&f.open, &f.open_cap, sizeof(*f.open));
    return r;
}

/* ---- functions ---- */

static double noise_of(const struct making *m, struct kiln_flame_pair pair)
{
    const struct kiln_noise_side *l = &m->whole_left, *r = &m->whole_right;
    double left = (double)pair.left, right = (double)pair.right;

    return kiln_noise(
        l, (struct kiln_measure){left, l->total != 0 ? l->count * fabs(left / l->total) : 0}, r,
        (struct kiln_measure){right, r->total != 0 ? r->count * fabs(right / r->total) : 0});
}

static double change_of(const struct making *m, struct kiln_flame_pair pair)
{
    return (double)pair.right - (double)pair.left * m->diff->scale;
}

static void judge(const struct making *m, struct kiln_flame_diff_function *f)
{
    f->self_change = change_of(m, f->self);
    f->total_change = change_of(m, f->total);
    f->self_noise = noise_of(m, f->self);
    f->total_noise = noise_of(m, f->total);
    f->self_is_noise = f->self_change == 0 || fabs(f->self_change) <= f->self_noise;
    f->total_is_noise = f->total_change == 0 || fabs(f->total_change) <= f->total_noise;
}

static int rank(const struct kiln_flame_diff_function *f)
{
    return f->self_is_noise ? 1 + f->total_is_noise : 0;
}

/* As core/diff.c: changes of self beyond noise, then of the total, then the rest. */
static int compare_functions(const void *a, const void *b)
{
    const struct kiln_flame_diff_function *x = a, *y = b;
    double by_x = fabs(rank(x) == 1 ? x->total_change : x->self_change);
    double by_y = fabs(rank(y) == 1 ? y->total_change : y->self_change);

    if (rank(x) != rank(y))
        return rank(x) - rank(y);
    if (by_x != by_y)
        return by_x < by_y ? 1 : -1;
    if (fabs(x->total_change) != fabs(y->total_change))
        return fabs(x->total_change) < fabs(y->total_change) ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

/* `place` is by name: 1 + the index of its function. */
static void add_functions(struct making *m, const struct kiln_flame *flame, const uint32_t *map,
                          uint32_t *place)
{
    struct kiln_flame_diff *diff = m->diff;

    for (uint32_t i = 0; i < flame->n_functions; i++) {
        const struct kiln_flame_function *from = &flame->functions[i];
        uint32_t name = map[from->name];
        struct kiln_flame_diff_function *to;

        if (!place[name]) {
            place[name] = ++diff->n_functions;
            diff->functions[place[name] - 1] = (struct kiln_flame_diff_function){.name = name};
        }
        to = &diff->functions[place[name] - 1];
        if (flame == m->left) {
            to->self.left = kiln_sat_add(to->self.left, from->self);
            to->total.left = kiln_sat_add(to->total.left, from->total);
        } else {
            to->self.right = kiln_sat_add(to->self.right, from->self);
            to->total.right = kiln_sat_add(to->total.right, from->total);
        }
    }
}

static int compare_all_functions(struct making *m)
{
    struct kiln_flame_diff *diff = m->diff;
    uint32_t *place = NULL, place_cap = 0;
    int r = kiln_reserve(&diff->budget, (void **)&diff->functions, &m->functions_cap,
                         (uint64_t)m->left->n_functions + m->right->n_functions + 1,
                         sizeof(*diff->functions), NODES_MAX);

    if (r == 0)
        r = kiln_reserve(&diff->budget, (void **)&place, &place_cap, diff->n_names, sizeof(*place),
                         NODES_MAX);
    if (r == 0) {
        memset(place, 0, diff->n_names * sizeof(*place));
        add_functions(m, m->left, m->map_left, place);
        add_functions(m, m->right, m->map_right, place);
        for (uint32_t i = 0; i < diff->n_functions; i++)
            judge(m, &diff->functions[i]);
        qsort(diff->functions, diff->n_functions, sizeof(*diff->functions), compare_functions);
    }
    kiln_array_free(&diff->budget, (void **)&place, &place_cap, sizeof(*place));
    return r;
}

/* ---- making ---- */

static int make(struct making *m, const struct kiln_flame_diff_opts *opts)
{
    struct kiln_flame_diff *diff = m->diff;
    int r;

    diff->scale = opts->scale > 0 ? opts->scale : 1;
    diff->total = (struct kiln_flame_pair){m->left->total, m->right->total};
    m->whole_left = (struct kiln_noise_side){(double)m->left->total, opts->count_left, diff->scale,
                                             opts->against_total};
    m->whole_right = (struct kiln_noise_side){(double)m->right->total, opts->count_right, 1,
                                              opts->against_total};
    diff->change = change_of(m, diff->total);
    diff->noise = noise_of(m, diff->total);
    r = add_root(m);
    if (r == 0)
        r = map_names(m, m->left, &m->map_left, &m->map_left_cap);
    if (r == 0)
        r = map_names(m, m->right, &m->map_right, &m->map_right_cap);
    if (r == 0 && m->left->nodes && m->right->nodes) {
        r = merge_nodes(m);
        if (r == 0)
            r = fold(m, opts->nodes_max);
    }
    if (r == 0 && m->left->functions && m->right->functions)
        r = compare_all_functions(m);
    return r;
}

static void done(struct making *m)
{
    struct kiln_budget *budget = &m->diff->budget;

    kiln_intern_done(&m->names, budget);
    kiln_array_free(budget, (void **)&m->map_left, &m->map_left_cap, sizeof(*m->map_left));
    kiln_array_free(budget, (void **)&m->map_right, &m->map_right_cap, sizeof(*m->map_right));
    kiln_array_free(budget, (void **)&m->stack, &m->stack_cap, sizeof(*m->stack));
    kiln_array_free(budget, (void **)&m->sizes, &m->sizes_cap, sizeof(*m->sizes));
}

int kiln_flame_diff_new(const struct kiln_flame *left, const struct kiln_flame *right,
                        const struct kiln_flame_diff_opts *opts, struct kiln_flame_diff **ret_diff,
                        struct kiln_err *err)
{
    struct kiln_flame_diff *diff = kiln_calloc(1, sizeof(*diff));
    struct making m = {.diff = diff, .left = left, .right = right};
    int r;

    if (!diff)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    diff->budget.limit = opts->memory_bytes ? opts->memory_bytes : MEMORY_BYTES;
    kiln_arena_init(&diff->arena, &diff->budget);
    r = make(&m, opts);
    done(&m);
    if (r < 0) {
        kiln_flame_diff_free(diff);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_diff = diff;
    return 0;
}

void kiln_flame_diff_free(struct kiln_flame_diff *diff)
{
    if (!diff)
        return;
    kiln_free(diff->names);
    kiln_free(diff->nodes);
    kiln_free(diff->functions);
    kiln_arena_done(&diff->arena);
    kiln_free(diff);
}

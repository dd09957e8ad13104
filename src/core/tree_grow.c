/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path walks down from the root; at each frame a hash table of (parent, frame) finds the child.
 * What a path shares with the one before it is not looked up again.
 *
 * Finishing sums totals up (children come after their parents, so one walk backwards does), decides
 * which nodes stay, lists children by parent, sorts each list, and writes the nodes in preorder
 * with a stack of its own: stacks may be tens of thousands of frames deep.
 *
 * Folding: a node stays if it is large enough and its parent stays.  The children of a node that do
 * not stay become one child, "(other)", whose self is the sum of their totals: no total changes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/sat.h"
#include "core/tree_int.h"

#define MEMORY_BYTES ((size_t)1 << 30)

#define RESERVE(budget, array, cap, need)                                                          \
    kiln_reserve((budget), (void **)&(array), &(cap), (need), sizeof(*(array)), UINT32_MAX)
#define RELEASE(budget, array, cap)                                                                \
    kiln_array_free((budget), (void **)&(array), &(cap), sizeof(*(array)))

/* ---- growing ---- */

static int add_twig(struct kiln_grower *g, uint32_t parent, uint32_t frame, uint64_t hash,
                    uint32_t *ret)
{
    int r = kiln_grow(&g->budget, (void **)&g->twigs, &g->cap, (uint64_t)g->n + 1,
                      sizeof(*g->twigs), UINT32_MAX / 2);

    if (r == 0)
        r = kiln_intern_add(&g->children, &g->budget, hash, g->n);
    if (r < 0)
        return r;
    g->twigs[g->n] = (struct kiln_twig){.frame = frame, .parent = parent};
    *ret = g->n++;
    return 0;
}

int kiln_grower_init(struct kiln_grower *g, size_t memory_bytes)
{
    uint32_t root;

    *g = (struct kiln_grower){.budget.limit = memory_bytes ? memory_bytes : MEMORY_BYTES};
    return add_twig(g, 0, KILN_TREE_ROOT, 0, &root);
}

void kiln_grower_done(struct kiln_grower *g)
{
    kiln_intern_done(&g->children, &g->budget);
    RELEASE(&g->budget, g->twigs, g->cap);
    RELEASE(&g->budget, g->last, g->last_cap);
    RELEASE(&g->budget, g->last_frames, g->last_frames_cap);
}

static int find_child(struct kiln_grower *g, uint32_t parent, uint32_t frame, uint32_t *ret)
{
    uint64_t hash = kiln_hash_mix((uint64_t)parent << 32 | frame, 0x5851f42d4c957f2du);

    for (struct kiln_probe p = kiln_intern_probe(&g->children, hash);
         kiln_intern_next(&g->children, &p);) {
        const struct kiln_twig *twig = &g->twigs[p.entry];

        if (twig->frame == frame && twig->parent == parent) {
            *ret = p.entry;
            return 0;
        }
    }
    return add_twig(g, parent, frame, hash, ret);
}

static int make_room(struct kiln_grower *g, uint32_t n)
{
    int r = kiln_grow(&g->budget, (void **)&g->last, &g->last_cap, n, sizeof(*g->last), UINT32_MAX);

    if (r == 0)
        r = kiln_grow(&g->budget, (void **)&g->last_frames, &g->last_frames_cap, n,
                      sizeof(*g->last_frames), UINT32_MAX);
    return r;
}

int kiln_grower_add(struct kiln_grower *g, const uint32_t *path, uint32_t n, int step,
                    const struct kiln_weight *weight)
{
    uint32_t at = 0, i = 0;
    struct kiln_twig *end;
    int r = make_room(g, n);

    if (r < 0)
        return r;
    for (; i < n && i < g->n_last && g->last_frames[i] == *path; i++, path += step)
        at = g->last[i];
    g->n_last = i;
    for (; i < n; i++, path += step) {
        r = find_child(g, at, *path, &at);
        if (r < 0)
            return r;
        g->last[i] = at;
        g->last_frames[i] = *path;
        g->n_last = i + 1;
    }
    end = &g->twigs[at];
    end->self_a = kiln_sat_add(end->self_a, weight->a);
    end->self_b = kiln_sat_add(end->self_b, weight->b);
    end->count_a += weight->count_a;
    end->count_b += weight->count_b;
    return 0;
}

/* ---- finishing ---- */

struct child {
    uint32_t twig;
    uint32_t frame;
    double size;
};

struct finishing {
    struct kiln_grower *g;
    const struct kiln_tree_opts *opts;
    const struct kiln_frame *frames; /* for names */
    uint32_t other;                  /* the frame of "(other)" */
    bool *stays;                     /* parallel to twigs */
    double *sizes;                   /* scratch for the largest ones */
    struct child *children;          /* grouped by parent */
    uint32_t *first;                 /* of a twig's children; first[twig + 1] ends them */
    uint32_t *stack;                 /* twigs that wait to be written */
    uint32_t *place;                 /* of a twig in the tree */
    uint32_t stays_cap, sizes_cap, children_cap, first_cap, stack_cap, place_cap;
    bool folded;
};

/* How large a twig is for a reader: of a diff, the larger side. */
static double size_of(const struct kiln_twig *twig)
{
    return fmax(fabs((double)twig->total_a), fabs((double)twig->total_b));
}

static void sum_up(struct kiln_grower *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        g->twigs[i].total_a = g->twigs[i].self_a;
        g->twigs[i].total_b = g->twigs[i].self_b;
    }
    for (uint32_t i = g->n - 1; i > 0; i--) {
        const struct kiln_twig *twig = &g->twigs[i];
        struct kiln_twig *parent = &g->twigs[twig->parent];

        parent->total_a = kiln_sat_add(parent->total_a, twig->total_a);
        parent->total_b = kiln_sat_add(parent->total_b, twig->total_b);
        parent->count_a += twig->count_a;
        parent->count_b += twig->count_b;
    }
}

static int larger_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/*
 * The size that the nodes_max largest twigs have at least; *ret_ties is how many of exactly that
 * size are among them, the first ones by position.
 */
static int find_cut(struct finishing *f, double *ret_size, uint32_t *ret_ties)
{
    struct kiln_grower *g = f->g;
    uint32_t max = f->opts->nodes_max, ties = 0;
    int r;

    if (max == 0 || max >= g->n)
        return 0;
    r = RESERVE(&g->budget, f->sizes, f->sizes_cap, g->n);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < g->n; i++)
        f->sizes[i] = size_of(&g->twigs[i]);
    qsort(f->sizes, g->n, sizeof(*f->sizes), larger_first);
    while (ties < max && f->sizes[max - 1 - ties] == f->sizes[max - 1])
        ties++;
    *ret_size = f->sizes[max - 1];
    *ret_ties = ties;
    return 0;
}

static bool large_share(const struct finishing *f, const struct kiln_twig *twig)
{
    const struct kiln_twig *root = &f->g->twigs[0];
    double min = f->opts->min_share;

    if (!(min > 0))
        return true;
    return (twig->total_a && fabs((double)twig->total_a) >= min * fabs((double)root->total_a)) ||
           (twig->total_b && fabs((double)twig->total_b) >= min * fabs((double)root->total_b));
}

static int choose(struct finishing *f)
{
    struct kiln_grower *g = f->g;
    uint32_t ties = UINT32_MAX;
    double cut = -1;
    int r;

    r = find_cut(f, &cut, &ties);
    if (r == 0)
        r = RESERVE(&g->budget, f->stays, f->stays_cap, g->n);
    if (r < 0)
        return r;
    f->stays[0] = true;
    if (size_of(&g->twigs[0]) == cut && ties)
        ties--;
    for (uint32_t i = 1; i < g->n; i++) {
        const struct kiln_twig *twig = &g->twigs[i];
        double size = size_of(twig);

        f->stays[i] = f->stays[twig->parent] && large_share(f, twig) && size >= cut &&
                      (size > cut || ties > 0);
        if (f->stays[i] && size == cut)
            ties--;
        f->folded = f->folded || !f->stays[i];
    }
    return 0;
}

/* Adds to the "(other)" child of each twig what its children that do not stay amount to. */
static int fold(struct finishing *f)
{
    struct kiln_grower *g = f->g;
    uint32_t n = g->n;
    int r;

    for (uint32_t i = 1; i < n; i++) {
        struct kiln_twig twig = g->twigs[i];
        struct kiln_twig *other;
        uint32_t at;

        if (f->stays[i] || !f->stays[twig.parent])
            continue;
        r = find_child(g, twig.parent, f->other, &at);
        if (r < 0)
            return r;
        other = &g->twigs[at];
        other->self_a = other->total_a = kiln_sat_add(other->self_a, twig.total_a);
        other->self_b = other->total_b = kiln_sat_add(other->self_b, twig.total_b);
        other->count_a += twig.count_a;
        other->count_b += twig.count_b;
    }
    r = RESERVE(&g->budget, f->stays, f->stays_cap, g->n);
    for (uint32_t i = n; i < g->n && r == 0; i++)
        f->stays[i] = true;
    return r;
}

static int by_name(const struct finishing *f, const struct child *a, const struct child *b)
{
    const struct kiln_frame *x = &f->frames[a->frame], *y = &f->frames[b->frame];
    int order = kiln_str_cmp(x->name, y->name);

    if (order == 0)
        order = kiln_str_cmp(x->file, y->file);
    if (order == 0)
        order = (a->frame > b->frame) - (a->frame < b->frame);
    return order;
}

/* "(other)" comes last, whatever the order. */
static int compare_children(const void *a, const void *b, void *context)
{
    const struct finishing *f = context;
    const struct child *x = a, *y = b;

    if (x->frame == f->other || y->frame == f->other)
        return (x->frame == f->other) - (y->frame == f->other);
    if (f->opts->order == KILN_TREE_BY_VALUE && x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return by_name(f, x, y);
}

/* Lists the children that stay by their parent (a counting sort) and sorts each list. */
static int list_children(struct finishing *f)
{
    struct kiln_grower *g = f->g;
    int r;

    r = RESERVE(&g->budget, f->first, f->first_cap, (uint64_t)g->n + 2);
    if (r == 0)
        r = RESERVE(&g->budget, f->children, f->children_cap, g->n);
    if (r < 0)
        return r;
    memset(f->first, 0, ((size_t)g->n + 2) * sizeof(*f->first));
    for (uint32_t i = 1; i < g->n; i++)
        f->first[g->twigs[i].parent + 2] += f->stays[i];
    for (uint32_t i = 2; i < g->n + 2; i++)
        f->first[i] += f->first[i - 1];
    for (uint32_t i = 1; i < g->n; i++) {
        const struct kiln_twig *twig = &g->twigs[i];

        if (f->stays[i])
            f->children[f->first[twig->parent + 1]++] =
                (struct child){i, twig->frame, size_of(twig)};
    }
    for (uint32_t i = 0; i < g->n; i++) {
        uint32_t n = f->first[i + 1] - f->first[i];

        if (n > 1)
            qsort_r(f->children + f->first[i], n, sizeof(*f->children), compare_children, f);
    }
    return 0;
}

static struct kiln_tree_node node_of(const struct finishing *f, const struct kiln_tree *tree,
                                     uint32_t index)
{
    const struct kiln_twig *twig = &f->g->twigs[index];
    uint32_t parent = index ? f->place[twig->parent] : 0;

    return (struct kiln_tree_node){
        .frame = twig->frame,
        .parent = parent,
        .subtree = 1,
        .depth = index ? tree->nodes[parent].depth + 1 : 0,
        .self_a = twig->self_a,
        .total_a = twig->total_a,
        .self_b = twig->self_b,
        .total_b = twig->total_b,
        .count_a = twig->count_a,
        .count_b = twig->count_b,
    };
}

static int lay_out(struct finishing *f, struct kiln_tree *tree)
{
    struct kiln_grower *g = f->g;
    uint32_t n = f->first[g->n] + 1, waiting = 0;
    int r;

    r = RESERVE(&g->budget, f->stack, f->stack_cap, g->n);
    if (r == 0)
        r = RESERVE(&g->budget, f->place, f->place_cap, g->n);
    if (r == 0)
        r = kiln_budget_take(&g->budget, (size_t)n * sizeof(*tree->nodes));
    if (r < 0)
        return r;
    tree->nodes = kiln_malloc((size_t)n * sizeof(*tree->nodes));
    if (!tree->nodes)
        return -ENOMEM;
    f->stack[waiting++] = 0;
    while (waiting) {
        uint32_t twig = f->stack[--waiting];
        struct kiln_tree_node node = node_of(f, tree, twig);

        f->place[twig] = tree->n_nodes;
        tree->max_depth = node.depth > tree->max_depth ? node.depth : tree->max_depth;
        tree->nodes[tree->n_nodes++] = node;
        for (uint32_t i = f->first[twig + 1]; i > f->first[twig]; i--)
            f->stack[waiting++] = f->children[i - 1].twig;
    }
    for (uint32_t i = n - 1; i > 0; i--)
        tree->nodes[tree->nodes[i].parent].subtree += tree->nodes[i].subtree;
    return 0;
}

static int own_frames(struct finishing *f, struct kiln_tree *tree)
{
    tree->owned_frames = kiln_malloc(((size_t)tree->n_frames + 1) * sizeof(*tree->frames));
    if (!tree->owned_frames)
        return -ENOMEM;
    if (tree->n_frames)
        memcpy(tree->owned_frames, tree->frames, tree->n_frames * sizeof(*tree->frames));
    tree->owned_frames[tree->n_frames++] = (struct kiln_frame){
        .name = KILN_STR("(other)"),
        .file = KILN_STR(""),
        .module = KILN_STR(""),
        .kind = KILN_STR(""),
        .unnamed = true,
    };
    tree->frames = f->frames = tree->owned_frames;
    return 0;
}

static int finish(struct finishing *f, struct kiln_tree *tree)
{
    int r;

    sum_up(f->g);
    r = choose(f);
    if (r == 0 && f->folded)
        r = own_frames(f, tree);
    if (r == 0 && f->folded)
        r = fold(f);
    if (r == 0)
        r = list_children(f);
    if (r == 0)
        r = lay_out(f, tree);
    return r;
}

int kiln_grower_finish(struct kiln_grower *g, const struct kiln_frame *frames, uint32_t n_frames,
                       const struct kiln_tree_opts *opts, struct kiln_tree **ret_tree)
{
    struct finishing f = {.g = g, .opts = opts, .frames = frames, .other = n_frames};
    struct kiln_tree *tree = kiln_calloc(1, sizeof(*tree));
    int r = -ENOMEM;

    if (tree) {
        tree->frames = frames;
        tree->n_frames = n_frames;
        r = finish(&f, tree);
    }
    RELEASE(&g->budget, f.stays, f.stays_cap);
    RELEASE(&g->budget, f.sizes, f.sizes_cap);
    RELEASE(&g->budget, f.children, f.children_cap);
    RELEASE(&g->budget, f.first, f.first_cap);
    RELEASE(&g->budget, f.stack, f.stack_cap);
    RELEASE(&g->budget, f.place, f.place_cap);
    if (r < 0) {
        kiln_tree_free(tree);
        return r;
    }
    *ret_tree = tree;
    return 0;
}

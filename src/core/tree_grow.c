/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths are sorted, so that those which share their first frames are neighbours; then one walk
 * lists the nodes in preorder: what a path has in common with the one before it is there already,
 * the rest is new.  Nothing is looked up, and memory is written from front to back.
 *
 * A second walk writes the tree as it is wanted: children sorted, small ones folded.  It has a
 * stack of its own, for paths may be tens of thousands of frames deep.
 *
 * Folding: a node stays if it is large enough and its parent stays.  The children of a node that do
 * not stay become one child, "(other)", whose self is the sum of their totals: no total changes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/sat.h"
#include "core/tree_int.h"

#define MEMORY_BYTES ((size_t)1 << 30)
#define NODES_MAX    (UINT32_MAX / 2)

#define RESERVE(budget, array, cap, need)                                                          \
    kiln_reserve((budget), (void **)&(array), &(cap), (need), sizeof(*(array)), UINT32_MAX)
#define RELEASE(budget, array, cap)                                                                \
    kiln_array_free((budget), (void **)&(array), &(cap), sizeof(*(array)))

/* ---- paths ---- */

int kiln_grower_init(struct kiln_grower *g, size_t memory_bytes, uint64_t n_paths,
                     uint64_t n_copied)
{
    int r;

    *g = (struct kiln_grower){.budget.limit = memory_bytes ? memory_bytes : MEMORY_BYTES};
    r = RESERVE(&g->budget, g->paths, g->paths_cap, n_paths);
    if (r == 0)
        r = RESERVE(&g->budget, g->weights, g->weights_cap, n_paths);
    if (r == 0)
        r = RESERVE(&g->budget, g->pool, g->pool_cap, n_copied);
    return r;
}

void kiln_grower_done(struct kiln_grower *g)
{
    RELEASE(&g->budget, g->paths, g->paths_cap);
    RELEASE(&g->budget, g->weights, g->weights_cap);
    RELEASE(&g->budget, g->pool, g->pool_cap);
}

void kiln_grower_add(struct kiln_grower *g, const uint32_t *frames, uint32_t n,
                     const struct kiln_tree_weight *weight)
{
    g->two_sided = g->two_sided || weight->a || weight->count_a > 0;
    g->paths[g->n] = (struct kiln_tree_path){frames, n, g->n};
    g->weights[g->n++] = *weight;
}

void kiln_grower_copy(struct kiln_grower *g, const struct kiln_tree_path *path, const uint32_t *map,
                      bool reversed, const struct kiln_tree_weight *weight)
{
    uint32_t *copy = path->n ? g->pool + g->n_pool : NULL;

    for (uint32_t i = 0; i < path->n; i++) {
        uint32_t frame = path->frames[reversed ? path->n - 1 - i : i];

        copy[i] = map ? map[frame] : frame;
    }
    g->n_pool += path->n;
    kiln_grower_add(g, copy, path->n, weight);
}

/* Any order does that keeps equal beginnings together and puts a path before what extends it. */
static int compare_paths(const void *a, const void *b)
{
    const struct kiln_tree_path *x = a, *y = b;
    uint32_t shorter = x->n < y->n ? x->n : y->n;
    int order = shorter ? memcmp(x->frames, y->frames, shorter * sizeof(*x->frames)) : 0;

    if (order == 0)
        order = (x->n > y->n) - (x->n < y->n);
    return order ? order : (x->weight > y->weight) - (x->weight < y->weight);
}

static uint32_t common(const struct kiln_tree_path *a, const struct kiln_tree_path *b)
{
    uint32_t n = 0;

    while (n < a->n && n < b->n && a->frames[n] == b->frames[n])
        n++;
    return n;
}

/* ---- all nodes, in preorder, children in no useful order ---- */

/* A node that is listed; small, because there are many, and most trees have one side only. */
struct twig {
    uint32_t frame, parent, subtree;
    uint32_t weight; /* 1 + index: of the node itself; 0: it has none */
    int64_t total;   /* b */
    double count;
};

/* The other side of a diff. */
struct twig_a {
    int64_t total;
    double count;
};

/* What happens to a node that is listed. */
enum { GOES, STAYS, STAYS_WITH_OTHER };

struct finishing {
    struct kiln_grower *g;
    const struct kiln_tree_opts *opts;
    const struct kiln_frame *frames; /* for names */
    struct twig *twigs;
    struct twig_a *twigs_a; /* parallel, or NULL */
    uint32_t *spine;        /* the nodes of the path at hand, by depth */
    uint8_t *fate;          /* parallel to twigs; NULL: all stay */
    double *sizes;          /* scratch for the largest ones */
    struct waiting *stack;  /* nodes that wait to be written */
    uint32_t n, twigs_cap, twigs_a_cap, spine_cap, fate_cap, sizes_cap, stack_cap;
    uint32_t other; /* the frame of "(other)" */
    uint32_t n_kept;
    bool folded;
};

/* Counts the nodes and the depth, so that every array is made once. */
static int make_room(struct finishing *f)
{
    struct kiln_grower *g = f->g;
    uint64_t n = 1, depth = 0;
    int r;

    for (uint32_t i = 0; i < g->n; i++) {
        n += g->paths[i].n - (i ? common(&g->paths[i - 1], &g->paths[i]) : 0);
        depth = g->paths[i].n > depth ? g->paths[i].n : depth;
    }
    if (n > NODES_MAX)
        return KILN_E_LIMIT;
    r = RESERVE(&g->budget, f->twigs, f->twigs_cap, n);
    if (r == 0 && g->two_sided)
        r = RESERVE(&g->budget, f->twigs_a, f->twigs_a_cap, n);
    if (r == 0)
        r = RESERVE(&g->budget, f->spine, f->spine_cap, depth + 1);
    return r;
}

static void add_weight(struct kiln_tree_weight *to, const struct kiln_tree_weight *more)
{
    to->a = kiln_sat_add(to->a, more->a);
    to->b = kiln_sat_add(to->b, more->b);
    to->count_a += more->count_a;
    to->count_b += more->count_b;
}

static void list_nodes(struct finishing *f)
{
    const struct kiln_grower *g = f->g;

    f->twigs[0] = (struct twig){.frame = KILN_TREE_ROOT, .subtree = 1};
    f->spine[0] = 0;
    f->n = 1;
    for (uint32_t i = 0; i < g->n; i++) {
        const struct kiln_tree_path *path = &g->paths[i];
        struct twig *end;

        for (uint32_t depth = i ? common(path - 1, path) : 0; depth < path->n; depth++) {
            f->twigs[f->n] = (struct twig){
                .frame = path->frames[depth], .parent = f->spine[depth], .subtree = 1};
            f->spine[depth + 1] = f->n++;
        }
        end = &f->twigs[f->spine[path->n]];
        if (end->weight)
            add_weight(&g->weights[end->weight - 1], &g->weights[path->weight]);
        else
            end->weight = path->weight + 1;
    }
}

/* Children come after their parents, so that one walk backwards sums them up. */
static void sum_up(struct finishing *f)
{
    for (uint32_t i = f->n; i > 0; i--) {
        struct twig *twig = &f->twigs[i - 1];
        struct twig *parent = &f->twigs[twig->parent];

        if (twig->weight) {
            twig->total = kiln_sat_add(twig->total, f->g->weights[twig->weight - 1].b);
            twig->count += f->g->weights[twig->weight - 1].count_b;
        }
        if (i == 1)
            break;
        parent->total = kiln_sat_add(parent->total, twig->total);
        parent->count += twig->count;
        parent->subtree += twig->subtree;
    }
}

static void sum_up_a(struct finishing *f)
{
    memset(f->twigs_a, 0, f->n * sizeof(*f->twigs_a));
    for (uint32_t i = f->n; i > 0; i--) {
        const struct twig *twig = &f->twigs[i - 1];
        struct twig_a *a = &f->twigs_a[i - 1], *parent = &f->twigs_a[twig->parent];

        if (twig->weight) {
            a->total = kiln_sat_add(a->total, f->g->weights[twig->weight - 1].a);
            a->count += f->g->weights[twig->weight - 1].count_a;
        }
        if (i == 1)
            break;
        parent->total = kiln_sat_add(parent->total, a->total);
        parent->count += a->count;
    }
}

/* ---- which nodes stay ---- */

/* How large a node is for a reader: of a diff, the larger side. */
static double size_of(const struct finishing *f, uint32_t twig)
{
    double b = fabs((double)f->twigs[twig].total);

    return f->twigs_a ? fmax(b, fabs((double)f->twigs_a[twig].total)) : b;
}

static int larger_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x < y) - (x > y);
}

/*
 * The size that the nodes_max largest nodes have at least; *ret_ties is how many of exactly that
 * size are among them, the first ones by position.
 */
static int find_cut(struct finishing *f, double *ret_size, uint32_t *ret_ties)
{
    uint32_t max = f->opts->nodes_max, ties = 0;
    int r;

    if (max == 0 || max >= f->n)
        return 0;
    r = RESERVE(&f->g->budget, f->sizes, f->sizes_cap, f->n);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < f->n; i++)
        f->sizes[i] = size_of(f, i);
    qsort(f->sizes, f->n, sizeof(*f->sizes), larger_first);
    while (ties < max && f->sizes[max - 1 - ties] == f->sizes[max - 1])
        ties++;
    *ret_size = f->sizes[max - 1];
    *ret_ties = ties;
    return 0;
}

static bool is_share(int64_t part, int64_t whole, double min)
{
    return part && fabs((double)part) >= min * fabs((double)whole);
}

static bool large_share(const struct finishing *f, uint32_t twig)
{
    double min = f->opts->min_share;

    if (!(min > 0) || is_share(f->twigs[twig].total, f->twigs[0].total, min))
        return true;
    return f->twigs_a && is_share(f->twigs_a[twig].total, f->twigs_a[0].total, min);
}

/* Decides the fate of every node and counts what will be written. */
static int choose(struct finishing *f)
{
    uint32_t ties = UINT32_MAX;
    double cut = -1;
    int r;

    r = find_cut(f, &cut, &ties);
    if (r == 0)
        r = RESERVE(&f->g->budget, f->fate, f->fate_cap, f->n);
    if (r < 0)
        return r;
    f->fate[0] = STAYS;
    f->n_kept = 1;
    ties -= size_of(f, 0) == cut;
    for (uint32_t i = 1; i < f->n; i++) {
        uint8_t *parent = &f->fate[f->twigs[i].parent];
        double size = size_of(f, i);
        bool stays = *parent != GOES && large_share(f, i) && (size > cut || (size == cut && ties));

        f->fate[i] = stays ? STAYS : GOES;
        f->n_kept += stays || *parent == STAYS;
        f->folded = f->folded || !stays;
        if (stays && size == cut)
            ties--;
        if (!stays && *parent == STAYS)
            *parent = STAYS_WITH_OTHER;
    }
    return 0;
}

/* ---- the tree ---- */

struct waiting {
    uint32_t from;   /* listed node; of "(other)": the parent whose children it stands for */
    uint32_t parent; /* written node */
    bool other;
};

static int by_name(const struct finishing *f, uint32_t a, uint32_t b)
{
    const struct kiln_frame *x = &f->frames[a], *y = &f->frames[b];
    int order = kiln_str_cmp(x->name, y->name);

    if (order == 0)
        order = kiln_str_cmp(x->file, y->file);
    return order ? order : (a > b) - (a < b);
}

/* What is written first lies on top of the stack, at the end; "(other)" is written last. */
static int compare_waiting(const void *a, const void *b, void *context)
{
    const struct finishing *f = context;
    const struct waiting *x = a, *y = b;
    double v, w;

    if (x->other || y->other)
        return y->other - x->other;
    v = size_of(f, x->from);
    w = size_of(f, y->from);
    if (f->opts->order == KILN_TREE_BY_VALUE && v != w)
        return v < w ? -1 : 1;
    return -by_name(f, f->twigs[x->from].frame, f->twigs[y->from].frame);
}

/* Puts the children of a node that was written onto the stack, sorted; returns the new height. */
static uint32_t push_children(struct finishing *f, uint32_t from, uint32_t written, uint32_t height)
{
    uint32_t first = height, end = from + f->twigs[from].subtree;

    if (f->fate && f->fate[from] == STAYS_WITH_OTHER)
        f->stack[height++] = (struct waiting){from, written, true};
    for (uint32_t child = from + 1; child < end; child += f->twigs[child].subtree) {
        if (!f->fate || f->fate[child] != GOES)
            f->stack[height++] = (struct waiting){child, written, false};
    }
    if (height - first > 1)
        qsort_r(f->stack + first, height - first, sizeof(*f->stack), compare_waiting, f);
    return height;
}

static struct kiln_tree_weight total_of(const struct finishing *f, uint32_t twig)
{
    struct kiln_tree_weight total = {.b = f->twigs[twig].total, .count_b = f->twigs[twig].count};

    if (f->twigs_a) {
        total.a = f->twigs_a[twig].total;
        total.count_a = f->twigs_a[twig].count;
    }
    return total;
}

/* Of all children of a listed node that go. */
static struct kiln_tree_weight other_of(const struct finishing *f, uint32_t from)
{
    struct kiln_tree_weight other = {0};
    uint32_t end = from + f->twigs[from].subtree;

    for (uint32_t child = from + 1; child < end; child += f->twigs[child].subtree) {
        struct kiln_tree_weight total = total_of(f, child);

        if (f->fate[child] == GOES)
            add_weight(&other, &total);
    }
    return other;
}

static struct kiln_tree_node node_of(const struct finishing *f, const struct waiting *w)
{
    const struct twig *twig = &f->twigs[w->from];
    struct kiln_tree_weight total = w->other ? other_of(f, w->from) : total_of(f, w->from);
    struct kiln_tree_weight self = {0};

    if (w->other)
        self = total;
    else if (twig->weight)
        self = f->g->weights[twig->weight - 1];
    return (struct kiln_tree_node){
        .frame = w->other ? f->other : twig->frame,
        .parent = w->parent,
        .subtree = 1,
        .self_a = self.a,
        .total_a = total.a,
        .self_b = self.b,
        .total_b = total.b,
        .count_a = total.count_a,
        .count_b = total.count_b,
    };
}

static void write_nodes(struct finishing *f, struct kiln_tree *tree)
{
    uint32_t height = 1;

    f->stack[0] = (struct waiting){0};
    while (height) {
        struct waiting next = f->stack[--height];
        struct kiln_tree_node *node = &tree->nodes[tree->n_nodes];

        *node = node_of(f, &next);
        if (tree->n_nodes)
            node->depth = tree->nodes[next.parent].depth + 1;
        tree->max_depth = node->depth > tree->max_depth ? node->depth : tree->max_depth;
        if (!next.other)
            height = push_children(f, next.from, tree->n_nodes, height);
        tree->n_nodes++;
    }
    for (uint32_t i = tree->n_nodes - 1; i > 0; i--)
        tree->nodes[tree->nodes[i].parent].subtree += tree->nodes[i].subtree;
}

static int make_tree(struct finishing *f, struct kiln_tree *tree)
{
    size_t bytes = (size_t)f->n_kept * sizeof(*tree->nodes);
    int r;

    r = RESERVE(&f->g->budget, f->stack, f->stack_cap, f->n_kept);
    if (r == 0)
        r = kiln_budget_take(&f->g->budget, bytes);
    if (r < 0)
        return r;
    tree->nodes = kiln_malloc(bytes);
    if (!tree->nodes)
        return -ENOMEM;
    write_nodes(f, tree);
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
    struct kiln_grower *g = f->g;
    int r;

    if (g->n)
        qsort(g->paths, g->n, sizeof(*g->paths), compare_paths);
    r = make_room(f);
    if (r < 0)
        return r;
    list_nodes(f);
    sum_up(f);
    if (f->twigs_a)
        sum_up_a(f);
    f->n_kept = tree->n_all = f->n;
    if (f->opts->nodes_max || f->opts->min_share > 0)
        r = choose(f);
    if (r == 0 && f->folded)
        r = own_frames(f, tree);
    return r < 0 ? r : make_tree(f, tree);
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
    RELEASE(&g->budget, f.twigs, f.twigs_cap);
    RELEASE(&g->budget, f.twigs_a, f.twigs_a_cap);
    RELEASE(&g->budget, f.spine, f.spine_cap);
    RELEASE(&g->budget, f.fate, f.fate_cap);
    RELEASE(&g->budget, f.sizes, f.sizes_cap);
    RELEASE(&g->budget, f.stack, f.stack_cap);
    if (r < 0) {
        kiln_tree_free(tree);
        return r;
    }
    *ret_tree = tree;
    return 0;
}

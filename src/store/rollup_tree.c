/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree of names, pruned to its largest nodes, from sorted stacks.
 *
 * A node is one or more pieces: runs of stacks that are equal from the root down to some location.
 * Its total is the difference of two sums, so that no tree of all stacks is ever made: the largest
 * node not yet taken is, again and again, and only then cut into its children.  What is left when
 * there are enough is folded into the parents; the largest of it is the error bound.
 */
#include "store/rollup_make.h"

#define NONE UINT32_MAX

/* Stacks [first, end) that share `depth` locations and, of the next one, the names up to `at`. */
struct piece {
    uint32_t first, end, depth;
    uint32_t common; /* locations that they all share */
    uint32_t at;     /* its name in the pool */
    uint32_t next;   /* of the same node */
};

struct node {
    int64_t total, self, folded;
    uint32_t name, parent;
    uint32_t pieces;         /* the last one; the root has one without name */
    uint32_t child, sibling; /* of those that were taken */
    uint32_t depth, order;
};

struct drawing {
    const struct kiln_dict *dict;
    const struct kiln_rollup_naming *naming;
    const struct kiln_rollup_active *active;
    struct kiln_budget *budget;
    struct piece *pieces;
    struct node *nodes;
    uint32_t *heap;    /* nodes that may be taken next, the largest first */
    uint32_t *of_name; /* by name: the child of the node at hand */
    uint32_t *stamps;  /* by name: of which node that is, and 1 */
    uint32_t *stack;   /* scratch: for walking */
    uint32_t n_pieces, n_nodes, n_heap;
    uint32_t cap_pieces, cap_nodes, cap_heap, cap_of_name, cap_stamps, cap_stack;
};

#define ROOM(d, array, need)                                                                       \
    kiln_grow((d)->budget, (void **)&(d)->array, &(d)->cap_##array, (need), sizeof(*(d)->array),   \
              UINT32_MAX - 1)

/* ---- the heap ---- */

static bool is_larger(const struct drawing *d, uint32_t a, uint32_t b)
{
    const struct node *x = &d->nodes[a], *y = &d->nodes[b];

    return x->total != y->total ? x->total > y->total : a < b;
}

static int push(struct drawing *d, uint32_t node)
{
    uint32_t i = d->n_heap;
    int r = ROOM(d, heap, (uint64_t)d->n_heap + 1);

    if (r < 0)
        return r;
    d->n_heap++;
    for (; i > 0 && is_larger(d, node, d->heap[(i - 1) / 2]); i = (i - 1) / 2)
        d->heap[i] = d->heap[(i - 1) / 2];
    d->heap[i] = node;
    return 0;
}

static uint32_t pop(struct drawing *d)
{
    uint32_t top = d->heap[0], last = d->heap[--d->n_heap], i = 0;

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= d->n_heap)
            break;
        if (child + 1 < d->n_heap && is_larger(d, d->heap[child + 1], d->heap[child]))
            child++;
        if (!is_larger(d, d->heap[child], last))
            break;
        d->heap[i] = d->heap[child];
        i = child;
    }
    d->heap[i] = last;
    return top;
}

/* ---- children ---- */

static int add_node(struct drawing *d, uint32_t parent, uint32_t name, uint32_t *ret)
{
    int r = ROOM(d, nodes, (uint64_t)d->n_nodes + 1);

    if (r < 0)
        return r;
    d->nodes[d->n_nodes] = (struct node){
        .name = name, .parent = parent, .pieces = NONE, .child = NONE, .sibling = NONE};
    *ret = d->n_nodes++;
    return 0;
}

/* A piece of the child of `parent` that has its name. */
static int add_piece(struct drawing *d, uint32_t parent, struct piece piece)
{
    uint32_t name = d->naming->pool[piece.at] & ~KILN_ROLLUP_LAST;
    int64_t total = d->active->before[piece.end] - d->active->before[piece.first];
    int r = ROOM(d, pieces, (uint64_t)d->n_pieces + 1);

    if (r < 0)
        return r;
    if (d->stamps[name] != parent + 1) {
        r = add_node(d, parent, name, &d->of_name[name]);
        if (r < 0)
            return r;
        d->stamps[name] = parent + 1;
    }
    piece.next = d->nodes[d->of_name[name]].pieces;
    d->nodes[d->of_name[name]].total += total;
    d->nodes[d->of_name[name]].pieces = d->n_pieces;
    d->pieces[d->n_pieces++] = piece;
    return 0;
}

static uint32_t location_at(const struct drawing *d, uint32_t i, uint32_t depth)
{
    struct kiln_range range = d->dict->stacks[d->active->stacks[i]];

    return d->dict->frames[range.first + range.n - 1 - depth];
}

/* The end of the stacks from `first` on that share more than `depth` locations, and what they all
 * share. */
static uint32_t end_of(const struct kiln_rollup_active *a, uint32_t first, uint32_t end,
                       uint32_t depth, uint32_t *ret_common)
{
    uint32_t to = first + 1, common = UINT32_MAX;

    for (; to < end && a->shared[to] > depth; to++)
        common = a->shared[to] < common ? a->shared[to] : common;
    *ret_common = common;
    return to;
}

/* Cuts stacks that share `depth` locations, if not more, by the next one. */
static int cut(struct drawing *d, uint32_t node, struct piece from, uint32_t depth)
{
    const struct kiln_rollup_active *a = d->active;
    uint32_t first = from.first, end = from.end;
    int r = 0;

    if (first < end && d->dict->stacks[a->stacks[first]].n == depth) {
        d->nodes[node].self += a->before[first + 1] - a->before[first];
        first++;
    }
    while (r == 0 && first < end) {
        struct piece p = {.first = first, .end = end, .depth = depth, .common = from.common};

        if (from.common <= depth)
            p.end = end_of(a, first, end, depth, &p.common);
        p.at = d->naming->first[location_at(d, first, depth)] - 1;
        r = add_piece(d, node, p);
        first = p.end;
    }
    return r;
}

static int expand(struct drawing *d, uint32_t node)
{
    uint32_t first_child = d->n_nodes;
    int r = 0;

    for (uint32_t i = d->nodes[node].pieces; r == 0 && i != NONE; i = d->pieces[i].next) {
        struct piece p = d->pieces[i];

        if (d->naming->pool[p.at] & KILN_ROLLUP_LAST) {
            r = cut(d, node, p, p.depth + 1);
        } else {
            p.at++; /* what is inlined into it */
            r = add_piece(d, node, p);
        }
    }
    for (uint32_t i = first_child; r == 0 && i < d->n_nodes; i++)
        r = push(d, i);
    return r;
}

/* ---- taking ---- */

static int take_nodes(struct drawing *d, uint32_t nodes_max)
{
    uint32_t root = 0, taken = 1;
    int r = add_node(d, 0, 0, &root);

    if (r == 0)
        r = cut(d, root, (struct piece){.end = d->active->n}, 0);
    for (uint32_t i = 1; r == 0 && i < d->n_nodes; i++)
        r = push(d, i);
    for (; r == 0 && taken < nodes_max && d->n_heap; taken++) {
        uint32_t node = pop(d), parent = d->nodes[node].parent;

        d->nodes[node].sibling = d->nodes[parent].child;
        d->nodes[node].depth = d->nodes[parent].depth + 1;
        d->nodes[node].order = taken;
        d->nodes[parent].child = node;
        r = expand(d, node);
    }
    return r;
}

static void fold_rest(struct drawing *d)
{
    for (uint32_t i = 0; i < d->n_heap; i++) {
        const struct node *node = &d->nodes[d->heap[i]];

        d->nodes[node->parent].folded += node->total;
    }
}

static int put_node(struct kiln_rollup_drawn *to, struct kiln_budget *budget,
                    const struct node *node, uint32_t depth_before)
{
    int r = 0;

#define GROW(array)                                                                                \
    (r = r < 0 ? r                                                                                 \
               : kiln_grow(budget, (void **)&to->array, &to->cap_##array, (uint64_t)to->n + 1,     \
                           sizeof(*to->array), UINT32_MAX))
    GROW(names);
    GROW(ups);
    GROW(self);
    GROW(folded);
    GROW(total);
    GROW(order);
#undef GROW
    if (r < 0)
        return r;
    to->names[to->n] = node->name;
    to->ups[to->n] = node->depth ? depth_before + 1 - node->depth : 0;
    to->self[to->n] = node->self;
    to->folded[to->n] = node->folded;
    to->total[to->n] = node->total;
    to->order[to->n] = node->order;
    to->n++;
    return 0;
}

static int walk(struct drawing *d, struct kiln_rollup_drawn *to)
{
    uint32_t n = 0, depth = 0;
    int r = ROOM(d, stack, 1);

    to->n = 0;
    if (r == 0)
        d->stack[n++] = 0;
    while (r == 0 && n) {
        const struct node *node = &d->nodes[d->stack[--n]];

        r = put_node(to, d->budget, node, depth);
        depth = node->depth;
        for (uint32_t c = node->child; r == 0 && c != NONE; c = d->nodes[c].sibling) {
            r = ROOM(d, stack, (uint64_t)n + 1);
            if (r == 0)
                d->stack[n++] = c;
        }
    }
    return r;
}

static int open_names(struct drawing *d)
{
    int r = ROOM(d, of_name, (uint64_t)d->naming->n + 1);

    if (r == 0)
        r = ROOM(d, stamps, (uint64_t)d->naming->n + 1);
    if (r == 0)
        memset(d->stamps, 0, d->cap_stamps * sizeof(*d->stamps));
    return r;
}

int kiln_rollup_draw(const struct kiln_dict *dict, const struct kiln_rollup_naming *naming,
                     const struct kiln_rollup_active *active, uint32_t nodes_max,
                     struct kiln_rollup_drawn *drawn)
{
    struct drawing d = {.dict = dict, .naming = naming, .active = active, .budget = naming->budget};
    int r = open_names(&d);

    if (r == 0)
        r = take_nodes(&d, nodes_max);
    if (r == 0) {
        drawn->error_bound = d.n_heap ? d.nodes[d.heap[0]].total : 0;
        fold_rest(&d);
        r = walk(&d, drawn);
    }
#define FREE(array) kiln_array_free(d.budget, (void **)&d.array, &d.cap_##array, sizeof(*d.array))
    FREE(pieces);
    FREE(nodes);
    FREE(heap);
    FREE(of_name);
    FREE(stamps);
    FREE(stack);
#undef FREE
    return r;
}

/* Moves a node to its new place. */
static void move_node(struct kiln_rollup_drawn *t, uint32_t to, uint32_t from)
{
    t->names[to] = t->names[from];
    t->self[to] = t->self[from];
    t->folded[to] = t->folded[from];
    t->total[to] = t->total[from];
    t->order[to] = t->order[from];
}

/* Parents are larger than their children, or were taken before: whoever stays has his. */
int kiln_rollup_prune(struct kiln_rollup_drawn *t, uint32_t n, struct kiln_budget *budget)
{
    uint32_t *path = NULL; /* by depth: the new place, or NONE */
    uint32_t cap_path = 0, kept = 0, depth = 0, last = 0;
    int r =
        kiln_grow(budget, (void **)&path, &cap_path, (uint64_t)t->n + 1, sizeof(*path), UINT32_MAX);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < t->n; i++) {
        depth = i ? depth + 1 - t->ups[i] : 0;
        path[depth] = t->order[i] < n ? kept : NONE;
        if (t->order[i] == n)
            t->error_bound = t->total[i];
        if (t->order[i] < n) {
            move_node(t, kept, i);
            t->ups[kept++] = depth ? last + 1 - depth : 0;
            last = depth;
        } else if (path[depth - 1] != NONE) {
            t->folded[path[depth - 1]] += t->total[i];
        }
    }
    t->n = kept;
    kiln_array_free(budget, (void **)&path, &cap_path, sizeof(*path));
    return 0;
}

void kiln_rollup_drawn_done(struct kiln_rollup_drawn *drawn, struct kiln_budget *budget)
{
#define FREE(array)                                                                                \
    kiln_array_free(budget, (void **)&drawn->array, &drawn->cap_##array, sizeof(*drawn->array))
    FREE(names);
    FREE(ups);
    FREE(self);
    FREE(folded);
    FREE(total);
    FREE(order);
#undef FREE
}

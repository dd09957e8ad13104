/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes with the largest totals, out of trees that are far too large to be walked: best first.
 *
 * A group is all nodes, of all sources, with one path of names; each of them is a range of ranks in
 * its forest.  The groups at hand are in a heap by their totals.  The largest one is taken out,
 * belongs to the answer, and its children, found by jumping from sibling to sibling and merged by
 * name, come in.  Since no child is larger than its parent, what is taken out comes in the order of
 * totals, and of equals the less deep ones first: the first `nodes_max` are the answer.  Stacks
 * that were seen once are many, and all equal in both: those stay whose path has the smaller hash,
 * so that it does not matter in which order equals were met.  Whatever is left is folded into
 * "other" below its parent.
 *
 * Most children are too small ever to be taken out.  So groups are counted by about how large they
 * are; where as many as are wanted are known to be larger, smaller ones are forgotten at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "store/fund.h"
#include "store/merge_int.h"

#define CHECK_EVERY 1024u /* groups */
#define NONE        UINT32_MAX
#define SIZES       1024u /* of groups: sixteen from one power of two to the next */

/* The ranks from `start` on, and their sums. */
struct member {
    uint32_t source, start, end;
    uint32_t next;
    int64_t before, after; /* up to `start`, up to `end` */
};

struct group {
    int64_t total, self;
    int64_t kept_total; /* of the children that were taken out */
    uint32_t name;      /* of the answer */
    uint32_t parent, depth;
    uint64_t path; /* hash of the names down to here */
    uint32_t members;
    uint32_t kept;    /* the last child that was taken out */
    uint32_t sibling; /* the one taken out before */
};

struct cut {
    struct kiln_merging *m;
    struct kiln_budget budget;
    struct group *groups;
    struct member *members;
    uint32_t *heap;
    uint32_t *child_of; /* by name: a child of the group at hand, if it is one */
    uint32_t *order;    /* scratch: children to be sorted */
    uint32_t vacant;    /* members of groups that were taken out, for others; a list */
    uint32_t n_groups, cap_groups, n_members, cap_members, n_heap, cap_heap, cap_child_of;
    uint32_t n_child_of, n_kept, cap_order;
    uint32_t nodes_max;
    uint32_t by_size[SIZES];    /* groups that were ever in the heap */
    uint32_t least, n_at_least; /* so many of this size or larger are at least nodes_max */
    int64_t forgotten;          /* the largest total of a group that was too small */
    bool forgot;                /* there was one */
    size_t taken;               /* of the question's memory */
};

#define ROOM(c, array, need)                                                                       \
    (KILN_LIKELY((need) <= (c)->cap_##array)                                                       \
         ? 0                                                                                       \
         : grow((c), (void **)&(c)->array, &(c)->cap_##array, (need), sizeof(*(c)->array)))

/* What it grows to is the question's. */
static int grow(struct cut *c, void **array, uint32_t *cap, uint64_t need, size_t size)
{
    size_t before = c->budget.used;
    int r = kiln_grow(&c->budget, array, cap, need, size, UINT32_MAX - 1);

    if (r == 0)
        r = kiln_fund_take(c->m->fund, c->budget.used - before);
    if (r == 0)
        c->taken += c->budget.used - before;
    return r;
}

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t less(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* ---- the heap ---- */

static bool is_before(const struct cut *c, uint32_t a, uint32_t b)
{
    const struct group *x = &c->groups[a], *y = &c->groups[b];

    if (x->total != y->total)
        return x->total > y->total;
    return x->depth != y->depth ? x->depth < y->depth : x->path < y->path;
}

static int push(struct cut *c, uint32_t group)
{
    uint32_t at = c->n_heap;
    int r = ROOM(c, heap, (uint64_t)at + 1);

    if (r < 0)
        return r;
    c->n_heap++;
    while (at > 0) {
        uint32_t up = (at - 1) / 2;

        if (!is_before(c, group, c->heap[up]))
            break;
        c->heap[at] = c->heap[up];
        at = up;
    }
    c->heap[at] = group;
    return 0;
}

static uint32_t pop(struct cut *c)
{
    uint32_t top = c->heap[0], last = c->heap[--c->n_heap], at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= c->n_heap)
            break;
        if (child + 1 < c->n_heap && is_before(c, c->heap[child + 1], c->heap[child]))
            child++;
        if (!is_before(c, c->heap[child], last))
            break;
        c->heap[at] = c->heap[child];
        at = child;
    }
    c->heap[at] = last;
    return top;
}

/* ---- sizes ---- */

static uint32_t size_of(int64_t total)
{
    uint32_t log;

    if (total < 16)
        return total < 0 ? 0 : (uint32_t)total;
    log = 63 - (uint32_t)__builtin_clzll((uint64_t)total);
    return (log - 3) * 16 + (uint32_t)((uint64_t)total >> (log - 4) & 15);
}

static bool is_too_small(const struct cut *c, int64_t total)
{
    return size_of(total) < c->least;
}

static void count_size(struct cut *c, int64_t total)
{
    c->by_size[size_of(total)]++;
    c->n_at_least++;
    while (c->n_at_least - c->by_size[c->least] >= c->nodes_max)
        c->n_at_least -= c->by_size[c->least++];
}

/* ---- children ---- */

/* The child of the group at hand with this name. */
static int find_child(struct cut *c, uint32_t parent, uint32_t first, uint32_t name, uint32_t *ret)
{
    uint32_t known = c->n_child_of, at;
    int r = ROOM(c, child_of, (uint64_t)name + 1);

    if (r == 0)
        r = ROOM(c, groups, (uint64_t)c->n_groups + 1);
    if (r < 0)
        return r;
    if (name >= known) {
        memset(c->child_of + known, 0, (c->cap_child_of - known) * sizeof(*c->child_of));
        c->n_child_of = c->cap_child_of;
    }
    at = c->child_of[name];
    if (at < first || at >= c->n_groups || c->groups[at].name != name) {
        at = c->n_groups++;
        c->groups[at] = (struct group){.name = name,
                                       .parent = parent,
                                       .depth = c->groups[parent].depth + 1,
                                       .members = NONE,
                                       .kept = NONE};
        c->child_of[name] = at;
    }
    *ret = at;
    return 0;
}

/* A node below the group at hand. */
static int add_child(struct cut *c, uint32_t parent, uint32_t first, uint32_t forest_name,
                     struct member node)
{
    struct kiln_merge_source *s = &c->m->sources[node.source];
    int64_t total = less(node.after, node.before);
    uint32_t name, group = 0, at = c->vacant;
    int r;

    if (total == 0 || forest_name == s->forest->folded) /* no node; it is "other" already */
        return 0;
    r = kiln_merging_name(c->m, s, forest_name, &name);
    if (r == 0)
        r = find_child(c, parent, first, name, &group);
    if (r == 0 && at == NONE)
        r = ROOM(c, members, (uint64_t)c->n_members + 1);
    if (r < 0)
        return r;
    if (at == NONE)
        at = c->n_members++;
    else
        c->vacant = c->members[at].next;
    c->groups[group].total = plus(c->groups[group].total, total);
    node.next = c->groups[group].members;
    c->groups[group].members = at;
    c->members[at] = node;
    return 0;
}

/* The first child goes on with the stack that its parent begins with, or there is none, and that
 * stack ends here.  Fills where the next one begins. */
static int add_first(struct cut *c, uint32_t parent, uint32_t first, const struct member *node,
                     struct member *ret_next)
{
    const struct kiln_merge_source *s = &c->m->sources[node->source];
    const struct kiln_forest *f = s->forest;
    const struct kiln_forest_stack *stacks = f->stacks;
    uint32_t depth = c->groups[parent].depth, at = node->start + 1;
    uint32_t own = f->first[node->start] + depth - stacks[node->start].shared;
    bool goes_on = own < f->first[node->start + 1];
    struct member child = *node;

    if (goes_on) {
        while (at < node->end && stacks[at].shared > depth)
            at = stacks[at].below;
        child.end = at < node->end ? at : node->end;
    } else {
        child.end = at;
    }
    child.after = child.end == node->end ? node->after : s->upto[child.end];
    ret_next->start = child.end;
    ret_next->before = child.after;
    if (goes_on)
        return add_child(c, parent, first, f->own[own] & KILN_FOREST_NAME, child);
    c->groups[parent].self = plus(c->groups[parent].self, less(child.after, child.before));
    return 0;
}

/* The children of one node. */
static int add_children(struct cut *c, uint32_t parent, uint32_t first, struct member node)
{
    const struct kiln_forest_stack *stacks = c->m->sources[node.source].forest->stacks;
    const int64_t *upto = c->m->sources[node.source].upto;
    struct member child = node;
    int r = add_first(c, parent, first, &node, &child);

    while (r == 0 && child.start < node.end) {
        const struct kiln_forest_stack *at = &stacks[child.start];

        child.end = at->next < node.end ? at->next : node.end;
        child.after = child.end == node.end ? node.after : upto[child.end];
        r = add_child(c, parent, first, at->name, child);
        child.start = child.end;
        child.before = child.after;
    }
    return r;
}

static void forget_members(struct cut *c, uint32_t first)
{
    uint32_t last = first;

    while (c->members[last].next != NONE)
        last = c->members[last].next;
    c->members[last].next = c->vacant;
    c->vacant = first;
}

static uint64_t name_in_path(struct kiln_merging *m, uint32_t name)
{
    struct kiln_merge_name *n = &m->names[name];

    if (n->in_path == 0)
        n->in_path = kiln_node_name(n->name->name);
    return n->in_path;
}

/* The new groups, those from `first` on, go to the heap, or are forgotten. */
static int push_children(struct cut *c, uint32_t first)
{
    uint32_t n = c->n_groups;
    int r = 0;

    c->n_groups = first;
    for (uint32_t i = first; r == 0 && i < n; i++) {
        struct group *g = &c->groups[c->n_groups];

        if (is_too_small(c, c->groups[i].total)) {
            forget_members(c, c->groups[i].members);
            if (c->groups[i].total > c->forgotten)
                c->forgotten = c->groups[i].total;
            c->forgot = true;
            continue;
        }
        *g = c->groups[i];
        g->path = kiln_node_path(c->groups[g->parent].path, name_in_path(c->m, g->name));
        count_size(c, g->total);
        r = push(c, c->n_groups++);
    }
    return r;
}

/* Members are all over the memory: they are asked for while the group before is at work, */
static void foresee(const struct cut *c, uint32_t group)
{
    for (uint32_t i = c->groups[group].members; i != NONE; i = c->members[i].next) {
        const struct member *m = &c->members[i];
        const struct kiln_merge_source *s = &c->m->sources[m->source];

        __builtin_prefetch(&s->forest->first[m->start]);
        __builtin_prefetch(&s->forest->stacks[m->start]);
        __builtin_prefetch(&s->upto[m->start + 1]);
    }
}

/* and what they point to, before any of it is waited for. */
static void foresee_names(const struct cut *c, uint32_t group)
{
    for (uint32_t i = c->groups[group].members; i != NONE; i = c->members[i].next) {
        const struct member *m = &c->members[i];
        const struct kiln_forest *f = c->m->sources[m->source].forest;

        __builtin_prefetch(
            &f->own[f->first[m->start] + c->groups[group].depth - f->stacks[m->start].shared]);
    }
}

/* Takes a group into the answer. */
static int expand(struct cut *c, uint32_t group)
{
    uint32_t first = c->n_groups;
    int r = 0;

    foresee_names(c, group);
    if (c->n_heap)
        foresee(c, c->heap[0]);
    for (uint32_t i = c->groups[group].members, next; r == 0 && i != NONE; i = next) {
        struct member node = c->members[i];

        next = node.next;
        c->members[i].next = c->vacant;
        c->vacant = i;
        r = add_children(c, group, first, node);
    }
    if (r == 0)
        r = push_children(c, first);
    if (group) {
        struct group *parent = &c->groups[c->groups[group].parent];

        c->groups[group].sibling = parent->kept;
        parent->kept = group;
        parent->kept_total = plus(parent->kept_total, c->groups[group].total);
    }
    c->n_kept++;
    return r;
}

static int add_root(struct cut *c)
{
    int r = ROOM(c, groups, 1);

    if (r < 0)
        return r;
    c->groups[c->n_groups++] = (struct group){.members = NONE, .kept = NONE};
    for (uint32_t i = 0; r == 0 && i < c->m->n_sources; i++) {
        uint32_t n = c->m->sources[i].forest->n_stacks;

        if (n == 0)
            continue;
        r = ROOM(c, members, (uint64_t)c->n_members + 1);
        if (r < 0)
            return r;
        c->members[c->n_members] = (struct member){
            .source = i, .end = n, .next = c->groups[0].members, .after = c->m->sources[i].upto[n]};
        c->groups[0].members = c->n_members++;
        c->groups[0].total = plus(c->groups[0].total, c->m->sources[i].upto[n]);
    }
    return expand(c, 0);
}

static int choose(struct cut *c)
{
    int r = add_root(c);

    c->n_kept = 0; /* the root is there anyway */
    while (r == 0 && c->n_heap && c->n_kept < c->nodes_max) {
        r = expand(c, pop(c));
        if (r == 0 && c->n_kept % CHECK_EVERY == 0)
            r = kiln_leash_check(c->m->fund->leash);
    }
    return r;
}

/* ---- writing ---- */

static int by_name(const void *a, const void *b, void *context)
{
    const struct cut *c = context;
    const struct group *x = &c->groups[*(const uint32_t *)a], *y = &c->groups[*(const uint32_t *)b];

    return kiln_str_cmp(c->m->names[x->name].name->name, c->m->names[y->name].name->name);
}

/* Puts the children that were kept in the order of names, linked by `sibling`. */
static int sort_children(struct cut *c, uint32_t group)
{
    uint32_t n = 0;
    int r = 0;

    for (uint32_t i = c->groups[group].kept; r == 0 && i != NONE; i = c->groups[i].sibling) {
        r = ROOM(c, order, (uint64_t)n + 1);
        if (r == 0)
            c->order[n++] = i;
    }
    if (r < 0 || n < 2)
        return r;
    qsort_r(c->order, n, sizeof(*c->order), by_name, c);
    c->groups[group].kept = c->order[0];
    for (uint32_t i = 0; i < n; i++)
        c->groups[c->order[i]].sibling = i + 1 < n ? c->order[i + 1] : NONE;
    return 0;
}

static int put(struct cut *c, struct kiln_flame *flame, uint32_t group, uint32_t parent)
{
    const struct group *g = &c->groups[group];
    struct kiln_flame_node *node = &flame->nodes[flame->n_nodes++];
    int r = group ? kiln_flame_name(c->m, flame, g->name, &node->name) : 0;

    node->parent = parent;
    node->depth = g->depth;
    node->self = g->self;
    node->total = g->total;
    return r < 0 ? r : sort_children(c, group);
}

/* The last child: what was not kept. */
static int put_other(struct kiln_flame *flame, const struct group *g, uint32_t node)
{
    int64_t rest = less(less(g->total, g->self), g->kept_total);
    int r = 0;

    if (rest) {
        r = kiln_flame_other(flame);
        flame->nodes[flame->n_nodes] = (struct kiln_flame_node){.name = flame->other,
                                                                .parent = node,
                                                                .end = flame->n_nodes + 1,
                                                                .depth = g->depth + 1,
                                                                .self = rest,
                                                                .total = rest};
        flame->n_nodes++;
    }
    flame->nodes[node].end = flame->n_nodes;
    return r;
}

/* Preorder; a group's children are taken off its list one by one. */
static int write_nodes(struct cut *c, struct kiln_flame *flame)
{
    uint32_t group = 0, node = 0;
    int r = put(c, flame, 0, 0);

    while (r == 0) {
        struct group *g = &c->groups[group];

        if (g->kept != NONE) {
            group = g->kept;
            g->kept = c->groups[group].sibling;
            r = put(c, flame, group, node);
            node = flame->n_nodes - 1;
            continue;
        }
        r = put_other(flame, g, node);
        if (group == 0)
            break;
        node = flame->nodes[node].parent;
        group = g->parent;
    }
    return r;
}

int kiln_merging_cut(struct kiln_merging *m, uint32_t nodes_max, struct kiln_flame *flame)
{
    struct cut c = {
        .m = m, .budget = {.limit = m->budget.limit}, .vacant = NONE, .nodes_max = nodes_max};
    int r = choose(&c);

    if (r == 0) {
        flame->nodes = kiln_calloc(2 * ((size_t)c.n_kept + 1), sizeof(*flame->nodes));
        r = flame->nodes ? write_nodes(&c, flame) : -ENOMEM;
    }
    if (r == 0 && c.n_heap == 0 && !c.forgot)
        flame->nodes_all = flame->n_nodes;
    m->cut_bound = c.forgot && c.forgotten == 0 ? 1 : c.forgotten;
    if (c.n_heap && c.groups[c.heap[0]].total >= m->cut_bound)
        m->cut_bound = c.groups[c.heap[0]].total > 0 ? c.groups[c.heap[0]].total : 1;
#define FREE(array) kiln_array_free(&c.budget, (void **)&c.array, &c.cap_##array, sizeof(*c.array))
    FREE(groups);
    FREE(members);
    FREE(heap);
    FREE(child_of);
    FREE(order);
#undef FREE
    kiln_fund_return(m->fund, c.taken);
    return r;
}

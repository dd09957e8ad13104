/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The total of the last node that stays is found by partial sorting; then the nodes are moved
 * together in place, in one pass.  A node comes before its children and is at least as large, so
 * what stays is a tree; a node that goes takes its subtree with it.  Every "other" that is written
 * stands for at least one node that was read before it: the writing never overtakes the reading.
 */
#include "core/flame_fold.h"

#include <errno.h>

#include "base/sat.h"

/* A node whose subtree is being read. */
struct open_node {
    uint32_t at;  /* where it was written */
    uint32_t end; /* the node behind its subtree, as read */
    int64_t folded;
    bool has_folded;
};

struct folding {
    struct kiln_flame *flame;
    struct open_node *open;
    uint32_t n_open, written, other;
    int64_t limit;    /* the smallest total that may stay */
    uint32_t n_equal; /* how many of exactly that may */
};

static bool is_other(const struct kiln_flame *flame, const struct kiln_flame_node *node)
{
    return flame->other && node->name == flame->other;
}

/* The k-th largest (0: the largest) of values, which are put into another order. */
static int64_t select_largest(int64_t *values, uint32_t n, uint32_t k)
{
    uint32_t low = 0, high = n;

    while (high - low > 1) {
        int64_t pivot = values[low + (high - low) / 2];
        uint32_t larger = low, i = low, smaller = high;

        while (i < smaller) { /* larger | equal | unseen | smaller */
            int64_t v = values[i];

            if (v > pivot) {
                values[i++] = values[larger];
                values[larger++] = v;
            } else if (v < pivot) {
                values[i] = values[--smaller];
                values[smaller] = v;
            } else {
                i++;
            }
        }
        if (k < larger)
            high = larger;
        else if (k < smaller)
            return pivot;
        else
            low = smaller;
    }
    return values[low];
}

/* How many nodes may be folded at all, and how deep they lie. */
static uint32_t gather(const struct kiln_flame *flame, int64_t *totals, uint32_t *ret_depth)
{
    uint32_t n = 0, depth = 0;

    for (uint32_t i = 0; i < flame->n_nodes; i++) {
        const struct kiln_flame_node *node = &flame->nodes[i];

        depth = node->depth > depth ? node->depth : depth;
        if (!is_other(flame, node))
            totals[n++] = node->total;
    }
    *ret_depth = depth;
    return n;
}

static void find_limit(struct folding *f, int64_t *totals, uint32_t n, uint32_t nodes_max)
{
    f->limit = select_largest(totals, n, nodes_max - 1);
    f->n_equal = nodes_max;
    for (uint32_t i = 0; i < n; i++)
        f->n_equal -= totals[i] > f->limit;
}

static void close_node(struct folding *f)
{
    struct open_node *open = &f->open[--f->n_open];
    struct kiln_flame_node *nodes = f->flame->nodes;

    if (open->has_folded) {
        nodes[f->written] = (struct kiln_flame_node){.name = f->other,
                                                     .parent = open->at,
                                                     .end = f->written + 1,
                                                     .depth = nodes[open->at].depth + 1,
                                                     .self = open->folded,
                                                     .total = open->folded};
        f->written++;
    }
    nodes[open->at].end = f->written;
}

static bool stays(struct folding *f, const struct kiln_flame_node *node)
{
    if (is_other(f->flame, node) || node->total < f->limit)
        return false;
    if (node->total > f->limit)
        return true;
    if (f->n_equal == 0)
        return false;
    f->n_equal--;
    return true;
}

static void move_together(struct folding *f)
{
    struct kiln_flame *flame = f->flame;
    uint32_t n = flame->n_nodes;

    for (uint32_t i = 0; i < n;) {
        struct kiln_flame_node node = flame->nodes[i];

        while (f->n_open && f->open[f->n_open - 1].end <= i)
            close_node(f);
        if (i == 0 || stays(f, &node)) {
            f->open[f->n_open] = (struct open_node){.at = f->written, .end = node.end};
            node.parent = f->n_open ? f->open[f->n_open - 1].at : 0;
            flame->nodes[f->written++] = node;
            f->n_open++;
            i++;
        } else {
            struct open_node *parent = &f->open[f->n_open - 1];

            parent->folded = kiln_sat_add(parent->folded, node.total);
            parent->has_folded = true;
            i = node.end;
        }
    }
    while (f->n_open)
        close_node(f);
    flame->n_nodes = f->written;
}

/* The name of what is folded, where the flame has none yet. */
static int name_other(struct folding *f)
{
    struct kiln_flame *flame = f->flame;
    struct kiln_flame_name *names;

    f->other = flame->other;
    if (flame->other)
        return 0;
    names = kiln_realloc(flame->names, (flame->n_names + (size_t)1) * sizeof(*names));
    if (!names)
        return -ENOMEM;
    flame->names = names;
    names[flame->n_names] = (struct kiln_flame_name){.name = KILN_STR("other"),
                                                     .file = KILN_STR(""),
                                                     .module = KILN_STR(""),
                                                     .kind = KILN_STR("")};
    f->other = flame->n_names++;
    return 0;
}

int kiln_flame_fold(struct kiln_flame *flame, uint32_t nodes_max)
{
    struct folding f = {.flame = flame};
    uint32_t n, depth, all = flame->n_nodes;
    int64_t *totals;
    int r = 0;

    if (flame->n_nodes <= nodes_max || nodes_max == 0)
        return 0;
    totals = kiln_malloc(flame->n_nodes * sizeof(*totals));
    if (!totals)
        return -ENOMEM;
    n = gather(flame, totals, &depth);
    if (n > nodes_max) {
        find_limit(&f, totals, n, nodes_max);
        f.open = kiln_malloc((depth + (size_t)2) * sizeof(*f.open));
        r = f.open ? name_other(&f) : -ENOMEM;
        if (r == 0) {
            f.n_equal -= flame->nodes[0].total == f.limit; /* the root stays in any case */
            move_together(&f);
            flame->nodes_all = flame->nodes_all || flame->other ? flame->nodes_all : all;
            flame->other = f.other;
        }
        kiln_free(f.open);
    }
    kiln_free(totals);
    return r;
}

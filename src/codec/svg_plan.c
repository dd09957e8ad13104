/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First a threshold: the asked-for share, raised until no more than frames_max frames pass it. Then
 * one walk in preorder with a stack of open frames (one a depth), each of which knows where its
 * next callee begins and how much of it was folded so far; a frame is closed, and its folded
 * remainder placed, when the walk comes back to its depth or above.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/svg_plan.h"

struct open_frame {
    uint32_t node;
    uint32_t folded;
    double next_x;   /* where the next callee begins */
    double end_x;    /* where the frame itself ends: no callee goes past it */
    double folded_w; /* of callees that are not drawn */
};

struct walk {
    const struct kiln_tree *tree;
    struct kiln_svg_plan *plan;
    struct open_frame *open;
    uint32_t n_open;
    double whole;
    double least; /* frames of this width or less are folded */
    uint32_t depth_max;
};

static double width_of(const struct kiln_tree *tree, uint32_t node)
{
    const struct kiln_tree_node *n = &tree->nodes[node];
    double w = (double)n->total_b + (tree->is_diff ? (double)n->total_a : 0);

    return w > 0 ? w : 0;
}

static int wider_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* Raises walk->least until at most `frames_max` frames are wider; counts them in *ret_n. */
static int find_threshold(struct walk *walk, uint32_t frames_max, uint32_t *ret_n)
{
    const struct kiln_tree *tree = walk->tree;
    double *widths = kiln_malloc(tree->n_nodes * sizeof(*widths));
    uint32_t n = 0, kept = 0;

    if (!widths)
        return -ENOMEM;
    for (uint32_t i = 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].depth <= walk->depth_max && width_of(tree, i) > walk->least)
            widths[n++] = width_of(tree, i);
    if (n > frames_max) {
        qsort(widths, n, sizeof(*widths), wider_first);
        walk->least = widths[frames_max];
        while (kept < n && widths[kept] > walk->least)
            kept++;
        n = kept;
    }
    kiln_free(widths);
    *ret_n = n;
    return 0;
}

static void add_place(struct walk *walk, struct kiln_svg_place place)
{
    struct kiln_svg_plan *plan = walk->plan;

    if (place.depth > plan->max_depth)
        plan->max_depth = place.depth;
    plan->places[plan->n_places++] = place;
}

/* Closes the open frames until `depth` of them are left. */
static void close_to(struct walk *walk, uint32_t depth)
{
    while (walk->n_open > depth) {
        struct open_frame *frame = &walk->open[--walk->n_open];
        double w = frame->folded_w;

        if (w > frame->end_x - frame->next_x)
            w = frame->end_x - frame->next_x;
        if (frame->folded && w * walk->whole > walk->least)
            add_place(walk, (struct kiln_svg_place){.node = frame->node,
                                                    .folded = frame->folded,
                                                    .depth = walk->n_open + 1,
                                                    .x = frame->next_x,
                                                    .w = w});
    }
}

static void open_frame(struct walk *walk, uint32_t node, double w)
{
    struct open_frame *parent = walk->n_open ? &walk->open[walk->n_open - 1] : NULL;
    double x = parent ? parent->next_x : 0;

    if (parent && w > parent->end_x - x)
        w = parent->end_x - x;
    if (parent)
        parent->next_x += w;
    add_place(walk, (struct kiln_svg_place){.node = node, .depth = walk->n_open, .x = x, .w = w});
    walk->open[walk->n_open++] = (struct open_frame){.node = node, .next_x = x, .end_x = x + w};
}

static void place_all(struct walk *walk)
{
    const struct kiln_tree *tree = walk->tree;
    uint32_t i = 1;

    open_frame(walk, 0, 1);
    while (i < tree->n_nodes) {
        const struct kiln_tree_node *node = &tree->nodes[i];
        double w = width_of(tree, i);

        close_to(walk, node->depth);
        if (w > walk->least && node->depth <= walk->depth_max) {
            open_frame(walk, i, w / walk->whole);
            walk->plan->n_drawn++;
            i++;
        } else {
            walk->open[walk->n_open - 1].folded += node->subtree;
            walk->open[walk->n_open - 1].folded_w += w / walk->whole;
            i += node->subtree;
        }
    }
    close_to(walk, 0);
}

int kiln_svg_plan_init(const struct kiln_tree *tree, const struct kiln_svg_plan_opts *opts,
                       struct kiln_svg_plan *ret_plan)
{
    struct kiln_svg_plan plan = {0};
    struct walk walk = {.tree = tree, .plan = &plan, .depth_max = opts->depth_max};
    uint32_t depth = tree->max_depth < opts->depth_max ? tree->max_depth : opts->depth_max;
    uint32_t n;
    int r;

    walk.whole = width_of(tree, 0) > 0 ? width_of(tree, 0) : 1;
    walk.least = opts->min_share * walk.whole;
    r = find_threshold(&walk, opts->frames_max, &n);
    if (r < 0)
        return r;
    /* Every drawn frame may bring one folded frame, and so may the root. */
    plan.places = kiln_malloc(((size_t)n + 1) * 2 * sizeof(*plan.places));
    walk.open = kiln_malloc(((size_t)depth + 1) * sizeof(*walk.open));
    if (!plan.places || !walk.open) {
        kiln_free(plan.places);
        kiln_free(walk.open);
        return -ENOMEM;
    }
    place_all(&walk);
    kiln_free(walk.open);
    *ret_plan = plan;
    return 0;
}

void kiln_svg_plan_done(struct kiln_svg_plan *plan)
{
    kiln_free(plan->places);
    *plan = (struct kiln_svg_plan){0};
}

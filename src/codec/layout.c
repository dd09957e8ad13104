/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps, after Sugiyama:
 *
 *   1. break cycles: a depth-first walk, from boxes that nobody calls and then from the heaviest,
 *      turns edges that lead back to an open box;
 *   2. layers: a box is one below the lowest of its callers; a box without callers is then moved
 *      down to just above its uppermost callee;
 *   3. bends: an edge over several layers gets a vertex in each layer between;
 *   4. order in each layer, and x (layout_order.c, layout_place.c);
 *   5. y by the tallest box of each layer, and the points of the edges: they leave a box at its
 *      lower side, in the order of where they go, so that they do not cross at once.
 */
#include <errno.h>

#include "base/mem.h"
#include "codec/layout_int.h"

#define BEND_WIDTH 6.0
#define PORTS      0.6 /* the middle part of a box's side where edges leave and arrive */

enum { UNSEEN, OPEN, CLOSED };

/* What is known of a box. */
struct box {
    uint32_t first, n; /* its edges downwards, in fan */
    uint32_t walked;   /* of those, the ones the walk has seen */
    uint32_t layer;
    bool is_called;
    uint8_t state;
};

struct work {
    struct kiln_layout *l;
    struct box *boxes;
    uint32_t *fan; /* edges by the box they leave */
    uint32_t *stack;
    uint32_t *finished; /* boxes in the order in which the walk left them */
    uint32_t n_finished;
    struct kiln_layers layers;
};

static uint32_t upper_of(const struct kiln_layout_edge *edge)
{
    return edge->upwards ? edge->to : edge->from;
}

static uint32_t lower_of(const struct kiln_layout_edge *edge)
{
    return edge->upwards ? edge->from : edge->to;
}

/* ---- 1: cycles ---- */

/* Sorts the edges by their upper box. */
static void sort_fan(struct work *w)
{
    const struct kiln_layout *l = w->l;
    uint32_t first = 0;

    for (uint32_t i = 0; i < l->n_boxes; i++)
        w->boxes[i] = (struct box){0};
    for (uint32_t i = 0; i < l->n_edges; i++) {
        w->boxes[upper_of(&l->edges[i])].n++;
        w->boxes[lower_of(&l->edges[i])].is_called = true;
    }
    for (uint32_t i = 0; i < l->n_boxes; i++) {
        w->boxes[i].first = first;
        first += w->boxes[i].n;
        w->boxes[i].n = 0;
    }
    for (uint32_t i = 0; i < l->n_edges; i++) {
        struct box *box = &w->boxes[upper_of(&l->edges[i])];

        w->fan[box->first + box->n++] = i;
    }
}

static void walk_from(struct work *w, uint32_t root)
{
    uint32_t depth = 0;

    if (w->boxes[root].state != UNSEEN)
        return;
    w->stack[depth++] = root;
    w->boxes[root].state = OPEN;
    while (depth) {
        struct box *box = &w->boxes[w->stack[depth - 1]];
        struct kiln_layout_edge *edge;

        if (box->walked == box->n) {
            box->state = CLOSED;
            w->finished[w->n_finished++] = w->stack[--depth];
            continue;
        }
        edge = &w->l->edges[w->fan[box->first + box->walked++]];
        if (w->boxes[edge->to].state == OPEN) {
            edge->upwards = true;
        } else if (w->boxes[edge->to].state == UNSEEN) {
            w->boxes[edge->to].state = OPEN;
            w->stack[depth++] = edge->to;
        }
    }
}

static void break_cycles(struct work *w)
{
    for (uint32_t i = 0; i < w->l->n_edges; i++)
        w->l->edges[i].upwards = false;
    sort_fan(w);
    for (uint32_t i = 0; i < w->l->n_boxes; i++)
        if (!w->boxes[i].is_called)
            walk_from(w, i);
    for (uint32_t i = 0; i < w->l->n_boxes; i++)
        walk_from(w, i);
    sort_fan(w);
}

/* ---- 2: layers ---- */

static void lower_source(struct work *w, struct box *box)
{
    uint32_t uppermost = UINT32_MAX;

    for (uint32_t k = 0; k < box->n; k++) {
        uint32_t layer = w->boxes[lower_of(&w->l->edges[w->fan[box->first + k]])].layer;

        uppermost = layer < uppermost ? layer : uppermost;
    }
    if (!box->is_called && box->n)
        box->layer = uppermost - 1;
}

/* The walk left every box after all that are below it: backwards, callers come first. */
static void assign_layers(struct work *w)
{
    for (uint32_t i = w->n_finished; i-- > 0;) {
        const struct box *box = &w->boxes[w->finished[i]];

        for (uint32_t k = 0; k < box->n; k++) {
            struct box *lower = &w->boxes[lower_of(&w->l->edges[w->fan[box->first + k]])];

            if (lower->layer <= box->layer)
                lower->layer = box->layer + 1;
        }
    }
    for (uint32_t i = 0; i < w->l->n_boxes; i++)
        lower_source(w, &w->boxes[i]);
    for (uint32_t i = 0; i < w->l->n_boxes; i++)
        if (w->boxes[i].layer >= w->layers.n_layers)
            w->layers.n_layers = w->boxes[i].layer + 1;
}

/* ---- 3: bends ---- */

static int make_layers(struct work *w)
{
    struct kiln_layers *layers = &w->layers;
    size_t bends = 0;

    for (uint32_t i = 0; i < w->l->n_edges; i++) {
        const struct kiln_layout_edge *edge = &w->l->edges[i];

        bends += w->boxes[lower_of(edge)].layer - w->boxes[upper_of(edge)].layer - 1;
    }
    layers->vertices = kiln_calloc(w->l->n_boxes + bends + 1, sizeof(*layers->vertices));
    layers->segments = kiln_calloc(w->l->n_edges + bends + 1, sizeof(*layers->segments));
    layers->links = kiln_calloc(2 * (w->l->n_edges + bends) + 1, sizeof(*layers->links));
    layers->order = kiln_calloc(w->l->n_boxes + bends + 1, sizeof(*layers->order));
    layers->starts = kiln_calloc((size_t)layers->n_layers + 2, sizeof(*layers->starts));
    w->l->points = kiln_calloc(2 * (size_t)w->l->n_edges + bends + 1, sizeof(*w->l->points));
    if (!layers->vertices || !layers->segments || !layers->links || !layers->order ||
        !layers->starts || !w->l->points)
        return -ENOMEM;
    return 0;
}

static uint32_t add_vertex(struct kiln_layers *layers, double width, uint32_t layer)
{
    layers->vertices[layers->n_vertices] = (struct kiln_vertex){.w = width, .layer = layer};
    return layers->n_vertices++;
}

static void add_segment(struct kiln_layers *layers, uint32_t upper, uint32_t lower, double weight)
{
    layers->segments[layers->n_segments++] =
        (struct kiln_segment){.upper = upper, .lower = lower, .weight = weight};
    layers->vertices[upper].n_below++;
    layers->vertices[lower].n_above++;
}

/* A chain of segments from the upper box to the lower one; its first is edge->first for now. */
static void add_chain(struct work *w, struct kiln_layout_edge *edge)
{
    struct kiln_layers *layers = &w->layers;
    uint32_t at = upper_of(edge), end = lower_of(edge);

    edge->first = layers->n_segments;
    while (layers->vertices[at].layer + 1 < layers->vertices[end].layer) {
        uint32_t bend = add_vertex(layers, BEND_WIDTH, layers->vertices[at].layer + 1);

        layers->vertices[bend].is_bend = true;
        add_segment(layers, at, bend, edge->weight);
        at = bend;
    }
    add_segment(layers, at, end, edge->weight);
    edge->n = layers->n_segments - edge->first;
}

static void fill_layers(struct work *w)
{
    struct kiln_layers *layers = &w->layers;
    uint32_t first = 0;

    for (uint32_t i = 0; i < w->l->n_boxes; i++)
        add_vertex(layers, w->l->boxes[i].w, w->boxes[i].layer);
    for (uint32_t i = 0; i < w->l->n_edges; i++)
        add_chain(w, &w->l->edges[i]);
    for (uint32_t i = 0; i < layers->n_vertices; i++) {
        struct kiln_vertex *v = &layers->vertices[i];

        v->first_above = first;
        v->first_below = first + v->n_above;
        first += v->n_above + v->n_below;
        v->n_above = v->n_below = 0;
        layers->starts[v->layer + 1]++;
    }
    for (uint32_t i = 0; i < layers->n_segments; i++) {
        struct kiln_vertex *upper = &layers->vertices[layers->segments[i].upper];
        struct kiln_vertex *lower = &layers->vertices[layers->segments[i].lower];

        layers->links[upper->first_below + upper->n_below++] = i;
        layers->links[lower->first_above + lower->n_above++] = i;
    }
    for (uint32_t i = 0; i < layers->n_layers; i++)
        layers->starts[i + 1] += layers->starts[i];
}

/* ---- 5: y, points ---- */

static int stack_layers(struct work *w, double **ret_middles)
{
    struct kiln_layers *layers = &w->layers;
    double *middles = kiln_calloc((size_t)layers->n_layers + 1, sizeof(*middles)), y = 0;

    if (!middles)
        return -ENOMEM;
    for (uint32_t i = 0; i < w->l->n_boxes; i++)
        if (w->l->boxes[i].h > middles[w->boxes[i].layer])
            middles[w->boxes[i].layer] = w->l->boxes[i].h;
    for (uint32_t i = 0; i < layers->n_layers; i++) {
        double h = middles[i];

        middles[i] = y + h / 2;
        y += h + w->l->gap_y;
    }
    w->l->height = layers->n_layers ? y - w->l->gap_y : 0;
    *ret_middles = middles;
    return 0;
}

/* Where segment `segment` meets box vertex `at`: its rank among the ends on that side. */
static double port_x(const struct kiln_layers *layers, uint32_t at, uint32_t segment, bool below)
{
    const struct kiln_vertex *v = &layers->vertices[at];
    uint32_t first = below ? v->first_below : v->first_above;
    uint32_t n = below ? v->n_below : v->n_above;
    double mine = 0, rank = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < n; i++) {
            const struct kiln_segment *s = &layers->segments[layers->links[first + i]];
            double x = layers->vertices[below ? s->lower : s->upper].x;

            if (pass == 0 && layers->links[first + i] == segment)
                mine = x;
            if (pass == 1)
                rank += x < mine;
        }
    }
    return v->x + (n > 1 ? v->w * PORTS * (rank / (n - 1) - 0.5) : 0);
}

static void add_points(struct work *w, const double *middles)
{
    const struct kiln_layers *layers = &w->layers;
    uint32_t n_points = 0;

    for (uint32_t i = 0; i < w->l->n_edges; i++) {
        struct kiln_layout_edge *edge = &w->l->edges[i];
        uint32_t segment = edge->first, last = edge->first + edge->n - 1;
        uint32_t upper = upper_of(edge), lower = lower_of(edge);
        struct kiln_point *points = w->l->points + n_points;
        uint32_t n = 0;

        points[n++] = (struct kiln_point){port_x(layers, upper, segment, true),
                                          w->l->boxes[upper].y + w->l->boxes[upper].h / 2};
        for (; segment < last; segment++) {
            const struct kiln_vertex *bend = &layers->vertices[layers->segments[segment].lower];

            points[n++] = (struct kiln_point){bend->x, middles[bend->layer]};
        }
        points[n++] = (struct kiln_point){port_x(layers, lower, last, false),
                                          w->l->boxes[lower].y - w->l->boxes[lower].h / 2};
        edge->first = n_points;
        edge->n = n;
        n_points += n;
    }
}

/* Moves everything so that it begins at 0, and hands out the places. */
static int finish(struct work *w)
{
    struct kiln_layers *layers = &w->layers;
    double left = 0, right = 0, *middles;
    int r = stack_layers(w, &middles);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < layers->n_vertices; i++) {
        const struct kiln_vertex *v = &layers->vertices[i];

        left = i == 0 || v->x - v->w / 2 < left ? v->x - v->w / 2 : left;
        right = i == 0 || v->x + v->w / 2 > right ? v->x + v->w / 2 : right;
    }
    for (uint32_t i = 0; i < layers->n_vertices; i++)
        layers->vertices[i].x -= left;
    w->l->width = right - left;
    for (uint32_t i = 0; i < w->l->n_boxes; i++) {
        w->l->boxes[i].x = layers->vertices[i].x;
        w->l->boxes[i].y = middles[layers->vertices[i].layer];
    }
    add_points(w, middles);
    kiln_free(middles);
    return 0;
}

static void work_done(struct work *w)
{
    kiln_free(w->boxes);
    kiln_free(w->fan);
    kiln_free(w->stack);
    kiln_free(w->finished);
    kiln_free(w->layers.vertices);
    kiln_free(w->layers.segments);
    kiln_free(w->layers.links);
    kiln_free(w->layers.order);
    kiln_free(w->layers.starts);
}

static int work_init(struct work *w, struct kiln_layout *l)
{
    size_t n = (size_t)l->n_boxes + 1;

    *w = (struct work){.l = l, .layers.gap_x = l->gap_x};
    w->boxes = kiln_calloc(n, sizeof(*w->boxes));
    w->fan = kiln_calloc((size_t)l->n_edges + 1, sizeof(*w->fan));
    w->stack = kiln_calloc(n, sizeof(*w->stack));
    w->finished = kiln_calloc(n, sizeof(*w->finished));
    return w->boxes && w->fan && w->stack && w->finished ? 0 : -ENOMEM;
}

int kiln_layout_run(struct kiln_layout *layout)
{
    struct work w;
    int r = work_init(&w, layout);

    layout->points = NULL;
    if (r == 0) {
        break_cycles(&w);
        assign_layers(&w);
        r = make_layers(&w);
    }
    if (r == 0) {
        fill_layers(&w);
        r = kiln_layers_sort(&w.layers);
    }
    if (r == 0)
        r = kiln_layers_place(&w.layers);
    if (r == 0)
        r = finish(&w);
    work_done(&w);
    if (r < 0)
        kiln_layout_done(layout);
    return r;
}

void kiln_layout_done(struct kiln_layout *layout)
{
    kiln_free(layout->points);
    layout->points = NULL;
}

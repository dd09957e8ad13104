/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x of every vertex, the order in its layer given.
 *
 * Each vertex would like to be where its neighbours above and below are on average.  Within a layer
 * that is least squares under "keep your distance": once the distances are taken off, what is left
 * must not decrease from left to right, and the best such row is found by pooling neighbours that
 * are in each other's way into blocks that move as one.  Sweeps down and up carry it through the
 * layers until it has settled.
 */
#include <errno.h>

#include "base/mem.h"
#include "codec/layout_int.h"

#define SWEEPS      24
#define BEND_WEIGHT 4.0 /* long edges should be straight */
#define BELOW       0.3 /* chains hang straight below their first box, rather than aslant */

/* Neighbours that move as one: their mean is sum / weight. */
struct block {
    double sum, weight;
    uint32_t n;
};

static bool joins_bends(const struct kiln_layers *layers, uint32_t segment)
{
    const struct kiln_segment *s = &layers->segments[segment];

    return layers->vertices[s->upper].is_bend && layers->vertices[s->lower].is_bend;
}

/* Adds where the neighbours on one side want the vertex. */
static void add_wishes(const struct kiln_layers *layers, const struct kiln_vertex *v, bool above,
                       double factor, struct block *wish)
{
    uint32_t n = above ? v->n_above : v->n_below;
    uint32_t first = above ? v->first_above : v->first_below;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t segment = layers->links[first + k];
        const struct kiln_segment *s = &layers->segments[segment];
        double weight = s->weight * (joins_bends(layers, segment) ? BEND_WEIGHT : 1) * factor;

        wish->sum += weight * layers->vertices[above ? s->upper : s->lower].x;
        wish->weight += weight;
    }
}

static struct block wish_of(const struct kiln_layers *layers, const struct kiln_vertex *v,
                            bool above, bool both)
{
    struct block wish = {.n = 1};

    if (above || both)
        add_wishes(layers, v, true, 1, &wish);
    if (!above || both)
        add_wishes(layers, v, false, both ? BELOW : 1, &wish);
    if (wish.weight <= 0)
        wish = (struct block){.sum = v->x * 1e-3, .weight = 1e-3, .n = 1};
    return wish;
}

static double distance(const struct kiln_layers *layers, const struct kiln_vertex *left,
                       const struct kiln_vertex *right)
{
    return (left->w + right->w) / 2 + layers->gap_x;
}

static void place_layer(struct kiln_layers *layers, uint32_t layer, bool above, bool both,
                        struct block *blocks)
{
    uint32_t first = layers->starts[layer], end = layers->starts[layer + 1];
    uint32_t n = 0, at = first;
    double offset = 0;

    for (uint32_t i = first; i < end; i++) {
        const struct kiln_vertex *v = &layers->vertices[layers->order[i]];
        struct block wish = wish_of(layers, v, above, both);

        if (i > first)
            offset += distance(layers, &layers->vertices[layers->order[i - 1]], v);
        wish.sum -= offset * wish.weight;
        while (n && blocks[n - 1].sum * wish.weight >= wish.sum * blocks[n - 1].weight) {
            n--;
            wish.sum += blocks[n].sum;
            wish.weight += blocks[n].weight;
            wish.n += blocks[n].n;
        }
        blocks[n++] = wish;
    }
    offset = 0;
    for (uint32_t b = 0; b < n; b++) {
        for (uint32_t k = 0; k < blocks[b].n; k++, at++) {
            struct kiln_vertex *v = &layers->vertices[layers->order[at]];

            if (at > first)
                offset += distance(layers, &layers->vertices[layers->order[at - 1]], v);
            v->x = blocks[b].sum / blocks[b].weight + offset;
        }
    }
}

static void place_side_by_side(struct kiln_layers *layers)
{
    for (uint32_t layer = 0; layer < layers->n_layers; layer++) {
        double x = 0;

        for (uint32_t i = layers->starts[layer]; i < layers->starts[layer + 1]; i++) {
            struct kiln_vertex *v = &layers->vertices[layers->order[i]];

            v->x = x + v->w / 2;
            x += v->w + layers->gap_x;
        }
    }
}

int kiln_layers_place(struct kiln_layers *layers)
{
    struct block *blocks = kiln_malloc(((size_t)layers->n_vertices + 1) * sizeof(*blocks));
    uint32_t n = layers->n_layers;

    if (!blocks)
        return -ENOMEM;
    place_side_by_side(layers);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool down = sweep % 2 == 0, both = sweep >= SWEEPS / 3;

        for (uint32_t i = 0; i < n; i++)
            place_layer(layers, down ? i : n - 1 - i, down, both, blocks);
    }
    kiln_free(blocks);
    return 0;
}

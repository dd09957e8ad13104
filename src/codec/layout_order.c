/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in each layer: sweeps down and up sort a layer by where its neighbours in the layer
 * before are on average (the barycentre).  The order with the fewest crossings is kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "codec/layout_int.h"

#define SWEEPS 16

/* A vertex of a layer that is being sorted. */
struct entry {
    double key;
    uint32_t place, vertex;
};

struct sorter {
    struct kiln_layers *layers;
    uint32_t *best;    /* the best order so far */
    uint32_t *counts;  /* a Fenwick tree over the places of a layer */
    struct entry *row; /* a layer, for sorting */
};

static void number_places(struct kiln_layers *layers)
{
    for (uint32_t layer = 0; layer < layers->n_layers; layer++)
        for (uint32_t i = layers->starts[layer]; i < layers->starts[layer + 1]; i++)
            layers->vertices[layers->order[i]].place = i - layers->starts[layer];
}

/* Vertices in the order of a walk down from the boxes: what belongs together starts together. */
static void first_order(struct kiln_layers *layers, uint32_t *stack)
{
    uint32_t *filled = stack + layers->n_vertices + 1;
    uint32_t depth;

    for (uint32_t i = 0; i < layers->n_vertices; i++)
        layers->vertices[i].place = UINT32_MAX;
    for (uint32_t i = 0; i < layers->n_layers; i++)
        filled[i] = layers->starts[i];
    for (uint32_t root = 0; root < layers->n_vertices; root++) {
        depth = 0;
        stack[depth++] = root;
        while (depth) {
            uint32_t at = stack[--depth];
            struct kiln_vertex *v = &layers->vertices[at];

            if (v->place != UINT32_MAX)
                continue;
            v->place = 0;
            layers->order[filled[v->layer]++] = at;
            for (uint32_t k = v->n_below; k-- > 0;) {
                uint32_t lower = layers->segments[layers->links[v->first_below + k]].lower;

                if (layers->vertices[lower].place == UINT32_MAX && depth < layers->n_vertices)
                    stack[depth++] = lower;
            }
        }
    }
    number_places(layers);
}

/* ---- crossings ---- */

/* Pairs of segments between `layer` and the next that cross, by a Fenwick tree of lower ends. */
static uint64_t count_between(struct sorter *s, uint32_t layer)
{
    const struct kiln_layers *layers = s->layers;
    uint32_t n = layers->starts[layer + 2] - layers->starts[layer + 1], inserted = 0;
    uint64_t crossings = 0;

    memset(s->counts, 0, ((size_t)n + 1) * sizeof(*s->counts));
    for (uint32_t i = layers->starts[layer]; i < layers->starts[layer + 1]; i++) {
        const struct kiln_vertex *v = &layers->vertices[layers->order[i]];

        for (uint32_t k = 0; k < v->n_below; k++) {
            uint32_t lower = layers->segments[layers->links[v->first_below + k]].lower;
            uint32_t upto = 0;

            for (uint32_t at = layers->vertices[lower].place + 1; at; at &= at - 1)
                upto += s->counts[at];
            crossings += inserted - upto;
        }
        for (uint32_t k = 0; k < v->n_below; k++) {
            uint32_t lower = layers->segments[layers->links[v->first_below + k]].lower;

            for (uint32_t at = layers->vertices[lower].place + 1; at <= n; at += at & -at)
                s->counts[at]++;
            inserted++;
        }
    }
    return crossings;
}

static uint64_t count_crossings(struct sorter *s)
{
    uint64_t crossings = 0;

    for (uint32_t layer = 0; layer + 1 < s->layers->n_layers; layer++)
        crossings += count_between(s, layer);
    return crossings;
}

/* ---- sweeps ---- */

static double barycentre(const struct kiln_layers *layers, const struct kiln_vertex *v, bool above)
{
    uint32_t n = above ? v->n_above : v->n_below;
    uint32_t first = above ? v->first_above : v->first_below;
    double sum = 0;

    for (uint32_t k = 0; k < n; k++) {
        const struct kiln_segment *s = &layers->segments[layers->links[first + k]];

        sum += layers->vertices[above ? s->upper : s->lower].place;
    }
    return n ? sum / n : v->place;
}

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void sort_layer(struct sorter *s, uint32_t layer, bool above)
{
    struct kiln_layers *layers = s->layers;
    uint32_t first = layers->starts[layer], n = layers->starts[layer + 1] - first;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t vertex = layers->order[first + i];

        s->row[i] = (struct entry){barycentre(layers, &layers->vertices[vertex], above), i, vertex};
    }
    qsort(s->row, n, sizeof(*s->row), by_key);
    for (uint32_t i = 0; i < n; i++) {
        layers->order[first + i] = s->row[i].vertex;
        layers->vertices[s->row[i].vertex].place = i;
    }
}

static void sweep(struct sorter *s, bool down)
{
    uint32_t n = s->layers->n_layers;

    for (uint32_t i = 1; i < n; i++)
        sort_layer(s, down ? i : n - 1 - i, down);
}

static int run(struct sorter *s)
{
    struct kiln_layers *layers = s->layers;
    size_t bytes = layers->n_vertices * sizeof(*layers->order);
    uint64_t least = count_crossings(s);

    memcpy(s->best, layers->order, bytes);
    for (int i = 0; i < SWEEPS && least; i++) {
        uint64_t crossings;

        sweep(s, i % 2 == 0);
        crossings = count_crossings(s);
        if (crossings < least) {
            least = crossings;
            memcpy(s->best, layers->order, bytes);
        }
    }
    memcpy(layers->order, s->best, bytes);
    number_places(layers);
    return 0;
}

int kiln_layers_sort(struct kiln_layers *layers)
{
    struct sorter s = {.layers = layers};
    size_t n = (size_t)layers->n_vertices + 1;
    int r = -ENOMEM;

    s.best = kiln_malloc(n * sizeof(*s.best));
    s.counts = kiln_malloc((2 * n + layers->n_layers) * sizeof(*s.counts));
    s.row = kiln_malloc(n * sizeof(*s.row));
    if (s.best && s.counts && s.row) {
        first_order(layers, s.counts);
        r = run(&s);
    }
    kiln_free(s.best);
    kiln_free(s.counts);
    kiln_free(s.row);
    return r;
}

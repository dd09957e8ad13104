/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_int - what the two halves of the layout share: vertices in layers, joined by segments.
 *
 * A vertex is a box, or a place where a long edge crosses a layer ("bend").  A segment joins
 * vertices of neighbouring layers; each vertex lists its segments to the layer above and below.
 *
 * Threads: plain data.
 */
#ifndef KILN_CODEC_LAYOUT_INT_H
#define KILN_CODEC_LAYOUT_INT_H

#include "codec/layout.h"

struct kiln_vertex {
    bool is_bend;                                        /* not a box */
    double w;                                            /* room it takes in its layer */
    double x;                                            /* centre */
    uint32_t layer;                                      /* 0 is the uppermost */
    uint32_t place;                                      /* in its layer */
    uint32_t first_above, n_above, first_below, n_below; /* into links */
};

struct kiln_segment {
    uint32_t upper, lower; /* vertices */
    double weight;
};

struct kiln_layers {
    struct kiln_vertex *vertices; /* boxes first, then bends */
    struct kiln_segment *segments;
    uint32_t *links;  /* segments by vertex */
    uint32_t *order;  /* vertices by layer and place */
    uint32_t *starts; /* where each layer begins in order; n_layers + 1 of them */
    uint32_t n_vertices, n_segments, n_layers;
    double gap_x;
};

/* Finds an order of each layer with few crossings.  Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_layers_sort(struct kiln_layers *layers);

/* Gives every vertex its x, in that order.  Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_layers_place(struct kiln_layers *layers);

#endif /* KILN_CODEC_LAYOUT_INT_H */

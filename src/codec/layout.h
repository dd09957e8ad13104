/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout - places the boxes of a directed graph in layers, callers above callees, and bends the
 * edges around them.
 *
 * The caller fills sizes and edges; the layout fills places.  Cycles are no trouble: some edge of
 * each runs upwards.  Work is bounded: a few sweeps over boxes and the places where edges cross
 * layers.
 *
 * Threads: plain data.
 */
#ifndef KILN_CODEC_LAYOUT_H
#define KILN_CODEC_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct kiln_layout_box {
    double w, h; /* in */
    double x, y; /* out: the centre */
};

struct kiln_point {
    double x, y;
};

struct kiln_layout_edge {
    uint32_t from, to; /* in: boxes, not the same one */
    double weight;     /* in: heavy edges are kept short and straight */
    uint32_t first, n; /* out: its points, downwards */
    bool upwards;      /* out: the points run from `to` to `from` */
};

struct kiln_layout {
    struct kiln_layout_box *boxes;  /* the caller's, the heaviest first */
    struct kiln_layout_edge *edges; /* the caller's */
    uint32_t n_boxes, n_edges;
    double gap_x, gap_y;       /* in: between neighbours, between layers */
    struct kiln_point *points; /* out */
    double width, height;      /* out: everything lies from 0,0 to here */
};

/* Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_layout_run(struct kiln_layout *layout);
void kiln_layout_done(struct kiln_layout *layout);

#endif /* KILN_CODEC_LAYOUT_H */

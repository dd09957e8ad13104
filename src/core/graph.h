/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph - a view as a call graph: every frame once, with an edge for who calls whom.
 *
 * Only the heaviest frames are kept.  Where a stack runs through frames that are not, the edge goes
 * from the last kept caller to the next kept callee and is `indirect` unless some stack also has
 * the call itself.  A frame or a call that occurs several times in one stack (recursion) counts
 * once.
 *
 * Threads: immutable once made.  It borrows frames from the view.
 */
#ifndef KILN_CORE_GRAPH_H
#define KILN_CORE_GRAPH_H

#include "core/view.h"

#define KILN_CALL_GRAPH_NODES_MAX 512

struct kiln_call_graph_node {
    uint32_t frame; /* into view->frames */
    int64_t self;
    int64_t total;
};

struct kiln_call_graph_edge {
    uint32_t from, to; /* nodes; equal where a frame calls itself */
    int64_t value;
    bool indirect;
};

struct kiln_call_graph {
    const struct kiln_view *view;
    struct kiln_call_graph_node *nodes; /* largest total first */
    struct kiln_call_graph_edge *edges; /* largest value first */
    uint32_t n_nodes, n_edges;
    uint32_t dropped_nodes; /* frames of the view that are not nodes */
    uint32_t dropped_edges; /* edges between nodes that are too light, or implied by a longer way */
};

struct kiln_call_graph_opts {
    uint32_t nodes_max; /* 0: 80; at most KILN_CALL_GRAPH_NODES_MAX */
    double node_share;  /* of the total, nodes below are dropped; 0: 0.005; negative: none */
    double edge_share;  /* the same of edges; 0: 0.001.  A node's heaviest caller is always kept. */
};

/* `opts` may be NULL.  Returns 0 or -ENOMEM. */
KILN_CHECK int kiln_call_graph_new(const struct kiln_view *view,
                                   const struct kiln_call_graph_opts *opts,
                                   struct kiln_call_graph **ret_graph);
void kiln_call_graph_free(struct kiln_call_graph *graph);

#endif /* KILN_CORE_GRAPH_H */

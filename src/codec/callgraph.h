/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callgraph - the call graph as one SVG file, laid out here: no Graphviz needed.
 *
 * Boxes are functions, in the colours of the flame graph, with a bar for what they spent
 * themselves; edges are as wide as what passes through them.  In a browser it pans, zooms and shows
 * the callers and callees of what the pointer is on.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_CALLGRAPH_H
#define KILN_CODEC_CALLGRAPH_H

#include "base/buf.h"
#include "core/graph.h"

struct kiln_callgraph_opts {
    const char *title; /* what the profile is of; NULL: not said */
    struct kiln_call_graph_opts graph;
};

/* `opts` may be NULL.  Returns 0, -ENOMEM or KILN_E_LIMIT where `out` is full. */
KILN_CHECK int kiln_callgraph_encode(const struct kiln_view *view,
                                     const struct kiln_callgraph_opts *opts, struct kiln_buf *out,
                                     struct kiln_err *err);

#endif /* KILN_CODEC_CALLGRAPH_H */

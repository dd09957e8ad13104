/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dot - the call graph as a Graphviz file, for `dot -Tsvg`.
 *
 * Nodes are as large as what they spent themselves, edges as wide as what passes through them; what
 * was too light to keep is said in the legend.
 *
 * Threads: no state.
 */
#ifndef KILN_CODEC_DOT_H
#define KILN_CODEC_DOT_H

#include "base/buf.h"
#include "core/graph.h"

struct kiln_dot_opts {
    const char *title; /* what the profile is of; NULL: not said */
    struct kiln_call_graph_opts graph;
};

/* `opts` may be NULL.  Returns 0, -ENOMEM or KILN_E_LIMIT where `out` is full. */
KILN_CHECK int kiln_dot_encode(const struct kiln_view *view, const struct kiln_dot_opts *opts,
                               struct kiln_buf *out, struct kiln_err *err);

#endif /* KILN_CODEC_DOT_H */

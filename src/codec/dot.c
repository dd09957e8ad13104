/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: a digraph with a legend box, then a line a node and a line an edge.
 *
 *   N1 [label="name\nself 1.2s (3.4 %)\nof 12s (34.0 %)" fontsize=14 fillcolor="#f7b889" ...];
 *   N1 -> N2 [label=" 1.1s" penwidth=3 weight=34 ...];
 *
 * Every text that comes from the profile stands in double quotes, quoted by codec/clean.h.
 */
#include <math.h>

#include "codec/caption.h"
#include "codec/dot.h"
#include "codec/palette.h"

#define NAME_CHARS 120
#define FILE_CHARS 200

struct drawing {
    struct kiln_caption caption;
    const struct kiln_call_graph *graph;
    struct kiln_buf *out;
    double whole;
};

static const char *fill_of(const struct kiln_frame *frame)
{
    static const char *const own[KILN_SWATCHES] = {"#ffb1a1", "#fcb493", "#f7b889",
                                                   "#efbd82", "#e6c27e", "#dbc77e"};
    static const char *const library[KILN_SWATCHES] = {"#b3e3e9", "#b6e1f1", "#bcdff7",
                                                       "#c4dbfb", "#ced8fb", "#d8d4f9"};

    if (frame->unnamed)
        return "#ffffff";
    switch (kiln_frame_family(frame)) {
    case KILN_FAMILY_OWN:
        return own[kiln_frame_swatch(frame)];
    case KILN_FAMILY_LIBRARY:
        return library[kiln_frame_swatch(frame)];
    case KILN_FAMILY_RUNTIME:
        return "#e9e6e2";
    default:
        return "#8d97a8";
    }
}

static double share_of(const struct drawing *d, int64_t value)
{
    double share = d->whole != 0 ? fabs((double)value / d->whole) : 0;

    return share < 1 ? share : 1;
}

static void add_cost(struct drawing *d, const char *before, int64_t value)
{
    kiln_buf_puts(d->out, before);
    kiln_caption_amount(&d->caption, (double)value, d->out);
    kiln_buf_puts(d->out, " (");
    kiln_caption_share((double)value, d->whole, d->out);
    kiln_buf_puts(d->out, ")");
}

static void add_node(struct drawing *d, uint32_t at)
{
    const struct kiln_call_graph_node *node = &d->graph->nodes[at];
    const struct kiln_frame *frame = &d->graph->view->frames[node->frame];

    kiln_buf_printf(d->out, "N%u [label=\"", at + 1);
    kiln_clean_add(d->out, frame->name, NAME_CHARS, KILN_QUOTE_DOT);
    if (node->self)
        add_cost(d, "\\nself ", node->self);
    add_cost(d, node->self ? "\\nof " : "\\n", node->total);
    kiln_buf_puts(d->out, "\" tooltip=\"");
    kiln_clean_add(d->out, frame->name, NAME_CHARS, KILN_QUOTE_DOT);
    kiln_buf_puts(d->out, "\\n");
    kiln_clean_add(d->out, frame->file.len ? frame->file : frame->module, FILE_CHARS,
                   KILN_QUOTE_DOT);
    kiln_buf_printf(d->out, "\" fontsize=%.0f fillcolor=\"%s\"];\n",
                    10 + 30 * sqrt(share_of(d, node->self)), fill_of(frame));
}

static void add_edge(struct drawing *d, const struct kiln_call_graph_edge *edge)
{
    double share = share_of(d, edge->value);

    kiln_buf_printf(d->out, "N%u -> N%u [label=\" ", edge->from + 1, edge->to + 1);
    kiln_caption_amount(&d->caption, (double)edge->value, d->out);
    kiln_buf_printf(d->out, "\" penwidth=%.2f weight=%.0f%s];\n", 0.75 + 7 * share, 1 + 100 * share,
                    edge->indirect ? " style=dashed" : "");
}

/* The headline, where it is from, and what was left out: lines that start at the left. */
static void add_legend(struct drawing *d)
{
    const struct kiln_call_graph *graph = d->graph;

    kiln_buf_puts(d->out, "legend [shape=box style=solid color=\"#d3cdc6\" fontsize=14 label=\"");
    kiln_caption_headline(&d->caption, d->out);
    kiln_buf_puts(d->out, "\\l");
    kiln_caption_finding(&d->caption, d->out);
    kiln_buf_puts(d->out, "\\l");
    kiln_caption_source(&d->caption, d->out);
    kiln_buf_puts(d->out, "\\l");
    kiln_caption_number(graph->n_nodes, KILN_QUOTE_DOT, d->out);
    kiln_buf_puts(d->out, " of ");
    kiln_caption_number((uint64_t)graph->n_nodes + graph->dropped_nodes, KILN_QUOTE_DOT, d->out);
    kiln_buf_puts(d->out, " functions and ");
    kiln_caption_number(graph->n_edges, KILN_QUOTE_DOT, d->out);
    kiln_buf_puts(d->out, " of ");
    kiln_caption_number((uint64_t)graph->n_edges + graph->dropped_edges, KILN_QUOTE_DOT, d->out);
    kiln_buf_puts(d->out, " calls between them are drawn\\l\"];\n");
}

static void add_all(struct drawing *d)
{
    kiln_buf_puts(d->out, "digraph \"");
    kiln_caption_headline(&d->caption, d->out);
    kiln_buf_puts(
        d->out, "\" {\n"
                "graph [rankdir=TB bgcolor=\"#faf9f7\" fontname=\"Helvetica,Arial,sans-serif\"];\n"
                "node [shape=box style=\"filled,rounded\" color=\"#746c65\" penwidth=0.5 "
                "fontcolor=\"#1f1b18\" fontname=\"Helvetica,Arial,sans-serif\"];\n"
                "edge [color=\"#746c65\" fontcolor=\"#5a534d\" fontsize=11 "
                "fontname=\"Helvetica,Arial,sans-serif\"];\n");
    add_legend(d);
    for (uint32_t i = 0; i < d->graph->n_nodes; i++)
        add_node(d, i);
    for (uint32_t i = 0; i < d->graph->n_edges; i++)
        add_edge(d, &d->graph->edges[i]);
    kiln_buf_puts(d->out, "}\n");
}

int kiln_dot_encode(const struct kiln_view *view, const struct kiln_dot_opts *opts,
                    struct kiln_buf *out, struct kiln_err *err)
{
    static const struct kiln_dot_opts defaults;
    struct kiln_call_graph *graph = NULL;
    int r;

    opts = opts ? opts : &defaults;
    r = kiln_call_graph_new(view, &opts->graph, &graph);
    if (r == 0) {
        add_all(&(struct drawing){
            .caption = {.view = view, .title = opts->title, .quote = KILN_QUOTE_DOT},
            .graph = graph,
            .out = out,
            .whole = (double)view->total,
        });
        r = out->error;
    }
    kiln_call_graph_free(graph);
    return r < 0 ? kiln_err_set(err, r, NULL, "drawing the call graph: %s", kiln_err_text(r)) : 0;
}

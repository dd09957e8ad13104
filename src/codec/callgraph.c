/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file, from top to bottom:
 *
 *   <svg width height viewBox>
 *     <title/> <style/> <text id="headline"/> <text id="finding"/> <text id="facts"/>
 *     <svg id="graph" viewBox>              the drawing proper, which the script moves and scales
 *       <g id="edges"> <g data-e="from to"><title/><path/><path class="head"/>
 *       <g id="labels"> <text/>
 *       <g id="nodes"> <g data-n="number"><title/><rect/>...
 *     <script/>
 *
 * A box is as wide as its label; the label is larger where the function itself spent more.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "codec/assets.h"
#include "codec/callgraph.h"
#include "codec/caption.h"
#include "codec/layout.h"
#include "codec/palette.h"
#include "codec/svg_head.h"

#define EDGE         KILN_SVG_EDGE
#define HEAD         KILN_SVG_HEAD
#define WIDTH_MIN    640
#define NAME_CHARS   34 /* of a label */
#define TITLE_CHARS  300
#define BOX_MIN      100.0 /* room for the share, and for both shares */
#define BOX_MIN_SELF 132.0
#define BOX_PAD      10.0
#define BAR          3.0 /* height of the bar of self */
#define GAP_X        16.0
#define LABEL_SHARE  0.02 /* edges below have no label */
#define GAP_Y        44.0

struct drawing {
    struct kiln_caption caption;
    const struct kiln_call_graph *graph;
    struct kiln_layout layout;
    uint32_t *drawn; /* the graph's edge of each edge of the layout */
    bool *recurses;  /* nodes that call themselves */
    struct kiln_buf *out;
    double whole;
};

static double share_of(const struct drawing *d, int64_t value)
{
    double share = d->whole != 0 ? fabs((double)value / d->whole) : 0;

    return share < 1 ? share : 1;
}

static const struct kiln_frame *frame_of(const struct drawing *d, uint32_t node)
{
    return &d->graph->view->frames[d->graph->nodes[node].frame];
}

static double font_of(const struct drawing *d, uint32_t node)
{
    return 12 + 7 * sqrt(share_of(d, d->graph->nodes[node].self));
}

/* ---- sizes ---- */

/* A short form of a name, without its path and its arguments; the title has it all. */
static struct kiln_str short_name(struct kiln_str name)
{
    struct kiln_str s = kiln_clean_short(name);

    for (size_t i = 1; i < s.len; i++)
        if (s.ptr[i] == '(' && s.ptr[i - 1] != '.' && s.ptr[i - 1] != ':')
            return (struct kiln_str){s.ptr, i};
    return s;
}

/* "34.0 % · self 12.3 %" */
static void add_shares(struct drawing *d, uint32_t node, struct kiln_buf *out)
{
    kiln_caption_share((double)d->graph->nodes[node].total, d->whole, out);
    if (!d->graph->nodes[node].self)
        return;
    kiln_buf_puts(out, " · self ");
    kiln_caption_share((double)d->graph->nodes[node].self, d->whole, out);
}

static void size_boxes(struct drawing *d)
{
    for (uint32_t i = 0; i < d->graph->n_nodes; i++) {
        struct kiln_layout_box *box = &d->layout.boxes[i];
        struct kiln_str name = short_name(frame_of(d, i)->name);
        double font = font_of(d, i), w = kiln_clean_width(name, font * 1.06);
        double w_max = NAME_CHARS * font * 0.55;
        double w_min = d->graph->nodes[i].self ? BOX_MIN_SELF : BOX_MIN;

        box->w = fmax(w_min, fmin(w, w_max) + 2 * BOX_PAD + (d->recurses[i] ? font : 0));
        box->h = round(font + 32);
    }
}

static int prepare(struct drawing *d)
{
    const struct kiln_call_graph *graph = d->graph;
    struct kiln_layout *l = &d->layout;

    l->boxes = kiln_calloc((size_t)graph->n_nodes + 1, sizeof(*l->boxes));
    l->edges = kiln_calloc((size_t)graph->n_edges + 1, sizeof(*l->edges));
    d->drawn = kiln_calloc((size_t)graph->n_edges + 1, sizeof(*d->drawn));
    d->recurses = kiln_calloc((size_t)graph->n_nodes + 1, sizeof(*d->recurses));
    if (!l->boxes || !l->edges || !d->drawn || !d->recurses)
        return -ENOMEM;
    l->gap_x = GAP_X;
    l->gap_y = GAP_Y;
    l->n_boxes = graph->n_nodes;
    for (uint32_t i = 0; i < graph->n_edges; i++) {
        const struct kiln_call_graph_edge *edge = &graph->edges[i];

        if (edge->from == edge->to) {
            d->recurses[edge->from] = true;
            continue;
        }
        d->drawn[l->n_edges] = i;
        l->edges[l->n_edges++] = (struct kiln_layout_edge){
            .from = edge->from, .to = edge->to, .weight = 0.02 + share_of(d, edge->value)};
    }
    size_boxes(d);
    return kiln_layout_run(l);
}

static void drawing_done(struct drawing *d)
{
    kiln_layout_done(&d->layout);
    kiln_free(d->layout.boxes);
    kiln_free(d->layout.edges);
    kiln_free(d->drawn);
    kiln_free(d->recurses);
}

/* ---- edges ---- */

static void add_curve(struct drawing *d, const struct kiln_layout_edge *edge)
{
    const struct kiln_point *p = d->layout.points + edge->first;

    kiln_buf_printf(d->out, "M%.1f %.1f", p[0].x, p[0].y);
    for (uint32_t i = 1; i < edge->n; i++) {
        double middle = (p[i - 1].y + p[i].y) / 2;

        kiln_buf_printf(d->out, "C%.1f %.1f %.1f %.1f %.1f %.1f", p[i - 1].x, middle, p[i].x,
                        middle, p[i].x, p[i].y);
    }
}

/* A small triangle where the edge arrives; of an edge that runs upwards, at its upper end. */
static void add_arrow(struct drawing *d, const struct kiln_layout_edge *edge, double width)
{
    const struct kiln_point *p = d->layout.points + edge->first;
    struct kiln_point tip = edge->upwards ? p[0] : p[edge->n - 1];
    double half = 3 + width / 2, back = edge->upwards ? half * 1.8 : -half * 1.8;

    kiln_buf_printf(d->out, "<path class=\"head\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"/>", tip.x, tip.y,
                    -half, back, 2 * half);
}

/* Labels come after all edges, so that none is crossed out. */
static void add_edge_label(struct drawing *d, uint32_t at)
{
    const struct kiln_layout_edge *edge = &d->layout.edges[at];
    const struct kiln_point *p = d->layout.points + edge->first;
    int64_t value = d->graph->edges[d->drawn[at]].value;
    uint32_t i = edge->n / 2;

    if (share_of(d, value) < LABEL_SHARE)
        return;
    kiln_buf_printf(d->out, "<text class=\"tiny i2 halo\" x=\"%.1f\" y=\"%.1f\">",
                    (p[i - 1].x + p[i].x) / 2, (p[i - 1].y + p[i].y) / 2 + 4);
    kiln_caption_share((double)value, d->whole, d->out);
    kiln_buf_puts(d->out, "</text>\n");
}

static void add_edge(struct drawing *d, uint32_t at)
{
    const struct kiln_layout_edge *edge = &d->layout.edges[at];
    const struct kiln_call_graph_edge *from = &d->graph->edges[d->drawn[at]];
    double share = share_of(d, from->value), width = 1 + 9 * share;

    kiln_buf_printf(d->out, "<g data-e=\"%u %u\" opacity=\"%.2f\"><title>", edge->from, edge->to,
                    0.45 + 0.55 * sqrt(share));
    kiln_clean_add(d->out, frame_of(d, edge->from)->name, TITLE_CHARS, KILN_QUOTE_XML);
    kiln_buf_puts(d->out, " → ");
    kiln_clean_add(d->out, frame_of(d, edge->to)->name, TITLE_CHARS, KILN_QUOTE_XML);
    kiln_buf_putc(d->out, '\n');
    kiln_caption_share((double)from->value, d->whole, d->out);
    kiln_buf_puts(d->out, " (");
    kiln_caption_amount(&d->caption, (double)from->value, d->out);
    kiln_buf_printf(d->out, ")%s</title><path class=\"edge%s\" stroke-width=\"%.1f\" d=\"",
                    from->indirect ? ", through functions that are not drawn" : "",
                    from->indirect ? " dash" : "", width);
    add_curve(d, edge);
    kiln_buf_puts(d->out, "\"/>");
    add_arrow(d, edge, width);
    kiln_buf_puts(d->out, "</g>\n");
}

/* ---- nodes ---- */

static void add_box(struct drawing *d, uint32_t node)
{
    static const char letters[] = "alrk";
    const struct kiln_frame *frame = frame_of(d, node);
    const struct kiln_layout_box *box = &d->layout.boxes[node];
    double x = box->x - box->w / 2, y = box->y - box->h / 2;
    enum kiln_family family = kiln_frame_family(frame);
    char class[8];

    snprintf(class, sizeof(class), family <= KILN_FAMILY_LIBRARY ? "%c%u" : "%c", letters[family],
             kiln_frame_swatch(frame));
    kiln_buf_printf(d->out,
                    "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                    "rx=\"6\"/>",
                    frame->unnamed ? "unnamed" : class, x, y, box->w, box->h);
    kiln_buf_printf(d->out,
                    "<rect class=\"well\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                    "rx=\"1.5\"/>",
                    x + BOX_PAD, y + box->h - 8, box->w - 2 * BOX_PAD, BAR);
    kiln_buf_printf(d->out,
                    "<rect class=\"meter\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                    "rx=\"1.5\"/>",
                    x + BOX_PAD, y + box->h - 8,
                    (box->w - 2 * BOX_PAD) * share_of(d, d->graph->nodes[node].self), BAR);
}

static void add_node_title(struct drawing *d, uint32_t node)
{
    const struct kiln_call_graph_node *n = &d->graph->nodes[node];
    const struct kiln_frame *frame = frame_of(d, node);

    kiln_buf_puts(d->out, "<title>");
    kiln_clean_add(d->out, frame->name, TITLE_CHARS, KILN_QUOTE_XML);
    kiln_buf_puts(d->out, "\ntotal ");
    kiln_caption_amount(&d->caption, (double)n->total, d->out);
    kiln_buf_puts(d->out, ", self ");
    kiln_caption_amount(&d->caption, (double)n->self, d->out);
    kiln_buf_putc(d->out, '\n');
    kiln_clean_add(d->out, frame->file.len ? frame->file : frame->module, TITLE_CHARS,
                   KILN_QUOTE_XML);
    kiln_buf_printf(d->out, "%s%s</title>", frame->file.len || frame->module.len ? " · " : "",
                    kiln_family_text(kiln_frame_family(frame)));
}

static void add_node(struct drawing *d, uint32_t node)
{
    const struct kiln_layout_box *box = &d->layout.boxes[node];
    struct kiln_str name = short_name(frame_of(d, node)->name);
    bool own = kiln_frame_family(frame_of(d, node)) == KILN_FAMILY_OWN;
    double font = font_of(d, node), top = box->y - box->h / 2;
    double room = box->w - 2 * BOX_PAD - (d->recurses[node] ? font : 0);

    kiln_buf_printf(d->out, "<g data-n=\"%u\">", node);
    add_node_title(d, node);
    add_box(d, node);
    kiln_buf_printf(d->out,
                    "<text class=\"mid%s\" x=\"%.1f\" y=\"%.1f\" style=\"font-size:%.1fpx\">",
                    own ? " b" : "", box->x, top + font + 3, font);
    kiln_clean_add(d->out, name, kiln_clean_fit(name, font * 1.05, room), KILN_QUOTE_XML);
    kiln_buf_puts(d->out, d->recurses[node] ? " ↻</text>" : "</text>");
    kiln_buf_printf(d->out, "<text class=\"mid tiny soft\" x=\"%.1f\" y=\"%.1f\">", box->x,
                    top + font + 18);
    add_shares(d, node, d->out);
    kiln_buf_puts(d->out, "</text></g>\n");
}

/* ---- the whole ---- */

static void add_left_out(struct drawing *d)
{
    const struct kiln_call_graph *graph = d->graph;

    kiln_caption_number(graph->n_nodes, KILN_QUOTE_XML, d->out);
    kiln_buf_puts(d->out, " of ");
    kiln_caption_number((uint64_t)graph->n_nodes + graph->dropped_nodes, KILN_QUOTE_XML, d->out);
    kiln_buf_puts(d->out, " functions and ");
    kiln_caption_number(graph->n_edges, KILN_QUOTE_XML, d->out);
    kiln_buf_puts(d->out, " of ");
    kiln_caption_number((uint64_t)graph->n_edges + graph->dropped_edges, KILN_QUOTE_XML, d->out);
    kiln_buf_puts(d->out, " calls between them drawn");
}

static void add_head(struct drawing *d, double width, double height)
{
    kiln_buf_printf(d->out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                    "viewBox=\"0 0 %.0f %.0f\">\n",
                    width, height, width, height);
    kiln_svg_head(&d->caption,
                  (struct kiln_str){kiln_asset_callgraph_css, kiln_asset_callgraph_css_len},
                  d->out);
    add_left_out(d);
    kiln_buf_puts(d->out, "</text>\n");
}

static void add_all(struct drawing *d)
{
    double w = d->layout.width + 2 * EDGE, h = d->layout.height + 2 * EDGE;

    add_head(d, fmax(w, WIDTH_MIN), h + HEAD);
    kiln_buf_printf(
        d->out,
        "<svg id=\"graph\" x=\"0\" y=\"%d\" width=\"%.0f\" height=\"%.0f\" "
        "viewBox=\"%d %d %.0f %.0f\" preserveAspectRatio=\"xMidYMin meet\">\n<g id=\"edges\">\n",
        HEAD, w, h, -EDGE, -EDGE, w, h);
    for (uint32_t i = d->layout.n_edges; i-- > 0;)
        add_edge(d, i);
    kiln_buf_puts(d->out, "</g>\n<g id=\"labels\">\n");
    for (uint32_t i = 0; i < d->layout.n_edges; i++)
        add_edge_label(d, i);
    kiln_buf_puts(d->out, "</g>\n<g id=\"nodes\">\n");
    for (uint32_t i = 0; i < d->graph->n_nodes; i++)
        add_node(d, i);
    kiln_buf_puts(d->out, "</g>\n</svg>\n<script><![CDATA[\n");
    kiln_buf_add(d->out, kiln_asset_callgraph_js, kiln_asset_callgraph_js_len);
    kiln_buf_puts(d->out, "]]></script>\n</svg>\n");
}

int kiln_callgraph_encode(const struct kiln_view *view, const struct kiln_callgraph_opts *opts,
                          struct kiln_buf *out, struct kiln_err *err)
{
    static const struct kiln_callgraph_opts defaults;
    struct drawing d = {.out = out, .whole = (double)view->total};
    struct kiln_call_graph *graph = NULL;
    int r;

    opts = opts ? opts : &defaults;
    d.caption = (struct kiln_caption){.view = view, .title = opts->title, .quote = KILN_QUOTE_XML};
    r = kiln_call_graph_new(view, &opts->graph, &graph);
    d.graph = graph;
    if (r == 0)
        r = prepare(&d);
    if (r == 0) {
        add_all(&d);
        r = out->error;
    }
    drawing_done(&d);
    kiln_call_graph_free(graph);
    return r < 0 ? kiln_err_set(err, r, NULL, "drawing the call graph: %s", kiln_err_text(r)) : 0;
}

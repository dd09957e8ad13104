/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file, from top to bottom:
 *
 *   <svg width height viewBox data-top data-row data-root>
 *     <title/> <style/>                     colours for light and dark
 *     <text id="headline"/> <text id="finding"/> <text id="facts"/>
 *     <rect id="panel"/> <text id="crumb"/>
 *     <g id="frames">                       one group a frame, in preorder
 *       <g data-d="depth" data-v="total" data-a="total of the base" data-w="width" data-p="share">
 *         <title>name, costs, origin: a line each</title> <rect/> <text/> <text class="pc"/>
 *     <g id="legend"/> <script/>
 *
 * Places are written with five decimals: the script zooms into frames of a tenth of a pixel.
 */
#include <errno.h>
#include <stdio.h>

#include "codec/assets.h"
#include "codec/caption.h"
#include "codec/palette.h"
#include "codec/svg.h"
#include "codec/svg_head.h"
#include "codec/svg_plan.h"

#define WIDTH         1200
#define WIDTH_MIN     320
#define FRAMES_MAX    4096
#define DEPTH_MAX     256
#define EDGE          KILN_SVG_EDGE /* also from the panel to the frames */
#define PANEL_TOP     KILN_SVG_HEAD
#define FRAMES_TOP    (PANEL_TOP + 44)
#define ROW           19
#define LEGEND_HEIGHT 33
#define LABEL_WIDTH   26 /* narrower frames have no label */
#define TITLE_CHARS   300
#define ORIGIN_CHARS  160
#define FONT          12.8 /* px: 12, and a little room for semibold */
#define MONO          16.0 /* px: 12 of monospace are as wide */
#define MIN_WIDTH     0.1

struct drawing {
    struct kiln_caption caption;
    const struct kiln_tree *tree;
    struct kiln_svg_plan plan;
    struct kiln_buf *out;
    double whole;   /* what shares are of */
    uint32_t width; /* px */
    bool root_below;
};

/* ---- one frame ---- */

static void add_fixed(struct kiln_buf *out, double value)
{
    size_t len;

    kiln_buf_printf(out, "%.5f", value);
    if (out->error)
        return;
    len = out->len;
    while (out->ptr[len - 1] == '0')
        len--;
    out->len = out->ptr[len - 1] == '.' ? len - 1 : len;
}

static double frames_span(const struct drawing *d)
{
    return d->width - 4.0 * EDGE;
}

/* Neighbours have a gap between them, where there is room for one. */
static double shown_width(const struct drawing *d, const struct kiln_svg_place *place)
{
    double w = place->w * frames_span(d);

    return w > 2 ? w - 1 : w;
}

static uint32_t row_y(const struct drawing *d, uint32_t depth)
{
    return FRAMES_TOP + (d->root_below ? d->plan.max_depth - depth : depth) * ROW;
}

/* What the frame's rectangle is: its colour and its form. */
static void add_rect_class(struct drawing *d, const struct kiln_svg_place *place,
                           const struct kiln_frame *frame)
{
    static const char *const steps[] = {"n4", "n3", "n2", "n1", "z", "p1", "p2", "p3", "p4"};
    static const char letters[] = "alrk";
    enum kiln_family family;

    if (place->folded || !frame) {
        kiln_buf_puts(d->out, place->folded ? "folded" : "root");
        return;
    }
    if (d->tree->is_diff) {
        kiln_buf_puts(d->out, steps[kiln_diff_step(d->tree, place->node) + KILN_DIFF_STEPS]);
        return;
    }
    if (frame->unnamed) {
        kiln_buf_puts(d->out, "unnamed");
        return;
    }
    family = kiln_frame_family(frame);
    kiln_buf_putc(d->out, letters[family]);
    if (family == KILN_FAMILY_OWN || family == KILN_FAMILY_LIBRARY)
        kiln_buf_add_u64(d->out, kiln_frame_swatch(frame));
    if (frame->inlined)
        kiln_buf_puts(d->out, " inl");
    else if (kiln_frame_shade(frame))
        kiln_buf_printf(d->out, " s%u", kiln_frame_shade(frame));
}

static const char *label_class(const struct kiln_frame *frame)
{
    if (!frame)
        return "";
    if (frame->unnamed)
        return "mono";
    if (kiln_frame_family(frame) == KILN_FAMILY_OWN)
        return frame->inlined ? "b it" : "b";
    return frame->inlined ? "it" : "";
}

static struct kiln_str frame_name(const struct kiln_svg_place *place,
                                  const struct kiln_frame *frame)
{
    return place->folded ? KILN_STR("folded") : frame ? frame->name : KILN_STR("all");
}

/* "29.2 % (1.00 cores), self 1.1 % (0.04 cores)" */
static void add_cost(struct drawing *d, const struct kiln_tree_node *node)
{
    kiln_caption_share((double)node->total_b, d->whole, d->out);
    kiln_buf_puts(d->out, " (");
    kiln_caption_amount(&d->caption, (double)node->total_b, d->out);
    kiln_buf_puts(d->out, "), self ");
    kiln_caption_share((double)node->self_b, d->whole, d->out);
    kiln_buf_puts(d->out, " (");
    kiln_caption_amount(&d->caption, (double)node->self_b, d->out);
    kiln_buf_puts(d->out, ")");
}

/* "+0.85 cores ± 0.04: 0.15 → 1.00 cores, self +0.02" */
static void add_diff_cost(struct drawing *d, const struct kiln_tree_node *node)
{
    double a = (double)node->total_a, b = (double)node->total_b;
    double noise = kiln_diff_noise(a, node->count_a, b, node->count_b);

    kiln_caption_change(&d->caption, b - a, d->out);
    kiln_buf_puts(d->out, " ± ");
    kiln_caption_amount(&d->caption, noise, d->out);
    kiln_buf_puts(d->out, b - a <= noise && a - b <= noise ? ", within noise: " : ": ");
    kiln_caption_amount(&d->caption, a, d->out);
    kiln_buf_puts(d->out, " → ");
    kiln_caption_amount(&d->caption, b, d->out);
    kiln_buf_puts(d->out, ", self ");
    kiln_caption_change(&d->caption, (double)node->self_b - (double)node->self_a, d->out);
}

/* "checkout · rules.js:41 · your code · inlined" */
static void add_origin(struct drawing *d, const struct kiln_frame *frame)
{
    if (frame->module.len) {
        kiln_clean_add(d->out, frame->module, ORIGIN_CHARS, KILN_QUOTE_XML);
        kiln_buf_puts(d->out, " · ");
    }
    if (frame->file.len) {
        kiln_clean_add(d->out, frame->file, ORIGIN_CHARS, KILN_QUOTE_XML);
        if (frame->line > 0)
            kiln_buf_printf(d->out, ":%lld", (long long)frame->line);
        kiln_buf_puts(d->out, " · ");
    }
    kiln_buf_puts(d->out, kiln_family_text(kiln_frame_family(frame)));
    kiln_buf_puts(d->out, frame->inlined ? " · inlined" : "");
}

static void add_frame_title(struct drawing *d, const struct kiln_svg_place *place,
                            const struct kiln_frame *frame)
{
    const struct kiln_tree_node *node = &d->tree->nodes[place->node];

    kiln_buf_puts(d->out, "<title>");
    if (place->folded) {
        kiln_caption_number(place->folded, KILN_QUOTE_XML, d->out);
        kiln_buf_putc(d->out, ' ');
    }
    kiln_clean_add(d->out, frame_name(place, frame), TITLE_CHARS, KILN_QUOTE_XML);
    kiln_buf_putc(d->out, '\n');
    if (place->folded) {
        kiln_caption_share(place->w, 1, d->out);
        kiln_buf_puts(d->out, ", in frames too narrow or too deep to draw");
    } else if (d->tree->is_diff) {
        add_diff_cost(d, node);
    } else {
        add_cost(d, node);
    }
    if (frame && !place->folded) {
        kiln_buf_putc(d->out, '\n');
        add_origin(d, frame);
    }
    kiln_buf_puts(d->out, "</title>");
}

/* What stands at the right end of a frame: its share, or in a diff its change. */
static void add_aside(struct drawing *d, const struct kiln_svg_place *place)
{
    const struct kiln_tree_node *node = &d->tree->nodes[place->node];

    if (place->folded)
        kiln_caption_share(place->w, 1, d->out);
    else if (d->tree->is_diff)
        kiln_caption_change_share(d->tree, place->node, d->out);
    else
        kiln_caption_share((double)node->total_b, d->whole, d->out);
}

static void add_label(struct drawing *d, const struct kiln_svg_place *place,
                      const struct kiln_frame *frame)
{
    struct kiln_str name = frame_name(place, frame);
    double w = place->w * frames_span(d), x = 2.0 * EDGE + place->x * frames_span(d);
    uint32_t y = row_y(d, place->depth) + 13;
    double font = frame && frame->unnamed ? MONO : FONT;
    size_t chars = w < LABEL_WIDTH ? 0 : kiln_clean_fit(name, font, w - 11);

    if (chars != SIZE_MAX && chars) {
        name = kiln_clean_short(name);
        chars = kiln_clean_fit(name, font, w - 11);
    }
    if (!chars)
        return;
    kiln_buf_printf(d->out, "<text class=\"%s\" x=\"%.1f\" y=\"%u\">", label_class(frame), x + 6,
                    y);
    kiln_clean_add(d->out, name, chars, KILN_QUOTE_XML);
    kiln_buf_puts(d->out, "</text>");
    if (chars != SIZE_MAX || kiln_clean_width(name, font) + 100 > w)
        return;
    kiln_buf_printf(d->out, "<text class=\"pc\" x=\"%.1f\" y=\"%u\">", x + w - 7, y);
    add_aside(d, place);
    kiln_buf_puts(d->out, "</text>");
}

static void add_frame(struct drawing *d, const struct kiln_svg_place *place)
{
    const struct kiln_tree_node *node = &d->tree->nodes[place->node];
    const struct kiln_frame *frame =
        node->frame < d->tree->n_frames && !place->folded ? &d->tree->frames[node->frame] : NULL;

    kiln_buf_printf(d->out, "<g data-d=\"%u\"", place->depth);
    if (place->folded)
        kiln_buf_printf(d->out, " data-folded=\"%u\"", place->folded);
    else
        kiln_buf_printf(d->out, " data-v=\"%lld\"", (long long)node->total_b);
    if (d->tree->is_diff && !place->folded)
        kiln_buf_printf(d->out, " data-a=\"%lld\"", (long long)node->total_a);
    if (*label_class(frame) && place->w * frames_span(d) < LABEL_WIDTH)
        kiln_buf_printf(d->out, " data-c=\"%s\"", label_class(frame));
    if (shown_width(d, place) < place->w * frames_span(d)) {
        kiln_buf_puts(d->out, " data-w=\"");
        add_fixed(d->out, place->w * frames_span(d));
        kiln_buf_putc(d->out, '"');
    }
    kiln_buf_puts(d->out, " data-p=\"");
    add_aside(d, place);
    kiln_buf_puts(d->out, "\">");
    add_frame_title(d, place, frame);
    kiln_buf_puts(d->out, "<rect class=\"");
    add_rect_class(d, place, frame);
    kiln_buf_puts(d->out, "\" x=\"");
    add_fixed(d->out, 2.0 * EDGE + place->x * frames_span(d));
    kiln_buf_printf(d->out, "\" y=\"%u\" width=\"", row_y(d, place->depth));
    add_fixed(d->out, shown_width(d, place));
    kiln_buf_printf(d->out, "\" height=\"%d\" rx=\"2\"/>", ROW - 1);
    add_label(d, place, frame);
    kiln_buf_puts(d->out, "</g>\n");
}

/* ---- around the frames ---- */

/* "2 048 of 61 300 frames drawn, the rest folded" */
static void add_drawn(struct drawing *d)
{
    uint32_t all = d->tree->n_nodes - 1;

    kiln_caption_number(d->plan.n_drawn, KILN_QUOTE_XML, d->out);
    if (d->plan.n_drawn < all) {
        kiln_buf_puts(d->out, " of ");
        kiln_caption_number(all, KILN_QUOTE_XML, d->out);
        kiln_buf_puts(d->out, " frames drawn, narrow ones folded, totals exact");
    } else {
        kiln_buf_puts(d->out, all == 1 ? " frame" : " frames");
    }
}

static void add_head(struct drawing *d, uint32_t height)
{
    kiln_buf_printf(d->out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                    "viewBox=\"0 0 %u %u\" data-top=\"%d\" data-row=\"%d\" data-root=\"%s\">\n",
                    d->width, height, d->width, height, FRAMES_TOP, ROW,
                    d->root_below ? "bottom" : "top");
    kiln_svg_head(&d->caption,
                  (struct kiln_str){kiln_asset_flamegraph_css, kiln_asset_flamegraph_css_len},
                  d->out);
    add_drawn(d);
    kiln_buf_puts(d->out, "</text>\n");
}

static void add_panel(struct drawing *d, uint32_t height)
{
    kiln_buf_printf(d->out,
                    "<rect id=\"panel\" class=\"panel\" x=\"%d.5\" y=\"%d.5\" width=\"%u\" "
                    "height=\"%u\" rx=\"8\"/>\n"
                    "<text id=\"crumb\" class=\"small i3\" x=\"%d\" y=\"%d\">%s</text>\n",
                    EDGE, PANEL_TOP, d->width - 2 * EDGE - 1, height - PANEL_TOP - EDGE, 2 * EDGE,
                    PANEL_TOP + 26,
                    d->tree->is_diff
                        ? "Width is before plus after, colour and number are the change"
                        : "Width is the share of the whole");
}

struct key {
    const char *classes; /* of the swatches, one letter-digit pair each, or one class */
    const char *words;
};

static void add_swatch(struct drawing *d, double x, const char *class)
{
    kiln_buf_printf(d->out,
                    "<rect class=\"%s\" x=\"%.1f\" y=\"10.5\" width=\"9\" height=\"12\" "
                    "rx=\"2\"/>",
                    class, x);
}

/* Swatches (classes apart by spaces, "+" joins two of one swatch) and what they mean. */
static double add_key(struct drawing *d, double x, const struct key *key)
{
    struct kiln_str rest = kiln_str_of(key->classes);

    kiln_buf_puts(d->out, "<g>");
    while (rest.ptr) {
        struct kiln_str class = kiln_str_cut(&rest, ' ');
        char text[16];

        snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(class));
        for (char *plus = text; (plus = strchr(plus, '+'));)
            *plus = ' ';
        add_swatch(d, x, text);
        x += 10;
    }
    kiln_buf_printf(d->out, "<text class=\"small i3\" x=\"%.1f\" y=\"21\">%s</text></g>\n", x + 4,
                    key->words);
    return x + 4 + kiln_clean_width(kiln_str_of(key->words), 12) + 16;
}

static void add_legend(struct drawing *d)
{
    static const struct key plain[] = {
        {"a0 a1 a2 a3 a4 a5", "Your code"},
        {"l0 l1 l2 l3 l4 l5", "Libraries"},
        {"r", "Runtime"},
        {"k", "Kernel"},
        {"a2+inl", "Inlined"},
        {"unnamed", "No symbol"},
        {"folded", "Folded"},
    };
    static const struct key diff[] = {
        {"n4 n3 n2 n1", "Shrank"},
        {"p1 p2 p3 p4", "Grew; palest: passes it on to one callee"},
        {"z", "Unchanged or within noise"},
        {"folded", "Folded"},
    };
    const struct key *keys = d->tree->is_diff ? diff : plain;
    size_t n = d->tree->is_diff ? KILN_ARRAY_LEN(diff) : KILN_ARRAY_LEN(plain);
    double x = 2 * EDGE;

    kiln_buf_printf(d->out, "<g id=\"legend\" transform=\"translate(0,%u)\">\n",
                    FRAMES_TOP + (d->plan.max_depth + 1) * ROW + 8);
    for (size_t i = 0; i < n; i++)
        x = add_key(d, x, &keys[i]);
    kiln_buf_puts(d->out, "</g>\n");
}

static void add_all(struct drawing *d)
{
    uint32_t height = FRAMES_TOP + (d->plan.max_depth + 1) * ROW + 8 + LEGEND_HEIGHT + EDGE;

    add_head(d, height);
    add_panel(d, height);
    kiln_buf_puts(d->out, "<g id=\"frames\">\n");
    for (uint32_t i = 0; i < d->plan.n_places; i++)
        add_frame(d, &d->plan.places[i]);
    kiln_buf_puts(d->out, "</g>\n");
    add_legend(d);
    kiln_buf_puts(d->out, "<script><![CDATA[\n");
    kiln_buf_add(d->out, kiln_asset_flamegraph_js, kiln_asset_flamegraph_js_len);
    kiln_buf_puts(d->out, "]]></script>\n</svg>\n");
}

int kiln_svg_encode(const struct kiln_view *view, const struct kiln_tree *tree,
                    const struct kiln_svg_opts *opts, struct kiln_buf *out, struct kiln_err *err)
{
    static const struct kiln_svg_opts defaults;
    struct kiln_svg_plan_opts plan = {.frames_max = FRAMES_MAX, .depth_max = DEPTH_MAX};
    struct drawing d = {.tree = tree, .out = out, .width = WIDTH};
    int r;

    opts = opts ? opts : &defaults;
    if (opts->width)
        d.width = opts->width < WIDTH_MIN ? WIDTH_MIN : opts->width;
    if (opts->frames_max)
        plan.frames_max = opts->frames_max;
    if (opts->depth_max)
        plan.depth_max = opts->depth_max;
    plan.min_share = opts->min_share > 0 ? opts->min_share : MIN_WIDTH / frames_span(&d);
    d.root_below = opts->root_below;
    d.whole = (double)tree->nodes[0].total_b;
    d.caption = (struct kiln_caption){.view = view,
                                      .tree = tree,
                                      .title = opts->title,
                                      .normalized = opts->normalized,
                                      .quote = KILN_QUOTE_XML};
    r = kiln_svg_plan_init(tree, &plan, &d.plan);
    if (r == 0) {
        add_all(&d);
        kiln_svg_plan_done(&d.plan);
        r = out->error;
    }
    return r < 0 ? kiln_err_set(err, r, NULL, "drawing the flame graph: %s", kiln_err_text(r)) : 0;
}

int kiln_svg_encode_view(const struct kiln_view *view, const struct kiln_svg_opts *opts,
                         struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_tree *tree;
    int r = kiln_tree_new(view, &(struct kiln_tree_opts){0}, &tree, err);

    if (r < 0)
        return r;
    r = kiln_svg_encode(view, tree, opts, out, err);
    kiln_tree_free(tree);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk in preorder.  Each open frame knows how many of its callees are still to be written and
 * how much of the prefix (the vertical lines) is theirs; a frame with one callee adds nothing to
 * it.
 */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "codec/caption.h"
#include "codec/palette.h"
#include "codec/text_tree.h"

#define NAME_CHARS     200
#define NAME_CHARS_MIN 26
#define MIN_SHARE      0.005
#define BAR            20  /* characters */
#define INDENT_MAX     100 /* levels; deeper forks are not indented further */

struct level {
    uint32_t n, left; /* callees to write, and those still to come */
    uint32_t indent;  /* levels of prefix that its callees have */
    size_t prefix;    /* and their bytes */
};

struct writer {
    struct kiln_caption caption;
    const struct kiln_tree *tree;
    const struct kiln_text_tree_opts *opts;
    struct kiln_buf *out;
    struct kiln_buf prefix, cell;
    struct level *levels;
    double whole, least;
    uint32_t name_chars, depth_max, left_out;
};

static double weight_of(const struct writer *w, uint32_t node)
{
    const struct kiln_tree_node *n = &w->tree->nodes[node];
    double b = fabs((double)n->total_b);

    return w->tree->is_diff ? fmax(b, fabs((double)n->total_a)) : b;
}

static bool is_written(const struct writer *w, uint32_t node)
{
    return w->tree->nodes[node].depth <= w->depth_max && weight_of(w, node) >= w->least;
}

/* ---- pieces of a line ---- */

static void colour(struct writer *w, const char *code)
{
    if (w->opts->colour)
        kiln_buf_printf(w->out, "\033[%sm", code);
}

static size_t count_chars(struct kiln_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

/* Writes what is in w->cell, right-aligned. */
static void put_cell(struct writer *w, size_t width)
{
    size_t n = count_chars(kiln_buf_str(&w->cell));

    if (n < width)
        kiln_buf_printf(w->out, "%*s", (int)(width - n), "");
    kiln_buf_add_str(w->out, kiln_buf_str(&w->cell));
    if (w->cell.error && !w->out->error)
        w->out->error = w->cell.error;
    kiln_buf_clear(&w->cell);
}

static void put_value(struct writer *w, double value)
{
    kiln_caption_value(&w->caption, value, &w->cell);
    put_cell(w, 10);
}

/* "[=====     ]": at least one mark for anything that is there. */
static void put_bar(struct writer *w, double share, char mark, const char *code)
{
    int n = share > 0 ? (int)ceil(fmin(share, 1) * BAR - 0.5) : 0;

    if (n == 0 && share > 0)
        n = 1;
    kiln_buf_puts(w->out, "  [");
    colour(w, code);
    for (int i = 0; i < n; i++)
        kiln_buf_putc(w->out, mark);
    colour(w, "0");
    kiln_buf_printf(w->out, "%*s]  ", BAR - n, "");
}

static void put_costs(struct writer *w, const struct kiln_tree_node *node)
{
    double total = (double)node->total_b;

    kiln_caption_share(total, w->whole, &w->cell);
    put_cell(w, 8);
    put_value(w, total);
    put_value(w, (double)node->self_b);
    put_bar(w, w->whole > 0 ? total / w->whole : 0, '=', "33");
}

static void put_diff_costs(struct writer *w, const struct kiln_tree_node *node)
{
    double a = (double)node->total_a, b = (double)node->total_b, delta = b - a;
    bool noise = fabs(delta) <= kiln_diff_noise(a, node->count_a, b, node->count_b);
    const char *code = noise ? "2" : delta > 0 ? "31" : "34";

    colour(w, code);
    kiln_buf_puts(&w->cell, noise && delta != 0 ? "~" : "");
    kiln_buf_puts(&w->cell, delta < 0 ? "−" : delta > 0 ? "+" : "");
    kiln_caption_value(&w->caption, fabs(delta), &w->cell);
    put_cell(w, 11);
    colour(w, "0");
    put_value(w, a);
    put_value(w, b);
    put_bar(w, w->whole > 0 ? fabs(delta) / w->whole : 0, delta < 0 ? '-' : '+', code);
}

/* Behind a deep branch a name keeps a few characters, though they pass the end of the line. */
static uint32_t room_for_name(const struct writer *w, uint32_t indent)
{
    uint32_t branches = w->opts->fit ? 3 * indent : 0;

    if (w->name_chars < branches + NAME_CHARS_MIN)
        return w->name_chars < NAME_CHARS_MIN ? w->name_chars : NAME_CHARS_MIN;
    return w->name_chars - branches;
}

static void put_name(struct writer *w, const struct kiln_tree_node *node, uint32_t indent)
{
    static const char *const codes[] = {"1", "0", "2", "2;34"};
    const struct kiln_frame *frame =
        node->frame < w->tree->n_frames ? &w->tree->frames[node->frame] : NULL;
    struct kiln_str name = frame ? frame->name : KILN_STR("all");
    uint32_t room = room_for_name(w, indent);

    if (w->opts->fit && name.len > room)
        name = kiln_clean_short(name); /* its end tells more than the path of its package */
    colour(w, frame ? codes[kiln_frame_family(frame)] : "0");
    kiln_clean_add(w->out, name, room, KILN_QUOTE_NONE);
    if (frame && frame->line > 0)
        kiln_buf_printf(w->out, ":%lld", (long long)frame->line);
    if (frame && frame->inlined)
        kiln_buf_puts(w->out, " (inlined)");
    colour(w, "0");
    kiln_buf_putc(w->out, '\n');
}

/* ---- the tree ---- */

static uint32_t count_callees(const struct writer *w, uint32_t node)
{
    uint32_t end = node + w->tree->nodes[node].subtree, n = 0;

    for (uint32_t i = node + 1; i < end; i += w->tree->nodes[i].subtree)
        n += is_written(w, i);
    return n;
}

/* Writes the lines before the name, and leaves in w->prefix those of the frame's callees. */
static void put_lines(struct writer *w, struct level *caller, struct level *level)
{
    const char *branch = w->opts->ascii ? "|- " : "├─ ";
    const char *end = w->opts->ascii ? "`- " : "└─ ";
    const char *pass = w->opts->ascii ? "|  " : "│  ";
    bool last = --caller->left == 0;

    w->prefix.len = caller->prefix;
    level->indent = caller->indent;
    colour(w, "2");
    kiln_buf_add_str(w->out, kiln_buf_str(&w->prefix));
    if (caller->n > 1) {
        kiln_buf_puts(w->out, last ? end : branch);
        if (level->indent < INDENT_MAX) {
            kiln_buf_puts(&w->prefix, last ? "   " : pass);
            level->indent++;
        }
    }
    colour(w, "0");
    level->prefix = w->prefix.len;
}

static void put_node(struct writer *w, uint32_t at)
{
    const struct kiln_tree_node *node = &w->tree->nodes[at];
    struct level *level = &w->levels[node->depth];

    *level = (struct level){0};
    if (w->tree->is_diff)
        put_diff_costs(w, node);
    else
        put_costs(w, node);
    if (node->depth)
        put_lines(w, level - 1, level);
    level->n = level->left = count_callees(w, at);
    put_name(w, node, level->indent);
}

static void put_tree(struct writer *w)
{
    uint32_t i = 0;

    while (i < w->tree->n_nodes && !w->out->error) {
        if (i == 0 || is_written(w, i)) {
            put_node(w, i++);
        } else {
            w->left_out += w->tree->nodes[i].subtree;
            i += w->tree->nodes[i].subtree;
        }
    }
    if (w->prefix.error && !w->out->error)
        w->out->error = w->prefix.error;
}

static void put_head(struct writer *w)
{
    kiln_caption_headline(&w->caption, w->out);
    kiln_buf_putc(w->out, '\n');
    kiln_caption_facts(&w->caption, w->out);
    kiln_buf_puts(w->out, w->tree->is_diff ? "\n\n     change    before     after\n"
                                           : "\n\n   share     total      self\n");
}

static void put_foot(struct writer *w)
{
    if (!w->left_out)
        return;
    kiln_buf_putc(w->out, '\n');
    kiln_caption_number(w->left_out, KILN_QUOTE_NONE, w->out);
    kiln_buf_puts(w->out, w->left_out == 1 ? " frame" : " frames");
    kiln_buf_puts(w->out, " left out: below ");
    kiln_caption_share(w->least, w->whole, w->out);
    if (w->depth_max < w->tree->max_depth)
        kiln_buf_printf(w->out, " or deeper than %u", w->depth_max);
    kiln_buf_putc(w->out, '\n');
}

int kiln_text_tree_encode(const struct kiln_view *view, const struct kiln_tree *tree,
                          const struct kiln_text_tree_opts *opts, struct kiln_buf *out,
                          struct kiln_err *err)
{
    static const struct kiln_text_tree_opts defaults;
    struct writer w = {.tree = tree, .out = out};
    int r;

    w.opts = opts = opts ? opts : &defaults;
    w.caption = (struct kiln_caption){
        .view = view, .tree = tree, .title = opts->title, .normalized = opts->normalized};
    w.whole = weight_of(&w, 0);
    w.least = (opts->min_share < 0   ? 0
               : opts->min_share > 0 ? opts->min_share
                                     : MIN_SHARE) *
              w.whole;
    w.name_chars = opts->name_chars ? opts->name_chars : NAME_CHARS;
    w.depth_max = opts->depth_max ? opts->depth_max : UINT32_MAX;
    kiln_buf_init(&w.prefix, out->max);
    kiln_buf_init(&w.cell, out->max);
    w.levels = kiln_malloc(((size_t)tree->max_depth + 1) * sizeof(*w.levels));
    if (w.levels) {
        put_head(&w);
        put_tree(&w);
        put_foot(&w);
    }
    r = w.levels ? out->error : -ENOMEM;
    kiln_free(w.levels);
    kiln_buf_done(&w.prefix);
    kiln_buf_done(&w.cell);
    return r < 0 ? kiln_err_set(err, r, NULL, "writing the tree: %s", kiln_err_text(r)) : 0;
}

int kiln_text_tree_encode_view(const struct kiln_view *view, const struct kiln_text_tree_opts *opts,
                               struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_tree *tree;
    int r = kiln_tree_new(view, &(struct kiln_tree_opts){0}, &tree, err);

    if (r < 0)
        return r;
    r = kiln_text_tree_encode(view, tree, opts, out, err);
    kiln_tree_free(tree);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences are put together from the amount (a rate where the duration is known), the share and
 * the name; which frame stands out is found by adding up the self values of a tree by frame.
 */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "base/sat.h"
#include "codec/caption.h"
#include "codec/palette.h"

#define NAME_CHARS_MAX   80
#define TITLE_CHARS_MAX  120
#define AMOUNT_BYTES_MAX 64

struct type_words {
    const char *name; /* family, or NULL for any */
    const char *type;
    const char *words;
};

static const struct type_words type_words[] = {
    {NULL, "cpu", "CPU time"},
    {NULL, "wall", "Wall-clock time"},
    {NULL, "off_cpu", "Waiting off the CPU"},
    {NULL, "alloc_space", "Memory allocated"},
    {NULL, "alloc_objects", "Objects allocated"},
    {NULL, "inuse_space", "Memory in use"},
    {NULL, "inuse_objects", "Objects in use"},
    {"mutex", "delay", "Waiting caused by locks"},
    {"mutex", "contentions", "Lock contentions"},
    {"block", "delay", "Waiting"},
    {"block", "contentions", "Waits"},
    {NULL, "goroutine", "Goroutines"},
    {NULL, "threads", "Threads"},
    {NULL, "lag", "Event loop lag"},
    {NULL, "samples", "Samples"},
};

void kiln_caption_type(const struct kiln_type *type, enum kiln_quote quote, struct kiln_buf *out)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(type_words); i++) {
        const struct type_words *row = &type_words[i];

        if (kiln_str_eq(type->type, kiln_str_of(row->type)) &&
            (!row->name || kiln_str_eq(type->name, kiln_str_of(row->name)))) {
            kiln_buf_puts(out, row->words);
            return;
        }
    }
    if (type->type.len)
        kiln_clean_add(out, type->type, NAME_CHARS_MAX, quote);
    else
        kiln_buf_puts(out, "Profile");
}

void kiln_caption_share(double part, double whole, struct kiln_buf *out)
{
    double percent = whole != 0 ? 100 * part / fabs(whole) : 0;

    if (percent > 0 && percent < 0.005)
        kiln_buf_puts(out, "~0 %");
    else
        kiln_buf_printf(out, "%.*f %%", fabs(percent) < 1 && percent != 0 ? 2 : 1, percent);
}

static const char *group_mark(enum kiln_quote quote)
{
    return quote == KILN_QUOTE_NONE ? "," : "\u202f";
}

void kiln_caption_number(uint64_t number, enum kiln_quote quote, struct kiln_buf *out)
{
    if (number >= 1000) {
        kiln_caption_number(number / 1000, quote, out);
        kiln_buf_printf(out, "%s%03u", group_mark(quote), (unsigned)(number % 1000));
    } else {
        kiln_buf_add_u64(out, number);
    }
}

static bool has_rate(const struct kiln_caption *caption)
{
    return caption->view->duration_ns && !caption->view->type.level &&
           (!caption->tree || !caption->tree->is_diff ||
            caption->normalized == KILN_NORMALIZE_TIME);
}

/*
 * A number for people, with what a profile calls its unit made clean, and cut where a unit is
 * absurdly long.
 */
static void add_amount(const struct kiln_caption *caption, double value, bool as_rate,
                       struct kiln_buf *out)
{
    const struct kiln_type *type = &caption->view->type;
    struct kiln_str rest;
    struct kiln_buf text;

    kiln_buf_init(&text, out->max);
    if (as_rate)
        kiln_format_rate(&text, value, type, caption->view->duration_ns);
    else
        kiln_format_value(&text, value, type->unit);
    if (text.error && !out->error)
        out->error = text.error;
    rest = kiln_buf_str(&text);
    rest.len = rest.len < AMOUNT_BYTES_MAX ? rest.len : AMOUNT_BYTES_MAX;
    while (rest.ptr) {
        kiln_clean_add(out, kiln_str_cut(&rest, ','), NAME_CHARS_MAX, caption->quote);
        kiln_buf_puts(out, rest.ptr ? group_mark(caption->quote) : "");
    }
    kiln_buf_done(&text);
}

void kiln_caption_amount(const struct kiln_caption *caption, double value, struct kiln_buf *out)
{
    add_amount(caption, value, has_rate(caption), out);
}

void kiln_caption_value(const struct kiln_caption *caption, double value, struct kiln_buf *out)
{
    add_amount(caption, value, false, out);
}

void kiln_caption_change(const struct kiln_caption *caption, double value, struct kiln_buf *out)
{
    kiln_buf_puts(out, value < 0 ? "−" : "+");
    kiln_caption_amount(caption, fabs(value), out);
}

/* The node that stands for all a tree shows: callers and callees of a function are a part. */
static const struct kiln_tree_node *part_of(const struct kiln_caption *caption)
{
    const struct kiln_tree *tree = caption->tree;

    if (!tree || tree->is_diff || tree->nodes[0].total_b == caption->view->total)
        return NULL;
    return &tree->nodes[0];
}

static void add_diff_verdict(const struct kiln_caption *caption, struct kiln_buf *out)
{
    const struct kiln_tree_node *root = &caption->tree->nodes[0];
    double a = (double)root->total_a, b = (double)root->total_b;
    double noise = kiln_diff_noise(a, root->count_a, b, root->count_b);

    if (caption->normalized == KILN_NORMALIZE_TOTAL) {
        kiln_buf_puts(out, " compared by share of the total");
        return;
    }
    if (fabs(b - a) <= noise || a == 0)
        kiln_buf_puts(out, a == 0 ? " appeared: " : " is the same within noise: ");
    else
        kiln_buf_printf(out, " %s by %.3g %%: ", b > a ? "grew" : "shrank",
                        100 * fabs(b - a) / fabs(a));
    kiln_caption_amount(caption, a, out);
    kiln_buf_puts(out, " → ");
    kiln_caption_amount(caption, b, out);
}

void kiln_caption_headline(const struct kiln_caption *caption, struct kiln_buf *out)
{
    const struct kiln_view *view = caption->view;
    const struct kiln_tree_node *part = part_of(caption);
    double total = part ? (double)part->total_b : (double)view->total;

    kiln_caption_type(&view->type, caption->quote, out);
    if (caption->title) {
        kiln_buf_puts(out, " of ");
        kiln_clean_add(out, kiln_str_of(caption->title), TITLE_CHARS_MAX, caption->quote);
    }
    if (caption->tree && caption->tree->is_diff) {
        add_diff_verdict(caption, out);
        return;
    }
    kiln_buf_puts(out, ": ");
    kiln_caption_amount(caption, total, out);
    if (has_rate(caption)) {
        kiln_buf_puts(out, " (");
        add_amount(caption, total, false, out);
        kiln_buf_puts(out, " in ");
        kiln_format_value(out, (double)view->duration_ns, KILN_STR("nanoseconds"));
        kiln_buf_puts(out, ")");
    }
    if (part) {
        kiln_buf_puts(out, ", ");
        kiln_caption_share(total, (double)view->total, out);
        kiln_buf_puts(out, " of ");
        kiln_caption_amount(caption, (double)view->total, out);
    }
}

void kiln_caption_source(const struct kiln_caption *caption, struct kiln_buf *out)
{
    const struct kiln_view *view = caption->view;
    const struct kiln_tree_node *part = part_of(caption);
    int64_t samples = kiln_sat_round(part ? part->count_b : view->count);
    struct kiln_buf id;

    kiln_buf_init(&id, out->max);
    kiln_type_id(&view->type, &id);
    kiln_clean_add(out, kiln_buf_str(&id), TITLE_CHARS_MAX, caption->quote);
    kiln_buf_done(&id);
    if (samples > 0) {
        kiln_buf_puts(out, " · ");
        kiln_caption_number((uint64_t)samples, caption->quote, out);
        kiln_buf_puts(out, samples == 1 ? " sample" : " samples");
    }
    if (view->n_profiles > 1) {
        kiln_buf_puts(out, " · ");
        kiln_caption_number(view->n_profiles, caption->quote, out);
        kiln_buf_puts(out, " profiles");
    }
}

void kiln_caption_change_share(const struct kiln_tree *tree, uint32_t node, struct kiln_buf *out)
{
    const struct kiln_tree_node *n = &tree->nodes[node], *root = &tree->nodes[0];
    double delta = (double)n->total_b - (double)n->total_a;

    kiln_buf_puts(out, delta < 0 ? "−" : "+");
    kiln_caption_share(fabs(delta), (double)(root->total_a ? root->total_a : root->total_b), out);
}

/* ---- what stands out ---- */

static void add_name(const struct kiln_caption *caption, const struct kiln_frame *frame,
                     struct kiln_buf *out)
{
    kiln_clean_add(out, frame->name, NAME_CHARS_MAX, caption->quote);
}

/* The place of the largest; 0 also where there is none. */
static uint32_t largest(const double *sums, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (sums[i] > sums[best])
            best = i;
    return best;
}

/* Adds up what `leaf` spent itself by the frame of the program's own that is next above it. */
static void sum_by_owner(const struct kiln_view *view, uint32_t leaf, uint8_t *families,
                         double *sums)
{
    for (uint32_t i = 0; i < view->n_rows; i++) {
        const struct kiln_view_row *row = &view->rows[i];
        const uint32_t *path = view->path + row->first;
        uint32_t n = row->n;

        if (!n || path[n - 1] != leaf)
            continue;
        while (n) {
            uint32_t frame = path[--n];

            if (!families[frame])
                families[frame] = (uint8_t)(1 + kiln_frame_family(&view->frames[frame]));
            if (families[frame] == 1 + KILN_FAMILY_OWN) {
                sums[frame] += (double)row->value;
                break;
            }
        }
    }
}

/* ", most of it below main.save": where one function of the program's own asked for most of it. */
static void add_owner(const struct kiln_caption *caption, uint32_t leaf, double self,
                      struct kiln_buf *out)
{
    const struct kiln_view *view = caption->view;
    double *sums = kiln_calloc(view->n_frames, sizeof(*sums));
    uint8_t *families = kiln_calloc(view->n_frames, 1);
    uint32_t best;

    if (sums && families) {
        sum_by_owner(view, leaf, families, sums);
        best = largest(sums, view->n_frames);
        if (best != leaf && sums[best] >= self / 2) {
            kiln_buf_puts(out, ", most of it below ");
            add_name(caption, &view->frames[best], out);
        }
    } else if (!out->error) {
        out->error = -ENOMEM;
    }
    kiln_free(sums);
    kiln_free(families);
}

/* The frame that spent most itself: the last of each stack did, whichever way the tree stands. */
static void add_hottest(const struct kiln_caption *caption, struct kiln_buf *out)
{
    const struct kiln_view *view = caption->view;
    double *sums = kiln_calloc(view->n_frames, sizeof(*sums));
    uint32_t best;

    if (!sums) {
        out->error = out->error ? out->error : -ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < view->n_rows; i++) {
        const struct kiln_view_row *row = &view->rows[i];

        if (row->n)
            sums[view->path[row->first + row->n - 1]] += (double)row->value;
    }
    best = largest(sums, view->n_frames);
    if (sums[best] > 0 && view->total > 0) {
        add_name(caption, &view->frames[best], out);
        kiln_buf_puts(out, " itself takes ");
        kiln_caption_share(sums[best], (double)view->total, out);
        add_owner(caption, best, sums[best], out);
    }
    kiln_free(sums);
}

/* The node where most of a growth (sign 1) or a shrinkage (-1) starts; 0 where there is none. */
static uint32_t find_start(const struct kiln_tree *tree, int sign)
{
    double best_delta = 0;
    uint32_t best = 0;

    for (uint32_t i = 1; i < tree->n_nodes; i++) {
        const struct kiln_tree_node *node = &tree->nodes[i];
        double delta = sign * ((double)node->total_b - (double)node->total_a);

        if (delta > best_delta && kiln_diff_is_real(tree, i) && !kiln_diff_hands_on(tree, i)) {
            best_delta = delta;
            best = i;
        }
    }
    return best;
}

/* " below main.validate": of code that is not the program's own, who of its own called it. */
static void add_own_caller(const struct kiln_caption *caption, uint32_t node, struct kiln_buf *out)
{
    const struct kiln_tree *tree = caption->tree;
    uint32_t at = node;

    while (at && kiln_frame_family(&tree->frames[tree->nodes[at].frame]) != KILN_FAMILY_OWN)
        at = tree->nodes[at].parent;
    if (!at || at == node)
        return;
    kiln_buf_puts(out, " below ");
    add_name(caption, &tree->frames[tree->nodes[at].frame], out);
}

static void add_most_changed(const struct kiln_caption *caption, struct kiln_buf *out)
{
    static const char *const words[] = {" grew by ", " shrank by "};
    const struct kiln_tree *tree = caption->tree;
    bool any = false;

    for (int side = 0; side < 2; side++) {
        uint32_t node = find_start(tree, side ? -1 : 1);

        if (!node)
            continue;
        kiln_buf_puts(out, any ? "; " : "");
        add_name(caption, &tree->frames[tree->nodes[node].frame], out);
        add_own_caller(caption, node, out);
        kiln_buf_puts(out, words[side]);
        kiln_caption_amount(
            caption, fabs((double)tree->nodes[node].total_b - (double)tree->nodes[node].total_a),
            out);
        any = true;
    }
    if (!any)
        kiln_buf_puts(out, "No function changed by more than noise");
}

void kiln_caption_finding(const struct kiln_caption *caption, struct kiln_buf *out)
{
    if (caption->tree && caption->tree->is_diff)
        add_most_changed(caption, out);
    else if (caption->view->n_frames && !part_of(caption))
        add_hottest(caption, out);
}

void kiln_caption_facts(const struct kiln_caption *caption, struct kiln_buf *out)
{
    size_t before = out->len;

    kiln_caption_finding(caption, out);
    kiln_buf_puts(out, out->len > before ? " · " : "");
    kiln_caption_source(caption, out);
}

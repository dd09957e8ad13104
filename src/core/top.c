/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top walks each row once; a frame remembers the last row that counted it, which is how recursion
 * counts once.
 *
 * The sandwich takes each row that has a matching frame once, at the outermost one: callers are
 * what led to it, callees all that happened below it, recursion included.  Both trees therefore
 * have the same total: that of the frame in top.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/regex.h"
#include "base/sat.h"
#include "core/top.h"
#include "core/tree_int.h"

/* ---- top ---- */

static void add_row(struct kiln_top_row *top, uint32_t *seen, const struct kiln_view *view,
                    uint32_t index)
{
    const struct kiln_view_row *row = &view->rows[index];

    for (uint32_t i = 0; i < row->n; i++) {
        uint32_t frame = view->path[row->first + i];

        if (seen[frame] == index + 1)
            continue;
        seen[frame] = index + 1;
        top[frame].total = kiln_sat_add(top[frame].total, row->value);
        top[frame].count_total += row->count;
    }
    if (row->n) {
        struct kiln_top_row *leaf = &top[view->path[row->first + row->n - 1]];

        leaf->self = kiln_sat_add(leaf->self, row->value);
        leaf->count_self += row->count;
    }
}

struct ordering {
    const struct kiln_frame *frames;
    enum kiln_top_order order;
};

static int larger_first(int64_t a, int64_t b)
{
    return (a < b) - (a > b);
}

static int compare(const void *a, const void *b, void *context)
{
    const struct ordering *by = context;
    const struct kiln_top_row *x = a, *y = b;
    const struct kiln_frame *f = &by->frames[x->frame], *g = &by->frames[y->frame];
    int order = 0;

    if (by->order == KILN_TOP_BY_SELF)
        order = larger_first(x->self, y->self);
    if (order == 0 && by->order != KILN_TOP_BY_NAME)
        order = larger_first(x->total, y->total);
    if (order == 0)
        order = kiln_str_cmp(f->name, g->name);
    if (order == 0)
        order = kiln_str_cmp(f->file, g->file);
    return order ? order : (x->frame > y->frame) - (x->frame < y->frame);
}

int kiln_top(const struct kiln_view *view, enum kiln_top_order order,
             struct kiln_top_row **ret_rows, uint32_t *ret_n)
{
    struct kiln_top_row *top = kiln_calloc(view->n_frames, sizeof(*top));
    uint32_t *seen = kiln_calloc(view->n_frames, sizeof(*seen));
    struct ordering by = {view->frames, order};
    uint32_t n = 0;

    if (!top || !seen) {
        kiln_free(top);
        kiln_free(seen);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->n_rows; i++)
        add_row(top, seen, view, i);
    for (uint32_t i = 0; i < view->n_frames; i++) {
        top[i].frame = i;
        if (seen[i])
            top[n++] = top[i];
    }
    kiln_free(seen);
    qsort_r(top, n, sizeof(*top), compare, &by);
    *ret_rows = top;
    *ret_n = n;
    return 0;
}

/* ---- sandwich ---- */

/* Which frames match, parallel to the view's. */
static int match_names(const struct kiln_view *view, struct kiln_str name_regex, bool *matches,
                       struct kiln_err *err)
{
    struct kiln_regex *regex;
    int r;

    r = kiln_regex_new(name_regex, 0, &regex, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < view->n_frames && r >= 0; i++) {
        r = kiln_regex_matches(regex, view->frames[i].name);
        matches[i] = r == 1;
    }
    kiln_regex_free(regex);
    return r < 0 ? r : 0;
}

/* One of the two trees: the paths from the outermost match up, or down. */
static int half(const struct kiln_view *view, const bool *matches,
                const struct kiln_tree_opts *opts, bool callers, struct kiln_tree **ret_tree)
{
    struct kiln_grower g;
    int r = kiln_grower_init(&g, opts->memory_bytes, view->n_rows, callers ? view->n_path : 0);

    for (uint32_t i = 0; i < view->n_rows && r == 0; i++) {
        const struct kiln_view_row *row = &view->rows[i];
        const uint32_t *path = view->path + row->first;
        const struct kiln_tree_weight weight = {.b = row->value, .count_b = row->count};
        uint32_t at = 0;

        while (at < row->n && !matches[path[at]])
            at++;
        if (at == row->n)
            continue;
        if (callers)
            kiln_grower_copy(&g, &(struct kiln_tree_path){path, at + 1, 0}, NULL, true, &weight);
        else
            kiln_grower_add(&g, path + at, row->n - at, &weight);
    }
    if (r == 0)
        r = kiln_grower_finish(&g, view->frames, view->n_frames, opts, ret_tree);
    kiln_grower_done(&g);
    return r;
}

int kiln_sandwich(const struct kiln_view *view, struct kiln_str name_regex,
                  const struct kiln_tree_opts *opts, struct kiln_tree **ret_callers,
                  struct kiln_tree **ret_callees, struct kiln_err *err)
{
    bool *matches = kiln_calloc(view->n_frames, sizeof(*matches));
    struct kiln_tree *callers = NULL, *callees = NULL;
    int r;

    r = matches ? match_names(view, name_regex, matches, err) : -ENOMEM;
    if (r == 0 && ret_callers)
        r = half(view, matches, opts, true, &callers);
    if (r == 0 && ret_callees)
        r = half(view, matches, opts, false, &callees);
    kiln_free(matches);
    if (r < 0) {
        kiln_tree_free(callers);
        kiln_tree_free(callees);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    if (ret_callers)
        *ret_callers = callers;
    if (ret_callees)
        *ret_callees = callees;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each view is added up by the frames of the pair, then every frame is compared (core/noise.h says
 * what is noise).
 *
 * Ranking: changes of self beyond their noise, then changes of total beyond theirs (callers of what
 * changed), then the rest; each by how large the change is.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sat.h"
#include "core/diff.h"
#include "core/noise.h"
#include "core/pair.h"
#include "core/top.h"

/* A sum and the observations behind it. */
struct measure {
    int64_t value;
    double count;
};

struct measures {
    struct measure self, total;
};

/* A view, added up by the frames of the pair. */
struct side {
    const struct kiln_view *view;
    struct measures *sums; /* parallel to the frames of the pair */
    struct kiln_noise_side whole;
};

static void add(struct measure *to, const struct kiln_view_row *row)
{
    to->value = kiln_sat_add(to->value, row->value);
    to->count += row->count;
}

static int add_up(struct side *side, const uint32_t *map, uint32_t n_frames)
{
    const struct kiln_view *view = side->view;
    uint32_t *seen = kiln_calloc(n_frames, sizeof(*seen));

    side->sums = kiln_calloc(n_frames, sizeof(*side->sums));
    if (!seen || !side->sums) {
        kiln_free(seen);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < view->n_rows; i++) {
        const struct kiln_view_row *row = &view->rows[i];
        uint32_t frame = 0;

        for (uint32_t k = 0; k < row->n; k++) {
            frame = map[view->path[row->first + k]];
            if (seen[frame] != i + 1)
                add(&side->sums[frame].total, row);
            seen[frame] = i + 1;
        }
        if (row->n)
            add(&side->sums[frame].self, row);
    }
    kiln_free(seen);
    return 0;
}

static double noise(const struct side *a, const struct measure *of_a, const struct side *b,
                    const struct measure *of_b)
{
    return kiln_noise(&a->whole, (struct kiln_measure){(double)of_a->value, of_a->count}, &b->whole,
                      (struct kiln_measure){(double)of_b->value, of_b->count});
}

static struct kiln_diff_row compare(const struct side *a, const struct side *b, uint32_t frame)
{
    const struct measures *of_a = &a->sums[frame], *of_b = &b->sums[frame];
    struct kiln_diff_row row = {
        .self_a = (double)of_a->self.value * a->whole.scale,
        .total_a = (double)of_a->total.value * a->whole.scale,
        .self_b = of_b->self.value,
        .total_b = of_b->total.value,
        .self_noise = noise(a, &of_a->self, b, &of_b->self),
        .total_noise = noise(a, &of_a->total, b, &of_b->total),
    };
    double self = fabs((double)row.self_b - row.self_a);
    double total = fabs((double)row.total_b - row.total_a);

    row.self_within_noise = self == 0 || self <= row.self_noise;
    row.total_within_noise = total == 0 || total <= row.total_noise;
    return row;
}

static int rank(const struct kiln_diff_row *row)
{
    return row->self_within_noise ? 1 + row->total_within_noise : 0;
}

static double change(const struct kiln_diff_row *row, int by)
{
    return fabs(by == 1 ? (double)row->total_b - row->total_a : (double)row->self_b - row->self_a);
}

static int compare_rows(const void *a, const void *b)
{
    const struct kiln_diff_row *x = a, *y = b;
    int by = rank(x);

    if (by != rank(y))
        return by - rank(y);
    if (change(x, by) != change(y, by))
        return change(x, by) < change(y, by) ? 1 : -1;
    if (change(x, 1) != change(y, 1))
        return change(x, 1) < change(y, 1) ? 1 : -1;
    return kiln_str_cmp(x->frame.name, y->frame.name);
}

/* Decides what the base is multiplied by, and says what was done. */
static void normalize(struct kiln_diff *diff, const struct kiln_view *a, const struct kiln_view *b,
                      enum kiln_normalize wanted)
{
    diff->normalized = KILN_NORMALIZE_NONE;
    diff->scale_a = 1;
    if (wanted == KILN_NORMALIZE_TIME && a->duration_ns && b->duration_ns && !b->type.level) {
        diff->normalized = wanted;
        diff->scale_a = (double)b->duration_ns / (double)a->duration_ns;
    }
    /* Totals of opposite signs have no common measure: scaling would turn growth into shrinking. */
    if (wanted == KILN_NORMALIZE_TOTAL && a->total && b->total &&
        (a->total < 0) == (b->total < 0)) {
        diff->normalized = wanted;
        diff->scale_a = (double)b->total / (double)a->total;
    }
}

static int fill(struct kiln_diff *diff, const struct kiln_pair *pair, struct side *a,
                struct side *b)
{
    const struct measure all_a = {a->view->total, a->view->count};
    const struct measure all_b = {b->view->total, b->view->count};
    int r;

    r = add_up(a, pair->map_a, pair->n_frames);
    if (r == 0)
        r = add_up(b, pair->map_b, pair->n_frames);
    if (r < 0)
        return r;
    diff->rows = kiln_calloc(pair->n_frames, sizeof(*diff->rows));
    if (!diff->rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < pair->n_frames; i++) {
        diff->rows[i] = compare(a, b, i);
        diff->rows[i].frame = pair->frames[i];
    }
    diff->n_rows = pair->n_frames;
    qsort(diff->rows, diff->n_rows, sizeof(*diff->rows), compare_rows);
    diff->total_a = (double)a->view->total * a->whole.scale;
    diff->total_b = (double)b->view->total;
    diff->total_noise = noise(a, &all_a, b, &all_b);
    return 0;
}

static int make(const struct kiln_view *a, const struct kiln_view *b, enum kiln_normalize wanted,
                struct kiln_diff *diff)
{
    struct side base, other;
    struct kiln_pair pair;
    bool against_total;
    int r;

    normalize(diff, a, b, wanted);
    against_total = diff->normalized == KILN_NORMALIZE_TOTAL;
    base = (struct side){.view = a,
                         .whole = {(double)a->total, a->count, diff->scale_a, against_total}};
    other = (struct side){.view = b, .whole = {(double)b->total, b->count, 1, against_total}};
    r = kiln_pair_init(&pair, a, b);
    if (r < 0)
        return r;
    r = fill(diff, &pair, &base, &other);
    kiln_free(base.sums);
    kiln_free(other.sums);
    kiln_pair_done(&pair);
    return r;
}

int kiln_diff_new(const struct kiln_view *a, const struct kiln_view *b, enum kiln_normalize wanted,
                  struct kiln_diff **ret_diff, struct kiln_err *err)
{
    struct kiln_diff *diff;
    int r;

    if (!kiln_str_eq(a->type.unit, b->type.unit))
        return kiln_err_set(err, KILN_E_NOMATCH, NULL,
                            "%.*s:%.*s cannot be compared with %.*s:%.*s",
                            KILN_STR_ARG(b->type.type), KILN_STR_ARG(b->type.unit),
                            KILN_STR_ARG(a->type.type), KILN_STR_ARG(a->type.unit));
    diff = kiln_calloc(1, sizeof(*diff));
    r = diff ? make(a, b, wanted, diff) : -ENOMEM;
    if (r < 0) {
        kiln_diff_free(diff);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_diff = diff;
    return 0;
}

void kiln_diff_free(struct kiln_diff *diff)
{
    if (!diff)
        return;
    kiln_free(diff->rows);
    kiln_free(diff);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/rows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"
#include "core/builder_int.h"
#include "core/remap.h"

int kiln_rows_init(struct kiln_rows *rows, const struct kiln_limits *limits)
{
    *rows = (struct kiln_rows){0};
    return kiln_builder_new(limits, &rows->b);
}

void kiln_rows_done(struct kiln_rows *rows)
{
    if (!rows->b)
        return;
    kiln_array_free(&rows->b->box->budget, (void **)&rows->rows, &rows->cap, sizeof(*rows->rows));
    kiln_builder_free(rows->b);
    rows->b = NULL;
}

size_t kiln_rows_bytes(const struct kiln_rows *rows)
{
    return rows->b->box->budget.used;
}

/* ---- adding ---- */

static void sum_sample(struct kiln_row_sums *sums, const struct kiln_batch *batch,
                       const struct kiln_sample *s)
{
    const int64_t *values = kiln_sample_values(batch, s);
    const uint64_t *times = kiln_sample_times(batch, s);
    uint32_t kind = times ? KILN_SUM_TIMED : KILN_SUM_PLAIN;

    sums->of[kind].n += s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        int64_t raw = values ? values[i] : 1;

        sums->of[kind].raw = kiln_sat_add(sums->of[kind].raw, raw);
        sums->of[kind].weight += raw < 0 ? -(double)raw : (double)raw;
    }
    for (uint32_t i = 0; times && i < s->n; i++) {
        sums->min_ns = times[i] < sums->min_ns ? times[i] : sums->min_ns;
        sums->max_ns = times[i] > sums->max_ns ? times[i] : sums->max_ns;
    }
}

/* The usual case, where each sample has one value and no time; false where it is not. */
static bool sum_plain(struct kiln_row_sums *sums, const struct kiln_batch *batch,
                      const struct kiln_row *row, uint32_t n)
{
    const struct kiln_sample *samples = batch->samples + row->first_sample;
    bool unusual = false;
    int64_t sum = 0;

    for (uint32_t i = 0; i < n && !unusual; i++) {
        int64_t value = batch->observations[samples[i].first];

        unusual = samples[i].n != 1 || samples[i].has_times || value < 0 ||
                  __builtin_add_overflow(sum, value, &sum);
    }
    if (unusual)
        return false;
    sums->of[KILN_SUM_PLAIN].raw = sum;
    sums->of[KILN_SUM_PLAIN].weight = (double)sum;
    sums->of[KILN_SUM_PLAIN].n = n;
    return true;
}

void kiln_rows_add(struct kiln_rows *rows, struct kiln_row row)
{
    const struct kiln_batch *batch = kiln_rows_batch(rows);
    const struct kiln_profile *p;

    if (!kiln_builder_room(rows->b, (void **)&rows->rows, &rows->cap, (uint64_t)rows->n + 1,
                           sizeof(*rows->rows)))
        return;
    p = &batch->profiles[batch->n_profiles - 1];
    row.first_sample = batch->n_samples - p->n_samples;
    row.sums = (struct kiln_row_sums){.min_ns = UINT64_MAX};
    if (!sum_plain(&row.sums, batch, &row, p->n_samples)) {
        for (uint32_t i = 0; i < p->n_samples; i++)
            sum_sample(&row.sums, batch, &batch->samples[row.first_sample + i]);
    }
    row.min_ns = p->time_ns < row.sums.min_ns ? p->time_ns : row.sums.min_ns;
    row.max_ns = p->time_ns > row.sums.max_ns ? p->time_ns : row.sums.max_ns;
    rows->rows[rows->n++] = row;
}

struct kiln_block_profile kiln_rows_profile(const struct kiln_rows *rows, uint32_t row)
{
    const struct kiln_batch *batch = kiln_rows_batch(rows);
    const struct kiln_row *r = &rows->rows[row];

    return (struct kiln_block_profile){
        .series = r->series,
        .resource = r->resource,
        .scope = r->scope,
        .flags = r->flags,
        .head = batch->profiles[row],
        .samples = batch->samples + r->first_sample,
        .observations = batch->observations,
    };
}

/* ---- choosing ---- */

/* A chosen row; in the order of `place` all of a resource, and in it of a scope, stand together. */
struct chosen {
    uint64_t place;
    uint32_t row;
};

static int by_place(const void *a, const void *b)
{
    const struct chosen *x = a, *y = b;

    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static bool in_time(const struct kiln_rows_choice *choice, uint64_t time_ns)
{
    return (!choice->start_ns && !choice->end_ns) ||
           (time_ns >= choice->start_ns && time_ns < choice->end_ns);
}

static bool any_time_in(const struct kiln_rows *rows, uint32_t row,
                        const struct kiln_rows_choice *choice)
{
    const struct kiln_batch *batch = kiln_rows_batch(rows);
    const struct kiln_row *r = &rows->rows[row];
    const struct kiln_profile *p = &batch->profiles[row];

    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *s = &batch->samples[r->first_sample + i];
        const uint64_t *times = kiln_sample_times(batch, s);

        for (uint32_t k = 0; times && k < s->n; k++) {
            if (in_time(choice, times[k]))
                return true;
        }
    }
    return false;
}

static bool is_chosen(const struct kiln_rows *rows, uint32_t row,
                      const struct kiln_rows_choice *choice)
{
    const struct kiln_row *r = &rows->rows[row];

    if (choice->series && !(choice->series[r->series / 64] >> r->series % 64 & 1))
        return false;
    if (in_time(choice, kiln_rows_batch(rows)->profiles[row].time_ns))
        return true;
    if (r->max_ns < choice->start_ns || r->min_ns >= choice->end_ns)
        return false;
    return any_time_in(rows, row, choice);
}

struct copying {
    struct kiln_remap *remap;
    struct kiln_builder *b;
    const struct kiln_batch *from;
    const struct kiln_rows_choice *choice;
    int64_t *values; /* scratch: observations of a sample that are in the time */
    uint64_t *times;
    uint32_t cap_values, cap_times;
};

/* The observations in the time: how many, in the scratch where not all of them are. */
static uint32_t cut_times(struct copying *c, const struct kiln_sample *s, const int64_t **values,
                          const uint64_t **times)
{
    uint32_t n = 0;

    if (!kiln_builder_room(c->b, (void **)&c->values, &c->cap_values, s->n, sizeof(*c->values)) ||
        !kiln_builder_room(c->b, (void **)&c->times, &c->cap_times, s->n, sizeof(*c->times)))
        return 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!in_time(c->choice, (*times)[i]))
            continue;
        if (*values)
            c->values[n] = (*values)[i];
        c->times[n++] = (*times)[i];
    }
    if (*values)
        *values = c->values;
    *times = c->times;
    return n;
}

static void copy_sample(struct copying *c, uint32_t profile, const struct kiln_sample *s,
                        bool own_time_in)
{
    const int64_t *values = kiln_sample_values(c->from, s);
    const uint64_t *times = kiln_sample_times(c->from, s);
    uint32_t n = s->n;
    uint32_t stack, attrs;

    if (times && (c->choice->start_ns || c->choice->end_ns))
        n = cut_times(c, s, &values, &times);
    else if (!times && !own_time_in)
        return;
    if (n == 0)
        return;
    stack = kiln_remap_stack(c->remap, s->stack);
    attrs = kiln_remap_set(c->remap, s->attrs);
    kiln_builder_add_sample(c->b, profile, stack, attrs, kiln_remap_link(c->remap, s->link), values,
                            times, n);
}

static void copy_row(struct copying *c, const struct kiln_rows *rows, uint32_t row)
{
    struct kiln_profile head = kiln_remap_profile(c->remap, row);
    const struct kiln_profile *p = &c->from->profiles[row];
    bool own_time_in = in_time(c->choice, p->time_ns);
    uint32_t added;

    kiln_remap_payload(c->remap, row, &head);
    added = kiln_builder_add_profile(c->b, &head);
    for (uint32_t i = 0; i < p->n_samples && !kiln_builder_error(c->b); i++)
        copy_sample(c, added, &c->from->samples[rows->rows[row].first_sample + i], own_time_in);
}

static void copy_chosen(struct copying *c, const struct kiln_rows *rows,
                        const struct chosen *chosen, uint32_t n)
{
    for (uint32_t i = 0; i < n && !kiln_builder_error(c->b); i++) {
        const struct kiln_row *row = &rows->rows[chosen[i].row];
        bool first = i == 0;

        if (first || chosen[i].place >> 32 != chosen[i - 1].place >> 32)
            kiln_remap_add_resource(c->remap, row->resource);
        if (first || chosen[i].place != chosen[i - 1].place) {
            struct kiln_scope scope = kiln_remap_scope(c->remap, row->scope);

            kiln_builder_add_scope(c->b, &scope);
        }
        if (!kiln_builder_error(c->b))
            copy_row(c, rows, chosen[i].row);
    }
}

static int copy_all(const struct kiln_rows *rows, const struct kiln_rows_choice *choice,
                    const struct chosen *chosen, uint32_t n, struct kiln_builder *b)
{
    struct copying c = {.b = b, .from = kiln_rows_batch(rows), .choice = choice};
    struct kiln_budget *budget = &b->box->budget;
    int r = kiln_remap_new(b, c.from, NULL, &c.remap);

    if (r < 0)
        return r;
    kiln_remap_sole(c.remap);
    copy_chosen(&c, rows, chosen, n);
    kiln_array_free(budget, (void **)&c.values, &c.cap_values, sizeof(*c.values));
    kiln_array_free(budget, (void **)&c.times, &c.cap_times, sizeof(*c.times));
    kiln_remap_free(c.remap);
    return 0;
}

static int choose(const struct kiln_rows *rows, const struct kiln_rows_choice *choice,
                  struct chosen **ret_chosen, uint32_t *ret_n)
{
    struct chosen *chosen = kiln_malloc(((size_t)rows->n + 1) * sizeof(*chosen));
    uint32_t n = 0;

    if (!chosen)
        return -ENOMEM;
    for (uint32_t i = 0; i < rows->n; i++) {
        const struct kiln_row *row = &rows->rows[i];

        if (is_chosen(rows, i, choice))
            chosen[n++] = (struct chosen){(uint64_t)row->resource << 32 | row->scope, i};
    }
    if (n)
        qsort(chosen, n, sizeof(*chosen), by_place);
    *ret_chosen = chosen;
    *ret_n = n;
    return 0;
}

int kiln_rows_select(const struct kiln_rows *rows, const struct kiln_rows_choice *choice,
                     const struct kiln_limits *limits, struct kiln_batch **ret_batch,
                     struct kiln_err *err)
{
    struct kiln_builder *b = NULL;
    struct chosen *chosen = NULL;
    uint32_t n = 0;
    int r;

    r = choose(rows, choice, &chosen, &n);
    if (r == 0 && n == 0) {
        kiln_free(chosen);
        *ret_batch = NULL;
        return 0;
    }
    if (r == 0)
        r = kiln_builder_new(limits, &b);
    if (r == 0) {
        r = copy_all(rows, choice, chosen, n, b);
        if (r < 0)
            kiln_builder_fail(b, r);
    }
    kiln_free(chosen);
    if (!b)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return kiln_builder_finish(b, ret_batch, err);
}

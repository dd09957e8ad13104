/* SPDX-License-Identifier: Apache-2.0 */
/* Points in the order of groups and buckets; then the series that stay, by the values of labels. */
#include <errno.h>
#include <stdlib.h>

#include "store/tally.h"

struct finishing {
    struct kiln_tally *t;
    struct kiln_timeline *timeline;
    uint32_t *order; /* of points */
};

static struct kiln_tally_point *point_at(const struct kiln_tally *t, uint32_t i)
{
    return (struct kiln_tally_point *)t->points.all + i;
}

/* ---- means ---- */

/* Means of processes take the place of the sums; `values` is parallel to points. */
static int divide(struct kiln_tally *t, double *values)
{
    for (uint32_t i = 0; i < t->means.n; i++) {
        const struct kiln_tally_mean *mean = (struct kiln_tally_mean *)t->means.all + i;
        uint64_t key[2] = {point_at(t, (uint32_t)mean->point)->bucket, mean->process};
        const struct kiln_tally_look *look;
        uint32_t at;
        int r = kiln_fund_table_get(&t->looks, &t->fund, key, &at);

        if (r < 0)
            return r;
        look = (struct kiln_tally_look *)t->looks.all + at;
        values[mean->point] += look->n ? mean->sum / (double)look->n : 0;
    }
    return 0;
}

static int value_points(struct kiln_tally *t, double *values)
{
    if (t->q->average && !t->opts->mean)
        return divide(t, values);
    for (uint32_t i = 0; i < t->points.n; i++) {
        const struct kiln_tally_point *p = point_at(t, i);

        values[i] = (double)p->sum / (t->opts->mean ? (double)p->n_profiles : 1);
    }
    return 0;
}

/* ---- exemplars ---- */

static void choose_spans(struct kiln_tally *t)
{
    for (uint32_t i = 0; i < t->spans.n; i++) {
        const struct kiln_tally_span *span = (struct kiln_tally_span *)t->spans.all + i;
        struct kiln_tally_point *point = point_at(t, (uint32_t)span->point);
        struct kiln_exemplar e = {
            .time_ns = span->time_ns, .value = span->value, .series = t->series.all[span->series]};

        memcpy(e.trace_id, span->link.trace_id, sizeof(e.trace_id));
        memcpy(e.span_id, span->link.span_id, sizeof(e.span_id));
        if (!point->has_best || kiln_tally_is_better(&e, &point->best))
            point->best = e;
        point->has_best = true;
    }
}

static int put_exemplar(struct kiln_timeline *timeline, const struct kiln_tally_point *p,
                        uint32_t *ret_number)
{
    struct kiln_exemplar *e;

    if (!p->has_best)
        return 0;
    e = &timeline->exemplars[timeline->n_exemplars];
    *e = p->best;
    e->series = kiln_arena_copy(&timeline->arena, p->best.series);
    if (!e->series.ptr)
        return -ENOMEM;
    *ret_number = ++timeline->n_exemplars;
    return 0;
}

/* ---- points and series ---- */

static int by_place(const void *a, const void *b, void *context)
{
    const struct kiln_tally_point *x = point_at(context, *(const uint32_t *)a);
    const struct kiln_tally_point *y = point_at(context, *(const uint32_t *)b);

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

static int fill_labels(struct finishing *f, uint64_t group, struct kiln_timeline_series *series)
{
    struct kiln_arena *arena = &f->timeline->arena;
    struct kiln_str rest = f->t->groups.all[group];
    struct kiln_str *labels = kiln_arena_alloc(arena, (f->t->opts->n_by + 1) * sizeof(*labels));

    for (uint32_t i = 0; labels && i < f->t->opts->n_by; i++) {
        uint32_t len;

        memcpy(&len, rest.ptr, sizeof(len));
        labels[i] = kiln_arena_copy(arena, (struct kiln_str){rest.ptr + sizeof(len), len});
        if (!labels[i].ptr)
            return -ENOMEM;
        rest = (struct kiln_str){rest.ptr + sizeof(len) + len, rest.len - sizeof(len) - len};
    }
    series->labels = labels;
    return labels ? 0 : -ENOMEM;
}

static int put_points(struct finishing *f, const double *values)
{
    struct kiln_timeline *timeline = f->timeline;
    struct kiln_timeline_series *series = NULL;
    uint64_t group = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->t->points.n; i++) {
        const struct kiln_tally_point *p = point_at(f->t, f->order[i]);
        struct kiln_timeline_point *to = &timeline->points[timeline->n_points++];

        *to = (struct kiln_timeline_point){.bucket = p->bucket,
                                           .value = values[f->order[i]],
                                           .count = p->count,
                                           .n_profiles = p->n_profiles};
        if (!series || p->group != group) {
            series = &timeline->series[timeline->n_series++];
            series->first = i;
            group = p->group;
            r = fill_labels(f, group, series);
        }
        if (r == 0)
            r = put_exemplar(timeline, p, &to->exemplar);
        series->n++;
        series->sum += to->value;
    }
    return r;
}

static int by_labels(const void *a, const void *b, void *context)
{
    const struct kiln_timeline_series *x = a, *y = b;
    const struct kiln_tally *t = context;
    int order = 0;

    for (uint32_t i = 0; i < t->opts->n_by && order == 0; i++)
        order = kiln_str_cmp(x->labels[i], y->labels[i]);
    return order;
}

static int by_sum(const void *a, const void *b, void *context)
{
    const struct kiln_timeline_series *x = a, *y = b;

    if (x->sum != y->sum)
        return x->sum < y->sum ? 1 : -1;
    return by_labels(a, b, context);
}

static void sort_series(struct finishing *f)
{
    struct kiln_timeline *timeline = f->timeline;
    uint32_t limit = f->t->opts->limit;

    if (limit && timeline->n_series > limit) {
        qsort_r(timeline->series, timeline->n_series, sizeof(*timeline->series), by_sum, f->t);
        timeline->n_dropped = timeline->n_series - limit;
        timeline->n_series = limit;
    }
    qsort_r(timeline->series, timeline->n_series, sizeof(*timeline->series), by_labels, f->t);
}

/* ---- everything ---- */

static int fill(struct finishing *f, double *values)
{
    struct kiln_tally *t = f->t;
    struct kiln_timeline *timeline = f->timeline;
    int r;

    timeline->points = kiln_calloc((size_t)t->points.n + 1, sizeof(*timeline->points));
    timeline->exemplars = kiln_calloc((size_t)t->points.n + 1, sizeof(*timeline->exemplars));
    timeline->series = kiln_calloc((size_t)t->groups.n + 1, sizeof(*timeline->series));
    if (!timeline->points || !timeline->exemplars || !timeline->series)
        return -ENOMEM;
    r = value_points(t, values);
    if (r < 0)
        return r;
    choose_spans(t);
    for (uint32_t i = 0; i < t->points.n; i++)
        f->order[i] = i;
    qsort_r(f->order, t->points.n, sizeof(*f->order), by_place, t);
    r = put_points(f, values);
    if (r == 0)
        sort_series(f);
    return r;
}

int kiln_tally_finish(struct kiln_tally *t, const struct kiln_basis *basis,
                      struct kiln_timeline **ret_timeline)
{
    struct finishing f = {.t = t};
    double *values = kiln_calloc((size_t)t->points.n + 1, sizeof(*values));
    int r = -ENOMEM;

    f.timeline = kiln_calloc(1, sizeof(*f.timeline));
    f.order = kiln_malloc(((size_t)t->points.n + 1) * sizeof(*f.order));
    if (f.timeline) {
        f.timeline->basis = *basis;
        f.timeline->basis.count = t->count;
        f.timeline->budget.limit = SIZE_MAX;
        kiln_arena_init(&f.timeline->arena, &f.timeline->budget);
    }
    if (f.timeline && f.order && values)
        r = fill(&f, values);
    kiln_free(f.order);
    kiln_free(values);
    if (r < 0)
        kiln_timeline_free(f.timeline);
    else
        *ret_timeline = f.timeline;
    return r;
}

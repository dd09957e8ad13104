/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/query?format=series: values over time, by labels.
 *
 * The engine returns all series.  Of these the `limit` largest are listed; of the listed ones the
 * `points` largest come with their points.  Everything without points is added up in "rest", so
 * that a chart of an answer always adds up to its total, however many series there are.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/native_int.h"

#define POINT_BYTES  40u /* in JSON, about */
#define SERIES_BYTES 96u

struct picture {
    const struct kiln_timeline *timeline;
    uint64_t step_ns;
    uint32_t *rank;           /* of each series, by its sum; 0 is the largest */
    uint32_t limit, n_points; /* how many series are listed, and how many of them with points */
};

struct point {
    uint64_t bucket;
    double value, count;
};

/* ---- which series are shown ---- */

static int by_sum(const void *a, const void *b, void *context)
{
    const struct kiln_timeline_series *all = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    if (all[x].sum != all[y].sum)
        return all[x].sum < all[y].sum ? 1 : -1;
    return x < y ? -1 : x > y;
}

static int rank_series(struct picture *p)
{
    uint32_t n = p->timeline->n_series;
    uint32_t *order = kiln_malloc(((size_t)n + 1) * sizeof(*order));

    p->rank = kiln_malloc(((size_t)n + 1) * sizeof(*p->rank));
    if (!order || !p->rank) {
        kiln_free(order);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), by_sum, p->timeline->series);
    for (uint32_t i = 0; i < n; i++)
        p->rank[order[i]] = i;
    kiln_free(order);
    return 0;
}

/* ---- what has no points of its own, added up ---- */

static int by_bucket(const void *a, const void *b)
{
    const struct point *x = a, *y = b;

    return x->bucket < y->bucket ? -1 : x->bucket > y->bucket;
}

static uint32_t add_equal_buckets(struct point *points, uint32_t n)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (kept && points[kept - 1].bucket == points[i].bucket) {
            points[kept - 1].value += points[i].value;
            points[kept - 1].count += points[i].count;
        } else {
            points[kept++] = points[i];
        }
    }
    return kept;
}

static uint32_t gather_rest(const struct picture *p, struct point *points, double *ret_sum)
{
    const struct kiln_timeline *timeline = p->timeline;
    uint32_t n = 0;

    for (uint32_t i = 0; i < timeline->n_series; i++) {
        const struct kiln_timeline_series *series = &timeline->series[i];

        if (p->rank[i] < p->n_points)
            continue;
        *ret_sum += series->sum;
        for (uint32_t k = 0; k < series->n; k++) {
            const struct kiln_timeline_point *from = &timeline->points[series->first + k];

            points[n++] = (struct point){from->bucket, from->value, from->count};
        }
    }
    qsort(points, n, sizeof(*points), by_bucket);
    return add_equal_buckets(points, n);
}

/* ---- writing ---- */

static void put_points(struct kiln_native_call *call, const struct point *points, uint32_t n)
{
    static const char *const keys[] = {"bucket", "value", "count"};

    for (uint32_t k = 0; k < KILN_ARRAY_LEN(keys); k++) {
        kiln_json_put_name(&call->w, keys[k]);
        kiln_json_put_array(&call->w);
        for (uint32_t i = 0; i < n; i++) {
            if (k == 0)
                kiln_json_put_u64(&call->w, points[i].bucket);
            else
                kiln_json_put_double(&call->w, k == 1 ? points[i].value : points[i].count);
        }
        kiln_json_end_array(&call->w);
    }
}

static void put_labels(struct kiln_native_call *call, const struct kiln_str *values)
{
    const struct kiln_native_texts *by = &call->args.by;

    kiln_json_put_name(&call->w, "labels");
    kiln_json_put_object(&call->w);
    for (uint32_t i = 0; i < by->n; i++) {
        kiln_json_put_name_str(&call->w, by->items[i]);
        kiln_json_put_str(&call->w, values[i]);
    }
    kiln_json_end_object(&call->w);
}

/* `points` is room for all points of the answer. */
static void put_series(struct kiln_native_call *call, const struct picture *p, uint32_t which,
                       struct point *points)
{
    const struct kiln_timeline_series *series = &p->timeline->series[which];
    uint32_t n = p->rank[which] < p->n_points ? series->n : 0;
    double count = 0;

    for (uint32_t i = 0; i < series->n; i++) {
        const struct kiln_timeline_point *from = &p->timeline->points[series->first + i];

        points[i] = (struct point){from->bucket, from->value, from->count};
        count += from->count;
    }
    kiln_json_put_object(&call->w);
    put_labels(call, series->labels);
    kiln_native_put_number(call, "sum", series->sum);
    kiln_native_put_number(call, "observations", count);
    put_points(call, points, n);
    kiln_json_end_object(&call->w);
}

static void put_rest(struct kiln_native_call *call, const struct picture *p, struct point *points)
{
    double sum = 0;
    uint32_t n;

    if (p->n_points >= p->timeline->n_series)
        return;
    n = gather_rest(p, points, &sum);
    kiln_json_put_name(&call->w, "rest");
    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "series", p->timeline->n_series - p->n_points);
    kiln_native_put_number(call, "sum", sum);
    put_points(call, points, n);
    kiln_json_end_object(&call->w);
}

static void put_head(struct kiln_native_call *call, const struct picture *p)
{
    const struct kiln_native_args *args = &call->args;
    uint64_t range_ns = args->until_ns - args->from_ns;

    kiln_native_put_moment(call, "start", args->from_ns);
    kiln_native_put_seconds(call, "step_seconds", p->step_ns);
    kiln_native_put_u64(call, "buckets", (range_ns + p->step_ns - 1) / p->step_ns);
    kiln_json_put_name(&call->w, "by");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < args->by.n; i++)
        kiln_json_put_str(&call->w, args->by.items[i]);
    kiln_json_end_array(&call->w);
}

static void put_picture(struct kiln_native_call *call, const struct picture *p,
                        struct point *points)
{
    kiln_json_put_name(&call->w, "series");
    kiln_json_put_object(&call->w);
    put_head(call, p);
    kiln_json_put_name(&call->w, "series");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < p->timeline->n_series; i++)
        if (p->rank[i] < p->limit)
            put_series(call, p, i, points);
    kiln_json_end_array(&call->w);
    put_rest(call, p, points);
    kiln_native_put_u64(call, "all", p->timeline->n_series);
    kiln_json_end_object(&call->w);
}

/* ---- the answer ---- */

static int answer(struct kiln_native_call *call, struct kiln_ask *ask, const struct picture *p)
{
    const struct kiln_timeline *timeline = p->timeline;
    struct point *points = kiln_malloc(((size_t)timeline->n_points + 1) * sizeof(*points));
    double sum = 0;

    if (!points)
        return -ENOMEM;
    for (uint32_t i = 0; i < timeline->n_series; i++)
        sum += timeline->series[i].sum;
    if (timeline->n_series > p->limit)
        kiln_native_note(call, "series_cut",
                         "%u series with smaller sums are not listed (limit=N lists more); "
                         "they are in \"rest\" and in the total",
                         timeline->n_series - p->limit);
    kiln_native_begin_question(call, ask, &timeline->basis);
    kiln_native_put_number(call, "total", sum);
    put_picture(call, p, points);
    kiln_native_end_answer(call);
    kiln_free(points);
    return 0;
}

static void choose_sizes(const struct kiln_native_args *args, struct picture *p)
{
    p->limit = args->limit ? args->limit : UINT32_MAX;
    p->n_points = p->limit;
    if (args->said & KILN_NATIVE_BIT(POINTS) && args->points < p->limit)
        p->n_points = args->points;
}

/* Bytes of the answer, and of the points that are copied for it. */
static size_t room_of(const struct kiln_timeline *timeline)
{
    return 4096 + (size_t)timeline->n_points * (POINT_BYTES + sizeof(struct point)) +
           (size_t)timeline->n_series * SERIES_BYTES;
}

int kiln_native_answer_series(struct kiln_native_call *call, struct kiln_ask *ask)
{
    struct picture p = {.step_ns = kiln_native_step(&call->args)};
    const struct kiln_timeline_opts opts = {
        .step_ns = p.step_ns,
        .by = call->args.by.items,
        .n_by = call->args.by.n,
    };
    struct kiln_timeline *timeline;
    int r = kiln_ask_timeline(ask, &opts, &timeline, &call->err);

    if (r < 0)
        return r;
    p.timeline = timeline;
    choose_sizes(&call->args, &p);
    r = kiln_native_room(call, ask, room_of(timeline));
    if (r == 0)
        r = rank_series(&p);
    if (r == 0)
        r = answer(call, ask, &p);
    kiln_free(p.rank);
    kiln_timeline_free(timeline);
    return r;
}

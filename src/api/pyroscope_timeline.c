/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SelectSeries: values over time.
 *
 *   SelectSeriesResponse  1 series
 *   Series                1 labels  2 points
 *   Point                 1 value  2 timestamp  4 exemplars
 *   Exemplar              1 timestamp  2 profile_id  3 span_id  4 value  5 labels  6 trace_id
 *
 * Pyroscope's points stand at start, start + step, ... up to end, and each is what came after the
 * point before it, up to and with its own millisecond.  An engine's buckets begin where their time
 * begins: the first of them a step before `start`, and a millisecond later.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/pyroscope_int.h"
#include "base/bytetext.h"
#include "base/clock.h"

/* ---- writing ---- */

static void put_double(struct kiln_pb_out *w, uint32_t field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    kiln_pb_put_fixed64(w, field, bits);
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    uint8_t any = 0;

    for (size_t i = 0; i < n; i++)
        any |= bytes[i];
    return any == 0;
}

static void put_id(struct kiln_pb_out *w, uint32_t field, const uint8_t *id, size_t n)
{
    char text[32];

    kiln_hex_encode(id, n, text);
    if (!is_zero(id, n))
        kiln_pb_put_bytes(w, field, (struct kiln_str){text, 2 * n});
}

/* With the dashes of a UUID. */
static void put_profile_id(struct kiln_pb_out *w, uint32_t field, const uint8_t id[16])
{
    static const uint8_t parts[] = {4, 2, 2, 2, 6};
    char text[36];
    size_t at = 0, from = 0;

    if (is_zero(id, 16))
        return;
    for (size_t i = 0; i < sizeof(parts); i++) {
        if (i)
            text[at++] = '-';
        kiln_hex_encode(id + from, parts[i], text + at);
        at += 2 * parts[i];
        from += parts[i];
    }
    kiln_pb_put_bytes(w, field, (struct kiln_str){text, at});
}

static bool is_among(const struct kiln_texts *texts, struct kiln_str name)
{
    for (uint32_t i = 0; i < texts->n; i++)
        if (kiln_str_eq(texts->items[i], name))
            return true;
    return false;
}

struct pair {
    struct kiln_str name, value;
};

static int by_name(const void *a, const void *b)
{
    return kiln_str_cmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

/* The labels of a series, sorted, as many as there is room for. */
static void put_labels(struct kiln_pb_out *w, uint32_t field, struct kiln_str key,
                       const struct kiln_texts *without)
{
    struct pair pairs[64];
    struct kiln_series series;
    uint32_t n = 2;

    if (kiln_series_parse(key, &series) < 0)
        return;
    pairs[0] = (struct pair){KILN_STR("__profile_type__"), series.type};
    pairs[1] = (struct pair){KILN_STR("service_name"), series.service};
    while (n < KILN_ARRAY_LEN(pairs) &&
           kiln_series_label(&series.labels, &pairs[n].name, &pairs[n].value))
        n++;
    qsort(pairs, n, sizeof(*pairs), by_name);
    while (n-- > 0)
        if (!is_among(without, pairs[n].name))
            kiln_pyro_put_pairs(w, field, &pairs[n].name, &pairs[n].value, 1);
}

void kiln_pyro_put_exemplar(struct kiln_pb_out *w, uint32_t field,
                            const struct kiln_exemplar *exemplar, const struct kiln_texts *without)
{
    size_t end = kiln_pb_mark(w);

    put_id(w, 6, exemplar->trace_id, 16);
    put_labels(w, 5, exemplar->series, without);
    kiln_pb_put_number(w, 4, (uint64_t)exemplar->value);
    put_id(w, 3, exemplar->span_id, 8);
    put_profile_id(w, 2, exemplar->profile_id);
    kiln_pb_put_number(w, 1, exemplar->time_ns / KILN_NS_PER_MS);
    kiln_pb_put_message(w, field, end);
}

/* ---- asking ---- */

/* What the buckets cover, so that bucket i is the point at start + i * step. */
static int timeline_window(struct kiln_pyro_call *call, uint64_t step_ms,
                           struct kiln_window *window)
{
    uint64_t step_ns = step_ms * KILN_NS_PER_MS, ms = KILN_NS_PER_MS, last;
    int r = kiln_pyro_window(call, &call->request, window);

    if (r < 0)
        return r;
    last = window->start_ns + (window->end_ns - 1 - window->start_ns) / step_ns * step_ns;
    if (window->end_ns > last + ms)
        window->end_ns = last + ms; /* no point stands for what is behind the last */
    window->start_ns = window->start_ns + ms > step_ns ? window->start_ns + ms - step_ns : 0;
    return 0;
}

int kiln_pyro_select_timeline(struct kiln_pyro_call *call, struct kiln_ask **ret_ask,
                              struct kiln_timeline **ret_timeline)
{
    struct kiln_pyro_request *request = &call->request;
    struct kiln_timeline_opts opts = {
        .mean = request->aggregation == 1,
        .exemplars = request->exemplars == KILN_PYRO_EXEMPLARS_INDIVIDUAL ||
                     request->exemplars == KILN_PYRO_EXEMPLARS_SPAN,
        .span_exemplars = request->exemplars == KILN_PYRO_EXEMPLARS_SPAN,
        .limit = request->limit > 0 && request->limit < UINT32_MAX ? (uint32_t)request->limit : 0,
    };
    struct kiln_window window;
    struct kiln_ask *ask;
    uint64_t step_ms;
    int r = kiln_pyro_step(call, request->step_s, &step_ms);

    if (r == 0)
        r = timeline_window(call, step_ms, &window);
    if (r == 0)
        r = kiln_pyro_sort_names(call, &request->group_by, &request->group_by);
    if (r == 0)
        r = kiln_pyro_ask(call, request, KILN_PYRO_SAMPLES, &window, &ask);
    if (r < 0)
        return r;
    opts.step_ns = step_ms * KILN_NS_PER_MS;
    opts.by = request->group_by.items;
    opts.n_by = request->group_by.n;
    r = kiln_ask_timeline(ask, &opts, ret_timeline, &call->err);
    if (r < 0)
        kiln_pyro_ask_close(ask);
    else
        *ret_ask = ask;
    return r;
}

static void put_series(struct kiln_pyro_call *call, const struct kiln_timeline *timeline,
                       const struct kiln_timeline_series *series, uint64_t step_ms)
{
    struct kiln_pyro_request *request = &call->request;
    struct kiln_pb_out *w = &call->out;
    size_t whole = kiln_pb_mark(w);

    for (uint32_t i = series->n; i-- > 0;) {
        const struct kiln_timeline_point *point = &timeline->points[series->first + i];
        size_t end = kiln_pb_mark(w);

        if (point->exemplar)
            kiln_pyro_put_exemplar(w, 4, &timeline->exemplars[point->exemplar - 1],
                                   &request->group_by);
        kiln_pb_put_number(w, 2, (uint64_t)request->start_ms + point->bucket * step_ms);
        put_double(w, 1, point->value);
        kiln_pb_put_message(w, 2, end);
    }
    kiln_pyro_put_pairs(w, 1, request->group_by.items, series->labels, request->group_by.n);
    kiln_pb_put_message(w, 1, whole);
}

/* Largest first; equal ones by their labels, as the engine has them. */
static int by_sum(const void *a, const void *b)
{
    const struct kiln_timeline_series *x = *(const struct kiln_timeline_series *const *)a;
    const struct kiln_timeline_series *y = *(const struct kiln_timeline_series *const *)b;

    if (x->sum != y->sum)
        return x->sum > y->sum ? -1 : 1;
    return x < y ? -1 : x > y;
}

int kiln_pyro_select_series(struct kiln_pyro_call *call)
{
    const struct kiln_timeline_series **order;
    struct kiln_timeline *timeline;
    struct kiln_ask *ask;
    uint64_t step_ms;
    int r = kiln_pyro_step(call, call->request.step_s, &step_ms);

    if (r == 0)
        r = kiln_pyro_select_timeline(call, &ask, &timeline);
    if (r < 0)
        return r;
    order = kiln_arena_alloc(&call->arena, ((size_t)timeline->n_series + 1) * sizeof(*order));
    for (uint32_t i = 0; order && i < timeline->n_series; i++)
        order[i] = &timeline->series[i];
    if (order) {
        qsort(order, timeline->n_series, sizeof(*order), by_sum);
        for (uint32_t i = timeline->n_series; i-- > 0;)
            put_series(call, timeline, order[i], step_ms);
    }
    kiln_timeline_free(timeline);
    kiln_pyro_ask_close(ask);
    return order ? 0 : -ENOMEM;
}

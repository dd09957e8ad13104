/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SelectHeatmap: how many profiles, or spans, of which size there were over time.
 *
 *   SelectHeatmapResponse 1 series   HeatmapSeries 1 labels 2 slots
 *   HeatmapSlot 1 timestamp 2 y_min (packed) 3 counts (packed) 4 exemplars
 *
 * Each profile is a spot in a cell: its series by the labels asked for, the slot of time that ends
 * at or after it, and one of twenty ranges of values, the same for all series.  Spots are sorted by
 * these, so that series, slots and cells are runs.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/pyroscope_int.h"
#include "base/clock.h"
#include "base/sat.h"
#include "store/meaning.h"

#define RANGES    20u
#define SPOTS_MAX 200000u

struct spot {
    const struct kiln_found_row *row;
    struct kiln_str *labels; /* parallel to group_by */
    uint64_t slot_ms;
    uint32_t range;
    uint32_t n_labels;
};

/* A run of spots. */
struct run {
    const struct spot *spots;
    uint32_t n;
};

struct heatmap {
    struct kiln_pyro_call *call;
    struct spot *spots;
    uint32_t n;
    uint64_t step_ms;
    int64_t lowest[RANGES + 1]; /* of each range; one past the last */
};

/* ---- cells ---- */

static int compare_labels(const struct spot *a, const struct spot *b)
{
    int order = 0;

    for (uint32_t i = 0; i < a->n_labels && order == 0; i++)
        order = kiln_str_cmp(a->labels[i], b->labels[i]);
    return order;
}

static int by_cell(const void *left, const void *right)
{
    const struct spot *a = left, *b = right;
    int order = compare_labels(a, b);

    if (order)
        return order;
    if (a->slot_ms != b->slot_ms)
        return a->slot_ms < b->slot_ms ? -1 : 1;
    if (a->range != b->range)
        return a->range < b->range ? -1 : 1;
    if (a->row->value != b->row->value) /* the best exemplar first */
        return a->row->value > b->row->value ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void set_ranges(struct heatmap *map, const struct kiln_found *found)
{
    int64_t low = INT64_MAX, high = 0;

    for (uint32_t i = 0; i < found->n_rows; i++) {
        int64_t value = found->rows[i].value;

        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    high = low == high ? kiln_sat_add(low, 1) : high;
    for (uint32_t i = 0; i <= RANGES; i++)
        map->lowest[i] = low + (int64_t)((double)kiln_sat_sub(high, low) / RANGES * i);
}

static uint32_t range_of(const struct heatmap *map, int64_t value)
{
    uint32_t i = 0;

    while (i < RANGES - 1 && value >= map->lowest[i + 1])
        i++;
    return i;
}

/* The end of the slot that a time is in; the first ends at start. */
static uint64_t slot_of(const struct heatmap *map, uint64_t time_ns)
{
    uint64_t start = (uint64_t)map->call->request.start_ms, ms = time_ns / KILN_NS_PER_MS;

    if (ms <= start)
        return start;
    return start + (ms - start + map->step_ms - 1) / map->step_ms * map->step_ms;
}

static int set_spot(struct heatmap *map, struct spot *spot, const struct kiln_found_row *row)
{
    const struct kiln_texts *by = &map->call->request.group_by;
    struct kiln_series series;

    *spot = (struct spot){.row = row,
                          .slot_ms = slot_of(map, row->time_ns),
                          .range = range_of(map, row->value),
                          .n_labels = by->n};
    spot->labels = kiln_arena_alloc(&map->call->arena, (by->n + 1) * sizeof(*spot->labels));
    if (!spot->labels)
        return -ENOMEM;
    for (uint32_t i = 0; i < by->n; i++) {
        spot->labels[i] = KILN_STR_NONE;
        if (kiln_series_parse(row->series, &series) == 0 &&
            !kiln_meaning_of_series(&series, by->items[i], &spot->labels[i]))
            spot->labels[i] = KILN_STR_NONE;
    }
    return 0;
}

static int set_spots(struct heatmap *map, const struct kiln_found *found)
{
    int r = 0;

    set_ranges(map, found);
    map->spots = kiln_arena_alloc(&map->call->arena, found->n_rows * sizeof(*map->spots));
    if (!map->spots)
        return -ENOMEM;
    for (uint32_t i = 0; i < found->n_rows && r == 0; i++)
        r = set_spot(map, &map->spots[map->n++], &found->rows[i]);
    if (r == 0)
        qsort(map->spots, map->n, sizeof(*map->spots), by_cell);
    return r;
}

/* ---- writing ---- */

static void put_exemplars(struct heatmap *map, struct run slot)
{
    struct kiln_pyro_request *request = &map->call->request;

    if (request->exemplars <= KILN_PYRO_EXEMPLARS_NONE)
        return;
    for (uint32_t i = slot.n; i-- > 0;) {
        const struct spot *spot = &slot.spots[i];
        struct kiln_exemplar exemplar = {
            .time_ns = spot->row->time_ns, .value = spot->row->value, .series = spot->row->series};

        if (i && slot.spots[i - 1].range == spot->range)
            continue;
        memcpy(exemplar.profile_id, spot->row->profile_id, 16);
        memcpy(exemplar.trace_id, spot->row->trace_id, 16);
        memcpy(exemplar.span_id, spot->row->span_id, 8);
        kiln_pyro_put_exemplar(&map->call->out, 4, &exemplar, &request->group_by);
    }
}

static void put_slot(struct heatmap *map, struct run slot)
{
    struct kiln_pb_out *w = &map->call->out;
    uint64_t counts[RANGES] = {0};
    size_t whole = kiln_pb_mark(w), end;

    put_exemplars(map, slot);
    for (uint32_t i = 0; i < slot.n; i++)
        counts[slot.spots[i].range]++;
    end = kiln_pb_mark(w);
    for (uint32_t i = RANGES; i-- > 0;)
        kiln_pb_raw_varint(w, counts[i]);
    kiln_pb_put_message(w, 3, end);
    end = kiln_pb_mark(w);
    for (uint32_t i = RANGES; i-- > 0;) {
        double lowest = (double)map->lowest[i];
        uint64_t bits;

        memcpy(&bits, &lowest, sizeof(bits));
        kiln_pb_raw_fixed64(w, bits);
    }
    kiln_pb_put_message(w, 2, end);
    kiln_pb_put_number(w, 1, slot.spots[0].slot_ms);
    kiln_pb_put_message(w, 2, whole);
}

static void put_series(struct heatmap *map, struct run series)
{
    const struct kiln_texts *by = &map->call->request.group_by;
    struct kiln_pb_out *w = &map->call->out;
    size_t whole = kiln_pb_mark(w);
    uint32_t first = series.n;

    while (first > 0) {
        uint32_t end = first--;

        while (first > 0 && series.spots[first - 1].slot_ms == series.spots[end - 1].slot_ms)
            first--;
        put_slot(map, (struct run){series.spots + first, end - first});
    }
    kiln_pyro_put_pairs(w, 1, by->items, series.spots[0].labels, by->n);
    kiln_pb_put_message(w, 1, whole);
}

/* The most spots first; equal ones stay in the order of their labels. */
static int by_size(const void *left, const void *right)
{
    const struct run *a = left, *b = right;

    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    return a->spots < b->spots ? -1 : a->spots > b->spots;
}

static int put_all(struct heatmap *map)
{
    int64_t limit = map->call->request.limit;
    struct run *runs = kiln_arena_alloc(&map->call->arena, map->n * sizeof(*runs));
    uint32_t n = 0;

    if (!runs)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->n; i++) {
        if (i == 0 || compare_labels(&map->spots[i - 1], &map->spots[i]) != 0)
            runs[n++] = (struct run){.spots = &map->spots[i]};
        runs[n - 1].n++;
    }
    if (limit > 0 && n > limit) {
        qsort(runs, n, sizeof(*runs), by_size);
        n = (uint32_t)limit;
    }
    while (n-- > 0)
        put_series(map, runs[n]);
    return 0;
}

/* ---- asking ---- */

static int check(struct kiln_pyro_call *call, struct kiln_window *window, uint64_t *ret_step_ms)
{
    struct kiln_pyro_request *request = &call->request;
    int r = kiln_pyro_step(call, request->step_s, ret_step_ms);

    if (r == 0 && request->limit < 0)
        r = kiln_pyro_refuse(call, "limit must be non-negative, got %lld",
                             (long long)request->limit);
    if (r == 0 && request->start_ms >= request->end_ms)
        r = kiln_pyro_refuse(call, "start time must be before end time, got start=%lld end=%lld",
                             (long long)request->start_ms, (long long)request->end_ms);
    if (r == 0)
        r = kiln_pyro_window(call, request, window);
    if (r == 0) {
        uint64_t step_ns = *ret_step_ms * KILN_NS_PER_MS;

        window->start_ns = window->start_ns > step_ns ? window->start_ns - step_ns : 0;
        r = kiln_pyro_sort_names(call, &request->group_by, &request->group_by);
    }
    return r;
}

int kiln_pyro_select_heatmap(struct kiln_pyro_call *call)
{
    struct kiln_found_opts opts = {
        .spans = call->request.heatmap == 2, .order = KILN_FOUND_LARGEST, .limit = SPOTS_MAX};
    struct heatmap map = {.call = call};
    struct kiln_window window;
    struct kiln_found *found;
    struct kiln_ask *ask;
    int r = check(call, &window, &map.step_ms);

    if (r == 0)
        r = kiln_pyro_ask(call, &call->request, KILN_PYRO_SAMPLES, &window, &ask);
    if (r < 0)
        return r;
    r = kiln_ask_found(ask, &opts, &found, &call->err);
    if (r == 0) {
        if (found->n_rows)
            r = set_spots(&map, found);
        if (r == 0 && map.n)
            r = put_all(&map);
        kiln_found_free(found);
    }
    kiln_pyro_ask_close(ask);
    return r;
}

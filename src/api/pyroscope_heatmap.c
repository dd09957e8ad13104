/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SelectHeatmap: how many profiles, or spans, of which size there were over time.
 *
 *   SelectHeatmapResponse 1 series   HeatmapSeries 1 labels 2 slots
 *   HeatmapSlot 1 timestamp 2 y_min (packed) 3 counts (packed) 4 exemplars
 *
 * Each profile is a spot in a cell: its group by the labels asked for, the slot of time that ends
 * at or after it, and one of twenty ranges of values, the same for all series.  Spots are sorted by
 * these, so that series, slots and cells are runs.  An engine finds profiles, not groups of them:
 * each group is asked for by its labels.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/pyroscope_int.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/sat.h"

#define RANGES     20u
#define SPOTS_MAX  200000u
#define GROUPS_MAX 200u

struct spot {
    const struct kiln_found_row *row;
    uint64_t slot_ms;
    uint32_t range;
    uint32_t group;
};

/* What has the same values of the labels asked for. */
struct group {
    const struct kiln_str *labels; /* parallel to group_by */
    struct kiln_ask *ask;
    struct kiln_found *found;
    size_t held; /* on the leash of the ask */
};

/* A run of spots. */
struct run {
    const struct spot *spots;
    uint32_t n;
};

struct heatmap {
    struct kiln_pyro_call *call;
    struct kiln_labels *labels; /* the values of all groups; NULL: one group without labels */
    struct group *groups;
    uint32_t n_groups;
    uint32_t n_found; /* of all groups */
    struct spot *spots;
    uint32_t n;
    uint64_t step_ms;
    int64_t lowest[RANGES]; /* of each range */
};

/* ---- cells ---- */

static int by_cell(const void *left, const void *right)
{
    const struct spot *a = left, *b = right;

    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->slot_ms != b->slot_ms)
        return a->slot_ms < b->slot_ms ? -1 : 1;
    if (a->range != b->range)
        return a->range < b->range ? -1 : 1;
    if (a->row->value != b->row->value) /* the best exemplar first */
        return a->row->value > b->row->value ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static void set_ranges(struct heatmap *map)
{
    int64_t low = INT64_MAX, high = 0;

    for (uint32_t i = 0; i < map->n; i++) {
        int64_t value = map->spots[i].row->value;

        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    high = low == high ? kiln_sat_add(low, 1) : high;
    for (uint32_t i = 0; i < RANGES; i++)
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

static int set_spots(struct heatmap *map)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < map->n_groups; i++)
        n += map->groups[i].found->n_rows;
    n = n < SPOTS_MAX ? n : SPOTS_MAX;
    map->spots = kiln_arena_alloc(&map->call->arena, (n + 1) * sizeof(*map->spots));
    if (!map->spots)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->n_groups; i++) {
        const struct kiln_found *found = map->groups[i].found;

        for (uint32_t k = 0; k < found->n_rows && map->n < n; k++)
            map->spots[map->n++] = (struct spot){.row = &found->rows[k], .group = i};
    }
    set_ranges(map);
    for (uint32_t i = 0; i < map->n; i++) {
        map->spots[i].slot_ms = slot_of(map, map->spots[i].row->time_ns);
        map->spots[i].range = range_of(map, map->spots[i].row->value);
    }
    qsort(map->spots, map->n, sizeof(*map->spots), by_cell);
    return 0;
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
    kiln_pyro_put_pairs(w, 1, by->items, map->groups[series.spots[0].group].labels, by->n);
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
    struct run *runs = kiln_arena_alloc(&map->call->arena, ((size_t)map->n + 1) * sizeof(*runs));
    uint32_t n = 0;

    if (!runs)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->n; i++) {
        if (i == 0 || map->spots[i - 1].group != map->spots[i].group)
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

/* A selector for exactly these values: {"pod"="a","zone"=""}. */
static int selector_of(struct kiln_pyro_call *call, const struct kiln_str *values,
                       struct kiln_str *ret)
{
    const struct kiln_texts *by = &call->request.group_by;
    struct kiln_json_out w;
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, KILN_SELECTOR_BYTES_MAX);
    for (uint32_t i = 0; i < by->n; i++) {
        kiln_buf_putc(&text, i ? ',' : '{');
        kiln_json_out_init(&w, &text, 0);
        kiln_json_put_str(&w, by->items[i]);
        kiln_buf_putc(&text, '=');
        kiln_json_out_init(&w, &text, 0);
        kiln_json_put_str(&w, values[i]);
    }
    kiln_buf_putc(&text, '}');
    r = text.error;
    if (r == 0) {
        *ret = kiln_arena_copy(&call->arena, kiln_buf_str(&text));
        r = ret->ptr ? 0 : -ENOMEM;
    }
    kiln_buf_done(&text);
    return r;
}

/* What was found stays until all is written: it is paid for as long. */
static int hold(struct heatmap *map, struct group *group)
{
    const struct kiln_found *found = group->found;
    size_t bytes = found->n_rows * sizeof(*found->rows) + found->budget.used;
    int r = kiln_leash_take(&group->ask->leash, bytes);

    if (r < 0)
        return kiln_err_set(&map->call->err, r, NULL,
                            "the heatmap takes more memory than a question may: ask for a shorter "
                            "time or fewer series");
    group->held = bytes;
    map->n_found += found->n_rows;
    return 0;
}

static int find_group(struct heatmap *map, const struct kiln_window *window, struct group *group)
{
    struct kiln_pyro_call *call = map->call;
    struct kiln_found_opts opts = {.spans = call->request.heatmap == 2,
                                   .order = KILN_FOUND_LARGEST,
                                   .limit =
                                       map->n_found < SPOTS_MAX ? SPOTS_MAX - map->n_found : 1};
    struct kiln_pyro_request request = call->request;
    int r = group->labels ? selector_of(call, group->labels, &request.also) : 0;

    if (r == 0)
        r = kiln_pyro_ask(call, &request, KILN_PYRO_SAMPLES, window, &group->ask);
    if (r == 0)
        r = kiln_ask_found(group->ask, &opts, &group->found, &call->err);
    return r < 0 ? r : hold(map, group);
}

/* Which groups there are. */
static int list_groups(struct heatmap *map, const struct kiln_window *window)
{
    struct kiln_pyro_call *call = map->call;
    const struct kiln_texts *by = &call->request.group_by;
    struct kiln_ask *ask;
    int r;

    map->n_groups = 1;
    if (by->n) {
        r = kiln_pyro_ask(call, &call->request, KILN_PYRO_SAMPLES, window, &ask);
        if (r < 0)
            return r;
        r = kiln_ask_labels(ask, by->items, by->n, &map->labels, &call->err);
        kiln_pyro_ask_close(ask);
        if (r < 0)
            return r;
        map->n_groups = map->labels->n_rows;
    }
    if (map->n_groups > GROUPS_MAX)
        return kiln_err_set(&call->err, KILN_E_LIMIT, "group_by",
                            "there are %u of them, and a heatmap may have %u series", map->n_groups,
                            GROUPS_MAX);
    map->groups = kiln_arena_alloc(&call->arena, (map->n_groups + 1) * sizeof(*map->groups));
    if (!map->groups)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->n_groups; i++)
        map->groups[i] = (struct group){.labels = by->n ? map->labels->rows[i].values : NULL};
    return 0;
}

static void done(struct heatmap *map)
{
    for (uint32_t i = 0; map->groups && i < map->n_groups; i++) {
        kiln_found_free(map->groups[i].found);
        if (map->groups[i].held)
            kiln_leash_give(&map->groups[i].ask->leash, map->groups[i].held);
        kiln_pyro_ask_close(map->groups[i].ask);
    }
    kiln_labels_free(map->labels);
}

int kiln_pyro_select_heatmap(struct kiln_pyro_call *call)
{
    struct heatmap map = {.call = call};
    struct kiln_window window;
    int r = check(call, &window, &map.step_ms);

    if (r == 0)
        r = list_groups(&map, &window);
    for (uint32_t i = 0; r == 0 && i < map.n_groups; i++)
        r = find_group(&map, &window, &map.groups[i]);
    if (r == 0)
        r = set_spots(&map);
    if (r == 0)
        r = put_all(&map);
    done(&map);
    return r;
}

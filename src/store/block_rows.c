/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles on their way into pages of rows.
 *
 * A row is one observation.  Within a profile rows stand by shape (values, times, both), those
 * without a time by stack, those with one by time: then differences are small.  A page holds whole
 * profiles of one service.  Columns collect plain numbers; only when the page is full is it decided
 * how they are written, and block_rows_code.c does it.
 */
#include "store/block_rows.h"

#include <assert.h>

#include "store/rollup_make.h"

/* ---- services and series ---- */

struct kiln_str kiln_block_service(struct kiln_str key)
{
    return kiln_str_cut(&key, '\0');
}

static void begin_service(struct kiln_block_writer *w)
{
    uint32_t n = w->footer.n_services;

    for (uint32_t i = n ? w->stack_starts[n - 1] : 0; i < w->n_stacks; i++)
        w->stack_of[w->stack_order[i]] = 0;
    if (WRITER_ROOM(w, w->stack_starts, w->cap_stack_starts, (uint64_t)n + 2)) {
        w->stack_starts[n] = w->n_stacks;
        w->footer.n_services++;
    }
}

/* Opens the series of the next profile. */
static void begin_series(struct kiln_block_writer *w, uint32_t series)
{
    struct kiln_footer *f = &w->footer;
    uint64_t n = f->info.n_series;
    struct kiln_str service = kiln_block_service(w->keys[series]);

    if (n == 0 || !kiln_str_eq(service, kiln_block_service(f->series[n - 1].key))) {
        kiln_rows_flush(w);
        begin_service(w);
    }
    if (!WRITER_ROOM(w, f->series, f->cap_series, n + 1))
        return;
    f->series[n] = (struct kiln_block_series){.key = w->keys[series], .min_ns = UINT64_MAX};
    f->info.n_series++;
    w->series = series;
    w->last_time_ns = 0;
}

static uint32_t number_stack(struct kiln_block_writer *w, uint32_t stack)
{
    uint32_t *number = &w->stack_of[stack];

    if (*number)
        return *number;
    if (KILN_UNLIKELY(w->n_stacks == w->cap_stack_order) &&
        !WRITER_ROOM(w, w->stack_order, w->cap_stack_order, (uint64_t)w->n_stacks + 1))
        return 0;
    w->stack_order[w->n_stacks++] = stack;
    return *number = w->n_stacks - w->stack_starts[w->footer.n_services - 1];
}

/* ---- rows of one shape ---- */

static uint32_t shape_of(const struct kiln_sample *sample)
{
    return sample->has_values | (unsigned)sample->has_times << 1;
}

/* All observations of samples of one shape; returns how many. */
static uint32_t collect_rows(struct kiln_block_writer *w, const struct kiln_block_profile *p,
                             uint32_t shape)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->head.n_samples; i++) {
        const struct kiln_sample *s = &p->samples[i];
        const int64_t *at = p->observations + s->first;
        const int64_t *times = at + (s->has_values ? s->n : 0);

        if (shape_of(s) != shape)
            continue;
        for (uint32_t k = 0; k < s->n; k++)
            w->rows[n++] = (struct kiln_block_row){
                .stack = s->stack,
                .attrs = s->attrs,
                .link = s->link,
                .value = s->has_values ? at[k] : 0,
                .time_ns = s->has_times ? (uint64_t)times[k] : 0,
            };
    }
    return n;
}

/* Where a row belongs: by time; else known stacks by number, then new ones, and by attributes. */
static uint64_t sort_key(const struct kiln_block_writer *w, const struct kiln_block_row *row,
                         uint32_t shape)
{
    uint32_t number = w->stack_of[row->stack];

    if (shape & 2)
        return row->time_ns;
    return (uint64_t)(number ? number : (1u << 31 | row->stack)) << 32 | row->attrs;
}

static void sort_rows(struct kiln_block_writer *w, uint32_t n, uint32_t shape)
{
    for (uint32_t i = 0; i < n; i++)
        w->keyed[i] = (struct kiln_keyed){.key = sort_key(w, &w->rows[i], shape), .at = i};
    kiln_sort_keyed(w->keyed, w->keyed_scratch, n);
}

/* Where the next `n` numbers of a column go; the column ends behind them.  NULL on failure. */
static uint64_t *extend(struct kiln_block_writer *w, uint32_t column, uint32_t n)
{
    struct kiln_column *c = &w->columns[column];

    if (!kiln_writer_ok(w, kiln_column_grow(c, &w->budget, (uint64_t)c->n + n)))
        return NULL;
    c->n += n;
    return c->v + c->n - n;
}

/* Adds sorted rows to the columns. */
static void put_rows(struct kiln_block_writer *w, uint32_t n, uint32_t shape)
{
    uint64_t *stacks = extend(w, KILN_ROWS_STACK, n), *sets = extend(w, KILN_ROWS_ATTRS, n);
    uint64_t *links = extend(w, KILN_ROWS_LINK, n);
    uint64_t *values = extend(w, KILN_ROWS_VALUE, shape & 1 ? n : 0);
    uint64_t *times = extend(w, KILN_ROWS_TIME, shape & 2 ? n : 0);

    if (w->error)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_block_row *row = &w->rows[w->keyed[i].at];

        stacks[i] = number_stack(w, row->stack);
        sets[i] = kiln_writer_number(w, &w->sets, row->attrs);
        links[i] = row->link ? kiln_writer_number(w, &w->links, row->link) : 0;
        if (shape & 1)
            values[i] = (uint64_t)row->value;
        if (shape & 2)
            times[i] = row->time_ns;
    }
}

/* ---- profiles ---- */

struct counts {
    uint64_t of[4]; /* observations, by shape */
    uint64_t all, samples;
    uint32_t shape; /* of all; 0: mixed */
};

static struct counts count_rows(const struct kiln_block_profile *p)
{
    struct counts c = {.shape = 1};

    for (uint32_t i = 0; i < p->head.n_samples; i++) {
        c.of[shape_of(&p->samples[i])] += p->samples[i].n;
        c.samples += p->samples[i].n && shape_of(&p->samples[i]);
    }
    c.of[0] = 0; /* neither values nor times: nothing */
    c.all = c.of[1] + c.of[2] + c.of[3];
    for (uint32_t shape = 1; shape <= 3 && c.all; shape++)
        c.shape = c.of[shape] == c.all ? shape : c.shape;
    if (c.all && c.of[c.shape] != c.all)
        c.shape = 0;
    return c;
}

static bool has_id(const struct kiln_profile *head)
{
    static const uint8_t none[sizeof(head->id)];

    return memcmp(head->id, none, sizeof(none)) != 0;
}

static void put_payload(struct kiln_block_writer *w, struct kiln_str payload)
{
    kiln_writer_put(w, KILN_ROWS_EXTRA, payload.len);
    kiln_buf_add_str(&w->bytes[1], payload);
    kiln_writer_ok(w, w->bytes[1].error);
}

/* All of a profile but its rows. */
static void put_head(struct kiln_block_writer *w, const struct kiln_block_profile *p,
                     const struct counts *counts)
{
    const struct kiln_profile *head = &p->head;
    struct kiln_moment moment = {head->time_ns, head->duration_ns};
    uint32_t number = kiln_writer_moment(w, moment);
    uint32_t shape = counts->shape;

    kiln_writer_put(w, KILN_ROWS_SERIES, w->footer.info.n_series - 1);
    kiln_writer_put(w, KILN_ROWS_ORIGIN, kiln_writer_origin(w, p));
    kiln_writer_put(w, KILN_ROWS_MOMENT, number);
    kiln_writer_put(w, KILN_ROWS_COUNT, counts->all);
    for (uint32_t i = 1; i <= 3 && counts->shape == 0; i++)
        kiln_writer_put(w, KILN_ROWS_EXTRA, counts->of[i]);
    if (number == 0) {
        kiln_writer_put(w, KILN_ROWS_EXTRA, moment.time_ns);
        kiln_writer_put(w, KILN_ROWS_EXTRA, moment.duration_ns);
    }
    if (has_id(head)) {
        shape |= KILN_SHAPE_HAS_ID;
        kiln_buf_add(&w->bytes[0], head->id, sizeof(head->id));
    }
    if (head->payload.len) {
        shape |= KILN_SHAPE_HAS_PAYLOAD;
        put_payload(w, head->payload);
    }
    kiln_writer_put(w, KILN_ROWS_SHAPE, shape);
}

static void widen(uint64_t *min, uint64_t *max, uint64_t from, uint64_t to)
{
    *min = from < *min ? from : *min;
    *max = to > *max ? to : *max;
}

/* Times, and what is counted. */
static void account(struct kiln_block_writer *w, const struct kiln_block_profile *p,
                    const struct counts *counts)
{
    struct kiln_block_info *info = &w->footer.info;
    struct kiln_block_series *series = &w->footer.series[info->n_series - 1];
    uint64_t min = p->head.time_ns, max = min;

    for (uint32_t i = 0; i < p->head.n_samples; i++) {
        const struct kiln_sample *s = &p->samples[i];
        const int64_t *times = p->observations + s->first + (s->has_values ? s->n : 0);

        for (uint32_t k = 0; s->has_times && k < s->n; k++)
            widen(&min, &max, (uint64_t)times[k], (uint64_t)times[k]);
    }
    widen(&info->min_ns, &info->max_ns, min, max);
    widen(&series->min_ns, &series->max_ns, min, max);
    widen(&w->bounds.min_ns, &w->bounds.max_ns, min, max);
    w->bounds.last_series = (uint32_t)info->n_series - 1;
    info->n_profiles++;
    info->n_samples += counts->samples;
    info->n_observations += counts->all;
    series->n_profiles++;
    series->n_samples += counts->samples;
    series->n_observations += counts->all;
    kiln_rollup_take(w, p, min, max);
}

static void begin_page(struct kiln_block_writer *w)
{
    uint32_t service = w->footer.n_services - 1;

    w->head[KILN_HEAD_STACKS] = w->n_stacks - w->stack_starts[service];
    w->head[KILN_HEAD_SETS] = w->sets.n;
    w->head[KILN_HEAD_LINKS] = w->links.n;
    w->head[KILN_HEAD_ORIGINS] = w->n_origins;
    w->head[KILN_HEAD_MOMENTS] = w->n_moments;
    w->head[KILN_HEAD_PERIOD] = 0;
    w->bounds = (struct kiln_rows_ref){
        .first_series = (uint32_t)w->footer.info.n_series - 1,
        .last_series = (uint32_t)w->footer.info.n_series - 1,
        .min_ns = UINT64_MAX,
    };
}

static bool has_room(struct kiln_block_writer *w, uint64_t n)
{
    return WRITER_ROOM(w, w->rows, w->cap_rows, n) && WRITER_ROOM(w, w->keyed, w->cap_keyed, n) &&
           WRITER_ROOM(w, w->keyed_scratch, w->cap_keyed_scratch, n);
}

static void add_profile(struct kiln_block_writer *w, const struct kiln_block_profile *p)
{
    struct counts counts = count_rows(p);

    if (w->n_entries && (w->columns[KILN_ROWS_STACK].n + counts.all > KILN_BLOCK_PAGE_ROWS ||
                         w->n_entries == KILN_BLOCK_PAGE_ROWS ||
                         w->bytes[1].len + p->head.payload.len > KILN_BLOCK_PAGE_BYTES))
        kiln_rows_flush(w);
    if (w->n_entries == 0)
        begin_page(w);
    if (w->head[KILN_HEAD_PERIOD] == 0 && p->head.period > 0)
        w->head[KILN_HEAD_PERIOD] = (uint64_t)p->head.period;
    if (!has_room(w, counts.all))
        return;
    put_head(w, p, &counts);
    for (uint32_t shape = 1; shape <= 3; shape++) {
        uint32_t n = counts.of[shape] ? collect_rows(w, p, shape) : 0;

        if (n == 0)
            continue;
        sort_rows(w, n, shape);
        put_rows(w, n, shape);
    }
    account(w, p, &counts);
    w->n_entries++;
}

void kiln_block_add(struct kiln_block_writer *w, const struct kiln_block_profile *profile)
{
    if (!w->error)
        kiln_writer_cover(w);
    if (w->error)
        return;
    assert(profile->series < w->n_keys);
    assert(w->series == UINT32_MAX || profile->series >= w->series);
    if (profile->series != w->series)
        begin_series(w, profile->series);
    if (w->error)
        return;
    assert(profile->head.time_ns >= w->last_time_ns);
    w->last_time_ns = profile->head.time_ns;
    add_profile(w, profile);
}

void kiln_writer_end_rows(struct kiln_block_writer *w)
{
    if (w->error)
        return;
    kiln_rows_flush(w);
    if (w->footer.n_services)
        w->stack_starts[w->footer.n_services] = w->n_stacks;
    kiln_rollup_end(w);
}

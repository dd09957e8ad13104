/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sums of stacks, taken while profiles pass.
 *
 * Profiles come by series and time, so that one hour of one series is at hand at a time: an array
 * of sums by stack number, which is packed into a run when the next hour or series begins.  A
 * profile that touches several hours is gone through once for each.  There may be several runs of
 * one hour; they are added up later.
 */
#include <errno.h>

#include "core/series.h"
#include "store/meaning.h"
#include "store/rollup_make.h"

#define MAKER_ROOM(m, array, cap, need)                                                            \
    kiln_grow(&(m)->budget, (void **)&(m)->array, &(m)->cap, (need), sizeof(*(m)->array),          \
              UINT32_MAX)

#define HOUR_NS UINT64_C(3600000000000)

struct kiln_rollup_limits kiln_rollup_limits = {
    .rows_min = 32768,
    .rows_name = 8,
    .rows_each = 8,
    .tree_rows = 65536,
    .node_rows = 128,
    .nodes_min = 1024,
    .nodes_max = KILN_ROLLUP_NODES,
    .nodes_coarse = 2048,
    .range_ns = 6 * HOUR_NS,
    .hour_ns = HOUR_NS,
};

int kiln_rollup_maker_new(size_t memory_bytes, struct kiln_rollup_maker **ret_maker)
{
    struct kiln_rollup_maker *m = kiln_calloc(1, sizeof(*m));

    if (!m)
        return -ENOMEM;
    m->budget.limit = memory_bytes;
    kiln_buf_init(&m->bytes, memory_bytes / 2);
    *ret_maker = m;
    return 0;
}

void kiln_rollup_maker_free(struct kiln_rollup_maker *m)
{
    if (!m)
        return;
#define FREE(array, cap) kiln_array_free(&m->budget, (void **)&m->array, &m->cap, sizeof(*m->array))
    FREE(runs, cap_runs);
    FREE(starts, cap_starts);
    FREE(sums, cap_sums);
    FREE(touched, cap_touched);
    FREE(used, cap_used);
#undef FREE
    kiln_buf_done(&m->bytes);
    kiln_free(m);
}

/* ---- runs ---- */

/* Nothing is made of the service at hand. */
static void give_up(struct kiln_rollup_maker *m)
{
    m->off = true;
    m->is_open = false;
    if (m->sums)
        memset(m->sums, 0, m->cap_sums * sizeof(*m->sums));
    m->n_touched = 0;
    m->n_runs = m->starts[m->n_starts - 1];
    m->bytes.len = m->service_bytes;
    m->bytes.error = 0;
}

static void pack_sums(struct kiln_rollup_maker *m)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < m->n_touched; i++) {
        uint32_t number = m->touched[i];
        uint64_t sum = (uint64_t)m->sums[number];

        m->sums[number] = 0;
        if (sum == 0)
            continue;
        kiln_rollup_put_varint(&m->bytes, kiln_zigzag((int64_t)number - before));
        kiln_rollup_put_varint(&m->bytes, sum);
        if (m->run.divisor == 0 || sum % m->run.divisor)
            m->run.divisor = kiln_rollup_gcd(sum, m->run.divisor);
        before = number;
        m->run.n++;
    }
    m->n_touched = 0;
}

static void close_run(struct kiln_rollup_maker *m)
{
    if (!m->is_open || m->off)
        return;
    m->is_open = false;
    m->run.at = m->bytes.len;
    pack_sums(m);
    if (m->run.basis.n_rows == 0 && !m->run.bad)
        return;
    if (m->bytes.error || MAKER_ROOM(m, runs, cap_runs, (uint64_t)m->n_runs + 1) < 0) {
        give_up(m);
        return;
    }
    m->runs[m->n_runs++] = m->run;
}

static void open_run(struct kiln_rollup_maker *m, uint64_t hour, int64_t scale)
{
    if (m->is_open && m->run.hour == hour && m->run.scale == scale && m->run.series == m->series)
        return;
    close_run(m);
    m->run = (struct kiln_rollup_run){.hour = hour, .series = m->series, .scale = scale};
    m->run.basis.first_ns = UINT64_MAX;
    m->is_open = true;
}

/* ---- services and series ---- */

/* A service of few rows is read from its samples as quickly. */
static void end_service(struct kiln_rollup_maker *m)
{
    close_run(m);
    if (m->n_starts && m->service_rows < kiln_rollup_limits.rows_min && !m->off)
        give_up(m);
}

static void begin_services(struct kiln_rollup_maker *m, uint32_t n)
{
    end_service(m);
    m->off = MAKER_ROOM(m, starts, cap_starts, (uint64_t)n + 1) < 0;
    while (!m->off && m->n_starts < n)
        m->starts[m->n_starts++] = m->n_runs;
    m->service_rows = 0;
    m->service_bytes = m->bytes.len;
    m->series = UINT32_MAX;
}

static void begin_series(struct kiln_rollup_maker *m, const struct kiln_block_writer *w)
{
    struct kiln_series parsed;

    m->series = (uint32_t)w->footer.info.n_series - 1;
    m->covered_to = 0;
    m->type = KILN_STR("");
    if (kiln_series_parse(w->footer.series[m->series].key, &parsed) == 0)
        m->type = parsed.type;
}

/* ---- profiles ---- */

struct pass {
    struct kiln_rollup_maker *m;
    const struct kiln_block_profile *p;
    const uint32_t *numbers; /* by stack of the dictionary */
    uint64_t hour;
    bool whole; /* everything is in this hour */
    struct kiln_weight weight;
    uint64_t n; /* observations seen */
};

static void add_value(struct kiln_rollup_maker *m, uint32_t number, int64_t value)
{
    int64_t *sum = &m->sums[number];

    if (*sum == 0 && value != 0)
        m->touched[m->n_touched++] = number;
    if (value < 0 || __builtin_add_overflow(*sum, value, sum)) {
        m->run.bad = true;
        *sum = 1; /* stays touched */
    }
}

static void widen(struct kiln_rollup_basis *basis, uint64_t at)
{
    basis->first_ns = at < basis->first_ns ? at : basis->first_ns;
    basis->last_ns = at > basis->last_ns ? at : basis->last_ns;
}

static void add_timed(struct pass *pass, const struct kiln_sample *s, uint32_t number)
{
    const int64_t *values = pass->p->observations + s->first;
    const int64_t *times = values + (s->has_values ? s->n : 0);

    for (uint32_t i = 0; i < s->n; i++) {
        if (!pass->whole && (uint64_t)times[i] / kiln_rollup_limits.hour_ns != pass->hour)
            continue;
        add_value(pass->m, number, s->has_values ? values[i] : 1);
        widen(&pass->m->run.basis, (uint64_t)times[i]);
        pass->m->run.basis.count++;
        pass->n++;
    }
}

static void add_untimed(struct pass *pass, const struct kiln_sample *s, uint32_t number)
{
    const int64_t *values = pass->p->observations + s->first;
    struct kiln_rollup_basis *basis = &pass->m->run.basis;

    if (!pass->whole && pass->p->head.time_ns / kiln_rollup_limits.hour_ns != pass->hour)
        return;
    for (uint32_t i = 0; i < s->n; i++) {
        add_value(pass->m, number, values[i]);
        basis->count += kiln_weight_count(&pass->weight, false, values[i]);
    }
    if (s->n)
        widen(basis, pass->p->head.time_ns);
    pass->n += s->n;
}

static void add_hour(struct pass *pass)
{
    for (uint32_t i = 0; i < pass->p->head.n_samples; i++) {
        const struct kiln_sample *s = &pass->p->samples[i];
        uint32_t number = pass->numbers[s->stack];

        if (number == 0) /* it has neither values nor times */
            continue;
        if (s->has_times)
            add_timed(pass, s, number - 1);
        else if (s->has_values)
            add_untimed(pass, s, number - 1);
    }
    pass->m->run.basis.n_rows += pass->n;
    pass->m->service_rows += pass->n;
}

/* Room for the sums of all stacks; new ones are 0. */
static bool make_room(struct kiln_rollup_maker *m, uint64_t n_stacks)
{
    uint32_t before = m->cap_sums;

    if (MAKER_ROOM(m, sums, cap_sums, n_stacks + 1) < 0 ||
        MAKER_ROOM(m, touched, cap_touched, n_stacks + 1) < 0)
        return false;
    memset(m->sums + before, 0, (m->cap_sums - before) * sizeof(*m->sums));
    return true;
}

/* Profiles of a series come by time: what they cover together. */
static void cover(struct kiln_rollup_maker *m, const struct kiln_profile *head)
{
    uint64_t from = head->time_ns > m->covered_to ? head->time_ns : m->covered_to;
    uint64_t to;

    if (head->time_ns == 0 || __builtin_add_overflow(head->time_ns, head->duration_ns, &to) ||
        to <= from)
        return;
    m->run.basis.covered_ns += to - from;
    m->covered_to = to;
}

static void take_hours(struct kiln_block_writer *w, const struct kiln_block_profile *p,
                       uint64_t first, uint64_t last)
{
    struct kiln_rollup_maker *m = w->rollup;
    struct pass pass = {.m = m,
                        .p = p,
                        .numbers = w->stack_of,
                        .whole = first == last,
                        .weight = kiln_weight_of(w->dict, &p->head, m->type)};
    bool begun = false;

    for (pass.hour = first; pass.hour <= last && !m->off; pass.hour++) {
        pass.n = 0;
        open_run(m, pass.hour, pass.weight.scale);
        if (m->off)
            return;
        m->run.bad = m->run.bad || last - first > KILN_ROLLUP_HOURS_EACH;
        add_hour(&pass);
        if (pass.n == 0)
            continue;
        m->run.basis.n_profiles += !begun;
        m->run.basis.n_continued += begun;
        if (!begun)
            cover(m, &p->head);
        m->run.basis.n_time_set += !begun && (p->flags & KILN_PROFILE_TIME_SET);
        begun = true;
        if (m->run.bad)
            return;
    }
}

void kiln_rollup_take(struct kiln_block_writer *w, const struct kiln_block_profile *profile,
                      uint64_t first_ns, uint64_t last_ns)
{
    struct kiln_rollup_maker *m = w->rollup;
    uint32_t service = w->footer.n_services - 1;

    if (!m || w->error)
        return;
    if (m->n_starts != w->footer.n_services)
        begin_services(m, w->footer.n_services);
    if (m->off || !make_room(m, w->n_stacks - w->stack_starts[service])) {
        if (!m->off)
            give_up(m);
        return;
    }
    if (m->series != w->footer.info.n_series - 1)
        begin_series(m, w);
    take_hours(w, profile, first_ns / kiln_rollup_limits.hour_ns,
               last_ns / kiln_rollup_limits.hour_ns);
}

void kiln_rollup_end(struct kiln_block_writer *w)
{
    struct kiln_rollup_maker *m = w->rollup;

    if (!m)
        return;
    if (w->error == 0)
        begin_services(m, w->footer.n_services + 1);
    /* What is left is for making them. */
    kiln_array_free(&m->budget, (void **)&m->sums, &m->cap_sums, sizeof(*m->sums));
    kiln_array_free(&m->budget, (void **)&m->touched, &m->cap_touched, sizeof(*m->touched));
}

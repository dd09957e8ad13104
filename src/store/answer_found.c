/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles one by one, of which the best are kept in a heap with the worst of them on top; or
 * spans, each remembered until all its rows have gone by, and then the best of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"
#include "store/fund.h"
#include "store/scan_int.h"

#define LIMIT_DEFAULT 1000u

/* A span on its way. */
struct span {
    struct kiln_link link; /* the key */
    struct kiln_found_row row;
    uint64_t last_ns;
};

struct finding {
    const struct kiln_question *q;
    const struct kiln_found_opts *opts;
    struct kiln_fund fund;
    struct kiln_found_row *heap;
    uint32_t limit, n, cap;
    uint64_t n_all;
    struct kiln_fund_table spans;
    double count;
};

/* ---- order ---- */

static int compare_ids(const struct kiln_found_row *x, const struct kiln_found_row *y)
{
    int order = memcmp(x->profile_id, y->profile_id, sizeof(x->profile_id));

    if (order == 0)
        order = memcmp(x->trace_id, y->trace_id, sizeof(x->trace_id));
    if (order == 0)
        order = memcmp(x->span_id, y->span_id, sizeof(x->span_id));
    return order ? order : kiln_str_cmp(x->series, y->series);
}

/* Newest or largest first; then the other of the two, then ids and keys ascending. */
static int compare_rows(const void *a, const void *b, void *context)
{
    const struct kiln_found_row *x = a, *y = b;
    const struct finding *f = context;
    int by_time = (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
    int by_value = (x->value < y->value) - (x->value > y->value);
    int first = f->opts->order == KILN_FOUND_NEWEST ? by_time : by_value;
    int second = f->opts->order == KILN_FOUND_NEWEST ? by_value : by_time;

    if (first || second)
        return first ? first : second;
    return compare_ids(x, y);
}

/* ---- the heap ---- */

static void sift_up(struct finding *f, uint32_t at)
{
    while (at && compare_rows(&f->heap[at], &f->heap[(at - 1) / 2], f) > 0) {
        struct kiln_found_row up = f->heap[at];

        f->heap[at] = f->heap[(at - 1) / 2];
        f->heap[(at - 1) / 2] = up;
        at = (at - 1) / 2;
    }
}

static void sift_down(struct finding *f)
{
    uint32_t at = 0;

    for (uint32_t child = 1; child < f->n; child = 2 * at + 1) {
        struct kiln_found_row down = f->heap[at];

        if (child + 1 < f->n && compare_rows(&f->heap[child + 1], &f->heap[child], f) > 0)
            child++;
        if (compare_rows(&f->heap[child], &down, f) <= 0)
            return;
        f->heap[at] = f->heap[child];
        f->heap[child] = down;
        at = child;
    }
}

static int offer(struct finding *f, const struct kiln_found_row *row)
{
    int r;

    f->n_all++;
    if (f->n == f->limit) {
        if (compare_rows(row, &f->heap[0], f) < 0) {
            f->heap[0] = *row;
            sift_down(f);
        }
        return 0;
    }
    r = kiln_fund_grow(&f->fund, (void **)&f->heap, &f->cap, (uint64_t)f->n + 1, sizeof(*f->heap));
    if (r < 0)
        return r;
    f->heap[f->n++] = *row;
    sift_up(f, f->n - 1);
    return 0;
}

/* ---- profiles ---- */

static void add_rows(struct kiln_found_row *row, const struct kiln_scan_profile *p,
                     const struct kiln_scan_run *run)
{
    for (uint32_t i = 0; i < run->n; i++) {
        int64_t raw = run->values ? (int64_t)run->values[i] : 1;

        row->value = kiln_sat_add(row->value, kiln_sat_mul(raw, p->weight.scale));
        if (!run->summed)
            row->count += kiln_weight_count(&p->weight, run->timed, raw);
    }
    row->n_samples += run->summed ? run->summed : run->n;
    row->count += run->count;
}

static int show_profile(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct finding *f = context;
    struct kiln_found_row row = {
        .time_ns = p->time_ns, .duration_ns = p->duration_ns, .series = p->key};

    (void)err;
    if (p->n_runs == 0)
        return 0;
    if (p->id)
        memcpy(row.profile_id, p->id, sizeof(row.profile_id));
    for (uint32_t i = 0; i < p->n_runs; i++)
        add_rows(&row, p, &p->runs[i]);
    f->count += row.count;
    return offer(f, &row);
}

/* ---- spans ---- */

static int add_to_span(struct finding *f, const struct kiln_scan_profile *p,
                       const struct kiln_scan_run *run, uint32_t i)
{
    const struct kiln_link *link = &p->source->batch->dict.links[run->links[i]];
    uint64_t time_ns = run->times ? run->times[i] : p->time_ns;
    int64_t raw = run->values ? (int64_t)run->values[i] : 1;
    uint32_t n = f->spans.n, at;
    struct span *span;
    int r = kiln_fund_table_get(&f->spans, &f->fund, link, &at);

    if (r < 0)
        return r;
    span = (struct span *)f->spans.all + at;
    if (at == n) {
        span->row = (struct kiln_found_row){.time_ns = time_ns, .series = p->key};
        memcpy(span->row.trace_id, link->trace_id, sizeof(span->row.trace_id));
        memcpy(span->row.span_id, link->span_id, sizeof(span->row.span_id));
        span->last_ns = time_ns;
    }
    span->row.value = kiln_sat_add(span->row.value, kiln_sat_mul(raw, p->weight.scale));
    span->row.count += kiln_weight_count(&p->weight, run->timed, raw);
    span->row.n_samples++;
    if (time_ns < span->row.time_ns)
        span->row.time_ns = time_ns;
    if (time_ns > span->last_ns)
        span->last_ns = time_ns;
    if (kiln_str_cmp(p->key, span->row.series) < 0)
        span->row.series = p->key;
    return 0;
}

static int show_spans(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct finding *f = context;
    struct kiln_found_row all = {0};
    int r = 0;

    (void)err;
    for (uint32_t k = 0; k < p->n_runs; k++) {
        const struct kiln_scan_run *run = &p->runs[k];

        add_rows(&all, p, run);
        for (uint32_t i = 0; r == 0 && i < run->n; i++) {
            if (run->links[i])
                r = add_to_span(f, p, run, i);
        }
    }
    f->count += all.count;
    return r;
}

static int offer_spans(struct finding *f)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->spans.n; i++) {
        struct span *span = (struct span *)f->spans.all + i;

        span->row.duration_ns = span->last_ns - span->row.time_ns;
        r = offer(f, &span->row);
    }
    return r;
}

/* ---- the answer ---- */

static void forget(void *context)
{
    struct finding *f = context;

    kiln_array_free(&f->fund.budget, (void **)&f->heap, &f->cap, sizeof(*f->heap));
    kiln_fund_table_done(&f->spans, &f->fund);
    f->n = 0;
    f->n_all = 0;
    f->count = 0;
}

static int finish(struct finding *f, const struct kiln_basis *basis, struct kiln_found **ret_found)
{
    struct kiln_found *found = kiln_calloc(1, sizeof(*found));
    int r = 0;

    if (!found)
        return -ENOMEM;
    found->budget.limit = SIZE_MAX;
    kiln_arena_init(&found->arena, &found->budget);
    found->rows = kiln_malloc(((size_t)f->n + 1) * sizeof(*found->rows));
    if (!found->rows)
        r = -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < f->n; i++) {
        found->rows[i] = f->heap[i];
        found->rows[i].series = kiln_arena_copy(&found->arena, f->heap[i].series);
        r = found->rows[i].series.ptr ? 0 : -ENOMEM;
    }
    if (r < 0) {
        kiln_found_free(found);
        return r;
    }
    qsort_r(found->rows, f->n, sizeof(*found->rows), compare_rows, f);
    found->n_rows = f->n;
    found->n_all = f->n_all;
    found->basis = *basis;
    found->basis.count = f->count;
    *ret_found = found;
    return 0;
}

static int answer(struct finding *f, struct kiln_store *store, struct kiln_found **ret_found,
                  struct kiln_err *err)
{
    const struct kiln_scan_visitor visitor = {
        .context = f, .profile = f->opts->spans ? show_spans : show_profile, .restart = forget};
    unsigned columns =
        f->opts->spans ? KILN_SCAN_TIMES | KILN_SCAN_LINKS : KILN_SCAN_IDS | KILN_SCAN_SUMS;
    struct kiln_basis basis = {0};
    struct kiln_scan *scan;
    int r = kiln_scan_open(store, f->q, columns, &scan, err);

    if (r < 0)
        return r;
    r = kiln_scan_reserve(scan, &(struct kiln_scan_needs){.forests = kiln_scan_has_stacks(scan)},
                          err);
    if (r == 0)
        r = kiln_scan_run(scan, &visitor, &basis, err);
    if (r == 0)
        r = offer_spans(f);
    if (r == 0)
        r = finish(f, &basis, ret_found);
    kiln_scan_close(scan);
    return r;
}

int kiln_store_found(struct kiln_engine *engine, const struct kiln_question *question,
                     const struct kiln_found_opts *opts, struct kiln_found **ret_found,
                     struct kiln_err *err)
{
    struct finding f = {
        .q = question, .opts = opts, .limit = opts->limit ? opts->limit : LIMIT_DEFAULT};
    int r;

    kiln_fund_init(&f.fund, question->leash);
    kiln_fund_table_init(&f.spans, sizeof(struct kiln_link), sizeof(struct span));
    r = answer(&f, kiln_store_of(engine), ret_found, err);
    forget(&f);
    kiln_fund_done(&f.fund);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

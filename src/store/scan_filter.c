/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that count, out of those of a profile; and what stands behind an answer.
 */
#include <stdlib.h>

#include "store/scan_int.h"

/* ---- windows ---- */

/* The first window that ends behind a time, or NULL. */
static const struct kiln_window *window_at(const struct kiln_question *q, uint64_t time_ns)
{
    uint32_t from = 0, to = q->n_windows;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (q->windows[middle].end_ns > time_ns)
            to = middle;
        else
            from = middle + 1;
    }
    return from < q->n_windows ? &q->windows[from] : NULL;
}

bool kiln_scan_in_time(const struct kiln_scan *scan, uint64_t time_ns)
{
    const struct kiln_window *w;

    if (scan->q->n_windows == 0)
        return true;
    w = window_at(scan->q, time_ns);
    return w && time_ns >= w->start_ns;
}

bool kiln_scan_touches(const struct kiln_scan *scan, uint64_t min_ns, uint64_t max_ns)
{
    const struct kiln_window *w;

    if (scan->q->n_windows == 0)
        return true;
    w = window_at(scan->q, min_ns);
    return w && max_ns >= w->start_ns;
}

bool kiln_scan_covers(const struct kiln_scan *scan, uint64_t min_ns, uint64_t max_ns)
{
    const struct kiln_window *w;

    if (scan->q->n_windows == 0)
        return true;
    w = window_at(scan->q, min_ns);
    return w && min_ns >= w->start_ns && max_ns < w->end_ns;
}

/* ---- rows ---- */

/* Where the next row that is left goes, in scan->scratch. */
struct left {
    uint64_t *stacks, *attrs, *links, *values, *times;
    uint32_t n;
};

static void keep_row(struct left *left, const struct kiln_scan_run *run, uint32_t i)
{
    uint32_t n = left->n++;

    left->stacks[n] = run->stacks[i];
    if (run->attrs)
        left->attrs[n] = run->attrs[i];
    if (run->links)
        left->links[n] = run->links[i];
    if (run->values)
        left->values[n] = run->values[i];
    if (run->times)
        left->times[n] = run->times[i];
}

/* Whether a row's labels pass; then 1 + whether it counts.  Or an error. */
static int passes(struct kiln_scan *scan, const struct kiln_scan_profile *p,
                  const struct kiln_scan_run *run, const struct kiln_scan_sieve *sieve, uint32_t i)
{
    const struct kiln_scan_memo *m = &scan->memo;
    int r = 1;

    if (sieve->pending)
        r = kiln_scan_set_passes(scan, p->source->batch, run->attrs ? run->attrs[i] : 0,
                                 sieve->pending, sieve->opinion.holds);
    if (r <= 0)
        return r;
    if (sieve->stacks && !m->stacks[run->stacks[i] - 1])
        return 1;
    if (sieve->times && run->times && !kiln_scan_in_time(scan, run->times[i]))
        return 1;
    if (sieve->links && !(m->links[run->links[i] / 64] >> run->links[i] % 64 & 1))
        return 1;
    return 2;
}

/* `first` is where its rows go.  1 if labels of any row pass, 0, or an error. */
static int sift_run(struct kiln_scan *scan, const struct kiln_scan_profile *p,
                    struct kiln_scan_run *run, const struct kiln_scan_sieve *sieve, uint32_t first)
{
    struct kiln_column *c = scan->scratch;
    struct left left = {c[0].v + first, c[1].v + first, c[2].v + first,
                        c[3].v + first, c[4].v + first, 0};
    bool in_time = !sieve->times || run->timed || kiln_scan_in_time(scan, p->time_ns);
    int any = 0;

    for (uint32_t i = 0; i < run->n; i++) {
        int r = passes(scan, p, run, sieve, i);

        if (r < 0)
            return r;
        any |= r > 0;
        if (r > 1 && in_time)
            keep_row(&left, run, i);
    }
    run->n = left.n;
    run->stacks = left.stacks;
    run->attrs = run->attrs ? left.attrs : NULL;
    run->links = run->links ? left.links : NULL;
    run->values = run->values ? left.values : NULL;
    run->times = run->times ? left.times : NULL;
    return any;
}

/* Whether the profile's own time, or any of its rows, are in the time. */
static bool is_in_time(const struct kiln_scan *scan, const struct kiln_scan_profile *p)
{
    bool in = kiln_scan_in_time(scan, p->time_ns);

    for (uint32_t k = 0; k < p->n_runs; k++) {
        for (uint32_t i = 0; !in && p->runs[k].times && i < p->runs[k].n; i++)
            in = kiln_scan_in_time(scan, p->runs[k].times[i]);
    }
    return in;
}

/* 1 if the labels of the profile, or of any of its rows, pass; 0, or an error. */
static int sift(struct kiln_scan *scan, struct kiln_scan_profile *p,
                const struct kiln_scan_sieve *sieve)
{
    const struct kiln_scan_opinion *o = &sieve->opinion;
    uint32_t all = 0, n_runs = 0;
    int r = 0, any = (o->asked & ~o->holds & ~o->absent) == 0;

    if (o->asked & ~scan->memo.in_sets & ~o->holds)
        p->n_runs = 0; /* no sample can say otherwise */
    for (uint32_t i = 0; i < p->n_runs; i++)
        all += p->runs[i].n;
    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(scan->scratch); i++)
        r = kiln_column_grow(&scan->scratch[i], &scan->budget, (uint64_t)all + 1);
    all = 0;
    for (uint32_t i = 0; r >= 0 && i < p->n_runs; i++) {
        struct kiln_scan_run run = p->runs[i];
        uint32_t before = run.n;

        r = sift_run(scan, p, &run, sieve, all);
        any |= r > 0;
        all += before;
        if (run.n)
            p->runs[n_runs++] = run;
    }
    p->n_runs = n_runs;
    return r < 0 ? r : any;
}

/* ---- the basis ---- */

void kiln_scan_widen(struct kiln_scan *scan, uint64_t from, uint64_t to)
{
    struct kiln_basis *basis = &scan->basis;

    if (from < basis->min_ns || (basis->n_profiles == 0 && basis->max_ns == 0))
        basis->min_ns = from;
    if (to > basis->max_ns)
        basis->max_ns = to;
}

static void widen_by_rows(struct kiln_scan *scan, const struct kiln_scan_profile *p,
                          const struct kiln_scan_sieve *sieve)
{
    for (uint32_t k = 0; k < p->n_runs; k++) {
        const struct kiln_scan_run *run = &p->runs[k];

        if (!run->timed)
            kiln_scan_widen(scan, p->time_ns, p->time_ns);
        else if (!run->times)
            kiln_scan_widen(scan, sieve->min_ns, sieve->max_ns);
        for (uint32_t i = 0; run->times && i < run->n; i++)
            kiln_scan_widen(scan, run->times[i], run->times[i]);
    }
}

int kiln_scan_cover(struct kiln_scan *scan, uint64_t time_ns, uint64_t duration_ns)
{
    struct kiln_scan_interval *last =
        scan->n_intervals > scan->first_interval ? &scan->intervals[scan->n_intervals - 1] : NULL;
    uint64_t end;
    int r;

    if (!time_ns || !duration_ns)
        return 0;
    end = time_ns + duration_ns;
    end = end < time_ns ? UINT64_MAX : end;
    if (last && time_ns >= last->start && time_ns <= last->end) {
        last->end = end > last->end ? end : last->end;
        return 0;
    }
    r = kiln_grow(&scan->budget, (void **)&scan->intervals, &scan->cap_intervals,
                  (uint64_t)scan->n_intervals + 1, sizeof(*scan->intervals), UINT32_MAX);
    if (r == 0)
        scan->intervals[scan->n_intervals++] = (struct kiln_scan_interval){time_ns, end};
    return r;
}

struct kiln_basis kiln_scan_begin_piece(struct kiln_scan *scan)
{
    struct kiln_basis before = scan->basis;

    scan->basis = (struct kiln_basis){0};
    scan->first_interval = scan->n_intervals;
    return before;
}

static void add_basis(struct kiln_scan *scan, const struct kiln_basis *more)
{
    if (more->n_profiles)
        kiln_scan_widen(scan, more->min_ns, more->max_ns);
    scan->basis.n_profiles += more->n_profiles;
    scan->basis.n_unsure += more->n_unsure;
    scan->basis.n_time_set += more->n_time_set;
}

struct kiln_scan_piece kiln_scan_end_piece(struct kiln_scan *scan, const struct kiln_basis *before)
{
    struct kiln_scan_piece piece = {.basis = scan->basis,
                                    .n = scan->n_intervals - scan->first_interval};

    if (piece.n)
        piece.intervals = scan->intervals + scan->first_interval;
    scan->basis = *before;
    add_basis(scan, &piece.basis);
    return piece;
}

int kiln_scan_add_piece(struct kiln_scan *scan, const struct kiln_scan_piece *piece)
{
    int r = 0;

    add_basis(scan, &piece->basis);
    for (uint32_t i = 0; r == 0 && i < piece->n; i++)
        r = kiln_scan_cover(scan, piece->intervals[i].start,
                            piece->intervals[i].end - piece->intervals[i].start);
    return r;
}

static int by_start(const void *a, const void *b)
{
    const struct kiln_scan_interval *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

uint64_t kiln_scan_covered(struct kiln_scan *scan)
{
    uint64_t sum = 0, end = 0;

    if (scan->n_intervals)
        qsort(scan->intervals, scan->n_intervals, sizeof(*scan->intervals), by_start);
    for (uint32_t i = 0; i < scan->n_intervals; i++) {
        uint64_t from = scan->intervals[i].start > end ? scan->intervals[i].start : end;

        if (scan->intervals[i].end <= from)
            continue;
        sum += scan->intervals[i].end - from;
        end = scan->intervals[i].end;
    }
    return sum;
}

/* Whether it has rows beside the windows: where these are what roll-ups left, they may have it
 * too. */
static bool is_split(const struct kiln_scan *scan, const struct kiln_scan_profile *p)
{
    bool out = false;

    for (uint32_t k = 0; k < p->n_runs; k++) {
        out = out || (!p->runs[k].timed && !kiln_scan_in_time(scan, p->time_ns));
        for (uint32_t i = 0; !out && p->runs[k].times && i < p->runs[k].n; i++)
            out = !kiln_scan_in_time(scan, p->runs[k].times[i]);
    }
    return out;
}

int kiln_scan_show(struct kiln_scan *scan, struct kiln_scan_profile *p,
                   const struct kiln_scan_sieve *sieve, struct kiln_err *err)
{
    bool split;
    int r = 1;

    if (sieve->times && !is_in_time(scan, p))
        return 0;
    split = sieve->times && scan->is_rest && is_split(scan, p);
    if (sieve->times || sieve->links || sieve->stacks || sieve->opinion.asked)
        r = sift(scan, p, sieve);
    if (r <= 0)
        return r;
    if (p->n_runs) {
        widen_by_rows(scan, p, sieve);
        scan->basis.n_profiles++;
        scan->basis.n_unsure += split;
        scan->basis.n_time_set += sieve->flags & KILN_PROFILE_TIME_SET ? 1 : 0;
    }
    r = kiln_scan_cover(scan, p->time_ns, p->duration_ns);
    return r < 0 ? r : scan->visitor->profile(scan->visitor->context, p, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a head, in the form that those of a block have.  Rows only ever come behind, so a
 * growing head is read up to where it was when the scan began; its arrays move, so that they are
 * looked at under the tenant's lock, which is let go after every millisecond.
 */
#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "store/scan_int.h"

#define SLICE_NS      KILN_NS_PER_MS
#define BREATHE_EVERY 64u /* rows that are passed over */

void kiln_scan_lock(struct kiln_tenant *tenant, uint64_t *since_ns)
{
    pthread_mutex_lock(&tenant->lock);
    *since_ns = kiln_clock_mono_ns();
}

void kiln_scan_unlock(struct kiln_tenant *tenant)
{
    pthread_mutex_unlock(&tenant->lock);
}

void kiln_scan_breathe(struct kiln_tenant *tenant, uint64_t *since_ns)
{
    if (kiln_clock_mono_ns() - *since_ns < SLICE_NS)
        return;
    pthread_mutex_unlock(&tenant->lock);
    sched_yield();
    kiln_scan_lock(tenant, since_ns);
}

int kiln_scan_load_names(struct kiln_tenant *tenant, const struct kiln_batch *batch,
                         struct kiln_finder *finder)
{
    int r;

    if (!finder)
        return 0;
    pthread_mutex_lock(&tenant->lock);
    r = kiln_finder_note(finder, batch);
    pthread_mutex_unlock(&tenant->lock);
    return r < 0 ? r : kiln_finder_load(finder);
}

struct reading {
    struct kiln_scan *scan;
    struct kiln_scan_source source;
    struct kiln_column columns[5]; /* stacks, attrs, links, values, times of a profile */
    uint32_t n_rows;
    uint64_t since_ns;
    bool sums; /* will do, but for those that windows cut */
};

/* ---- a profile ---- */

static uint32_t shape_of(const struct kiln_sample *s)
{
    return s->has_values | (unsigned)s->has_times << 1;
}

static int make_room(struct reading *rd, const struct kiln_sample *samples, uint32_t n)
{
    uint64_t all = 1;
    int r = 0;

    for (uint32_t i = 0; i < n; i++)
        all += samples[i].n;
    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(rd->columns); i++)
        r = kiln_column_grow(&rd->columns[i], &rd->scan->budget, all);
    return r;
}

/* Adds the rows of samples of one shape; returns how many. */
static uint32_t put_rows(struct reading *rd, const struct kiln_sample *samples, uint32_t n_samples,
                         uint32_t shape, uint32_t at)
{
    const int64_t *observations = rd->source.batch->observations;
    struct kiln_column *c = rd->columns;
    uint32_t start = at;

    for (uint32_t i = 0; i < n_samples; i++) {
        const struct kiln_sample *s = &samples[i];
        const int64_t *values = observations + s->first;
        const int64_t *times = values + (s->has_values ? s->n : 0);

        if (shape_of(s) != shape)
            continue;
        for (uint32_t k = 0; k < s->n; k++, at++) {
            c[0].v[at] = (uint64_t)s->stack + 1;
            c[1].v[at] = s->attrs;
            c[2].v[at] = s->link;
            c[3].v[at] = shape & 1 ? (uint64_t)values[k] : 0;
            c[4].v[at] = shape & 2 ? (uint64_t)times[k] : 0;
        }
    }
    return at - start;
}

static void fill_runs(struct reading *rd, const struct kiln_sample *samples, uint32_t n_samples,
                      struct kiln_scan_profile *p)
{
    const struct kiln_column *c = rd->columns;
    uint32_t at = 0;

    for (uint32_t shape = 1; shape <= 3; shape++) {
        uint32_t n = put_rows(rd, samples, n_samples, shape, at);

        if (n == 0)
            continue;
        p->runs[p->n_runs++] = (struct kiln_scan_run){
            .n = n,
            .stacks = c[0].v + at,
            .attrs = c[1].v + at,
            .links = c[2].v + at,
            .values = shape & 1 ? c[3].v + at : NULL,
            .times = shape & 2 ? c[4].v + at : NULL,
            .timed = shape & 2,
        };
        at += n;
    }
}

static bool has_id(const uint8_t id[16])
{
    static const uint8_t none[16];

    return memcmp(id, none, sizeof(none)) != 0;
}

static int show(struct reading *rd, uint32_t row, struct kiln_err *err)
{
    struct kiln_scan *scan = rd->scan;
    const struct kiln_batch *batch = rd->source.batch;
    const struct kiln_row at = kiln_head_rows(rd->source.head)->rows[row];
    const struct kiln_profile *profile = &batch->profiles[row];
    const struct kiln_scan_series *known = &scan->memo.series[at.series];
    struct kiln_origin origin = {
        .resource = at.resource + 1,
        .scope = at.scope + 1,
        .sample_type = profile->sample_type,
        .period_type = profile->period_type,
        .attrs = profile->attrs,
        .flags = at.flags,
        .period = profile->period,
    };
    struct kiln_scan_profile p = {
        .source = &rd->source,
        .series = &known->series,
        .key = known->key,
        .series_number = at.series,
        .origin = &origin,
        .time_ns = profile->time_ns,
        .duration_ns = profile->duration_ns,
        .id = has_id(profile->id) ? profile->id : NULL,
    };
    struct kiln_scan_sieve sieve = {
        .times = !kiln_scan_covers(scan, at.min_ns, at.max_ns),
        .links = kiln_scan_has_links(scan),
        .stacks = scan->memo.stacks != NULL,
        .pending = known->pending & scan->memo.in_sets,
        .flags = at.flags,
    };
    int r;

    if (!kiln_scan_touches(scan, at.min_ns, at.max_ns) || !kiln_scan_id_wanted(scan, p.id))
        return 0;
    if (rd->sums && kiln_scan_sums_do(scan, &at.sums))
        return kiln_scan_show_sums(scan, &p, &at.sums, err);
    r = kiln_scan_judge(scan, known, batch, &origin, 0, &sieve.opinion);
    if (r < 0)
        return r;
    kiln_scan_weigh(&p);
    r = make_room(rd, batch->samples + at.first_sample, profile->n_samples);
    if (r < 0)
        return r;
    fill_runs(rd, batch->samples + at.first_sample, profile->n_samples, &p);
    return kiln_scan_show(scan, &p, &sieve, err);
}

/* ---- a head ---- */

/* Whether no sample has an attribute that is asked about. */
static bool sums_will_do(const struct kiln_scan *scan, const struct kiln_batch *batch)
{
    bool will = kiln_scan_wants_sums(scan) && !scan->memo.in_sets;

    for (uint32_t i = 0; will && i < scan->n_names; i++)
        will = !kiln_scan_occurs(batch, scan->names[i]);
    return will;
}

/* Under the lock of a growing head. */
static int choose(struct reading *rd, uint32_t n_series, bool *ret_any)
{
    struct kiln_scan *scan = rd->scan;
    int r = 0;

    *ret_any = false;
    for (uint32_t i = 0; r == 0 && i < n_series; i++) {
        const struct kiln_head_series *s = kiln_head_series(rd->source.head, i);

        r = kiln_scan_add_series(scan, s->key,
                                 s->n_profiles && kiln_scan_touches(scan, s->min_ns, s->max_ns));
        *ret_any |= r == 0 && scan->memo.series[i].chosen;
        if (rd->source.live && i % BREATHE_EVERY == 0)
            kiln_scan_breathe(rd->source.tenant, &rd->since_ns);
    }
    if (r < 0 || !*ret_any)
        return r;
    r = kiln_scan_learn(scan, rd->source.batch);
    rd->sums = r == 0 && sums_will_do(scan, rd->source.batch);
    return r;
}

static int show_all(struct reading *rd, struct kiln_err *err)
{
    int r = 0;

    if (rd->source.live)
        kiln_scan_lock(rd->source.tenant, &rd->since_ns);
    for (uint32_t i = 0; r == 0 && i < rd->n_rows; i++) {
        bool chosen = rd->scan->memo.series[kiln_head_rows(rd->source.head)->rows[i].series].chosen;

        if (chosen)
            r = show(rd, i, err);
        if (!chosen && i % BREATHE_EVERY)
            continue;
        if (r == 0)
            r = kiln_leash_check(rd->scan->q->leash);
        if (rd->source.live)
            kiln_scan_breathe(rd->source.tenant, &rd->since_ns);
    }
    if (rd->source.live)
        kiln_scan_unlock(rd->source.tenant);
    return r;
}

/* Marks the stacks of one row's samples. */
static void note_stacks(const struct reading *rd, uint32_t row, uint64_t *bits)
{
    const struct kiln_batch *batch = rd->source.batch;
    const struct kiln_row *at = &kiln_head_rows(rd->source.head)->rows[row];
    const struct kiln_sample *samples = batch->samples + at->first_sample;

    if (!rd->scan->memo.series[at->series].chosen ||
        !kiln_scan_touches(rd->scan, at->min_ns, at->max_ns))
        return;
    for (uint32_t i = 0; i < batch->profiles[row].n_samples; i++)
        bits[samples[i].stack / 64] |= UINT64_C(1) << samples[i].stack % 64;
}

/* Numbers of the marked ones. */
static int list_stacks(const uint64_t *bits, uint32_t n_stacks, uint32_t **ret_stacks,
                       uint32_t *ret_n)
{
    uint32_t *stacks, n = 0;

    for (uint32_t i = 0; i <= n_stacks / 64; i++)
        n += (uint32_t)__builtin_popcountll(bits[i]);
    stacks = kiln_malloc(((size_t)n + 1) * sizeof(*stacks));
    if (!stacks)
        return -ENOMEM;
    *ret_n = n;
    n = 0;
    for (uint32_t i = 0; i < n_stacks; i++) {
        if (bits[i / 64] >> i % 64 & 1)
            stacks[n++] = i + 1;
    }
    *ret_stacks = stacks;
    return 0;
}

/* Only the stacks of chosen series are worth a name. */
static int mark_stacks(struct reading *rd, struct kiln_err *err)
{
    uint64_t *bits = kiln_calloc((size_t)rd->source.n_stacks / 64 + 1, sizeof(*bits));
    uint32_t *stacks = NULL, n = 0;
    int r = bits ? 0 : -ENOMEM;

    if (r == 0 && rd->source.live)
        kiln_scan_lock(rd->source.tenant, &rd->since_ns);
    for (uint32_t i = 0; r == 0 && i < rd->n_rows; i++) {
        note_stacks(rd, i, bits);
        if (rd->source.live && i % BREATHE_EVERY == 0)
            kiln_scan_breathe(rd->source.tenant, &rd->since_ns);
    }
    if (r == 0 && rd->source.live)
        kiln_scan_unlock(rd->source.tenant);
    if (r == 0)
        r = list_stacks(bits, rd->source.n_stacks, &stacks, &n);
    if (r == 0)
        r = kiln_scan_mark_stacks(rd->scan, &rd->source, stacks, n, err);
    kiln_free(bits);
    kiln_free(stacks);
    return r;
}

static int visit(struct reading *rd, struct kiln_err *err)
{
    const struct kiln_scan_visitor *v = rd->scan->visitor;
    int r = 0;

    if (kiln_scan_has_stacks(rd->scan))
        r = mark_stacks(rd, err);
    if (r == 0 && v->begin)
        r = v->begin(v->context, &rd->source, err);
    if (r == 0)
        r = show_all(rd, err);
    if (r == 0 && v->end)
        r = v->end(v->context, &rd->source, err);
    return r;
}

int kiln_scan_head(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_head *head,
                   bool live, struct kiln_err *err)
{
    struct reading rd = {.scan = scan};
    uint32_t n_series = part->n_series;
    bool any;
    int r;

    rd.source = (struct kiln_scan_source){
        .tenant_name = kiln_str_of(part->tenant->name),
        .tenant = part->tenant,
        .head = head,
        .batch = kiln_rows_batch(kiln_head_rows(head)),
        .n_stacks = part->n_stacks,
        .live = live,
    };
    rd.n_rows = part->n_rows;
    if (!live) {
        rd.source.n_stacks = rd.source.batch->dict.n_stacks;
        rd.n_rows = kiln_head_rows(head)->n;
        n_series = kiln_head_info(head)->n_series;
    }
    kiln_scan_forget(scan);
    if (live)
        kiln_scan_lock(part->tenant, &rd.since_ns);
    r = choose(&rd, n_series, &any);
    if (live)
        kiln_scan_unlock(part->tenant);
    if (r == 0 && any)
        r = visit(&rd, err);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rd.columns); i++)
        kiln_column_done(&rd.columns[i], &scan->budget);
    return r;
}

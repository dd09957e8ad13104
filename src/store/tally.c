/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tally.h"

#include <errno.h>

#include "base/buf.h"
#include "base/sat.h"
#include "store/block_int.h"

#define BUCKETS_DEFAULT 1000000u
#define GROUP_BYTES_MAX (1u << 24)

/* What a group is known by, in a source. */
struct known {
    uint64_t source, series, resource, scope, attrs, set; /* the key */
    uint32_t group;
};

void kiln_tally_init(struct kiln_tally *t, const struct kiln_question *q,
                     const struct kiln_timeline_opts *opts)
{
    *t = (struct kiln_tally){.q = q, .opts = opts};
    t->start_ns = q->n_windows ? q->windows[0].start_ns : 0;
    kiln_fund_init(&t->fund, q->leash);
    kiln_fund_texts_init(&t->groups, &t->fund);
    kiln_fund_texts_init(&t->series, &t->fund);
    kiln_fund_table_init(&t->known, offsetof(struct known, group), sizeof(struct known));
    kiln_fund_table_init(&t->points, offsetof(struct kiln_tally_point, sum),
                         sizeof(struct kiln_tally_point));
    kiln_fund_table_init(&t->spans, offsetof(struct kiln_tally_span, time_ns),
                         sizeof(struct kiln_tally_span));
    kiln_fund_table_init(&t->means, offsetof(struct kiln_tally_mean, sum),
                         sizeof(struct kiln_tally_mean));
    kiln_fund_table_init(&t->looks, offsetof(struct kiln_tally_look, n),
                         sizeof(struct kiln_tally_look));
}

void kiln_tally_done(struct kiln_tally *t)
{
    kiln_fund_texts_done(&t->groups, &t->fund);
    kiln_fund_texts_done(&t->series, &t->fund);
    kiln_fund_table_done(&t->known, &t->fund);
    kiln_fund_table_done(&t->points, &t->fund);
    kiln_fund_table_done(&t->spans, &t->fund);
    kiln_fund_table_done(&t->means, &t->fund);
    kiln_fund_table_done(&t->looks, &t->fund);
    kiln_array_free(&t->fund.budget, (void **)&t->touched, &t->cap_touched, sizeof(*t->touched));
    kiln_fund_done(&t->fund);
}

void kiln_tally_next_source(struct kiln_tally *t)
{
    t->source++;
}

/* ---- groups ---- */

static int make_group(struct kiln_tally *t, const struct kiln_scan_profile *p, uint64_t set,
                      uint32_t *ret_group)
{
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, GROUP_BYTES_MAX);
    for (uint32_t i = 0; i < t->opts->n_by; i++) {
        char scratch[KILN_MEANING_SCRATCH];
        struct kiln_str value = kiln_scan_label(p, t->opts->by[i], set, scratch);
        uint32_t len = (uint32_t)value.len;

        kiln_buf_add(&text, &len, sizeof(len));
        kiln_buf_add_str(&text, value);
    }
    r = text.error ? text.error
                   : kiln_fund_texts_get(&t->groups, &t->fund, kiln_buf_str(&text), ret_group);
    kiln_buf_done(&text);
    return r;
}

int kiln_tally_group(struct kiln_tally *t, const struct kiln_scan_profile *p, uint64_t set,
                     uint32_t *ret_group)
{
    struct known key = {
        t->source, p->series_number, p->origin->resource, p->origin->scope, p->origin->attrs, set,
        0};
    uint32_t n = t->known.n, at;
    struct known *known;
    int r;

    if (t->opts->n_by == 0)
        return kiln_fund_texts_get(&t->groups, &t->fund, KILN_STR(""), ret_group);
    r = kiln_fund_table_get(&t->known, &t->fund, &key, &at);
    if (r < 0)
        return r;
    known = (struct known *)t->known.all + at;
    if (at == n)
        r = make_group(t, p, set, &known->group);
    *ret_group = known->group;
    return r;
}

/* ---- profiles ---- */

static bool in_time(const struct kiln_question *q, uint64_t time_ns)
{
    for (uint32_t i = 0; i < q->n_windows; i++) {
        if (time_ns >= q->windows[i].start_ns && time_ns < q->windows[i].end_ns)
            return true;
    }
    return q->n_windows == 0;
}

static int look(struct kiln_tally *t, uint64_t bucket)
{
    uint64_t key[2] = {bucket, t->process};
    struct kiln_tally_look *looks;
    uint32_t at;
    int r = kiln_fund_table_get(&t->looks, &t->fund, key, &at);

    if (r < 0)
        return r;
    looks = (struct kiln_tally_look *)t->looks.all + at;
    looks->n += looks->serial != t->serial;
    looks->serial = t->serial;
    return 0;
}

static uint64_t bucket_of(const struct kiln_tally *t, uint64_t time_ns)
{
    return (time_ns - t->start_ns) / t->opts->step_ns;
}

int kiln_tally_begin(struct kiln_tally *t, const struct kiln_scan_profile *p)
{
    int r = 0;

    t->serial++;
    t->n_touched = 0;
    if (t->opts->exemplars || t->opts->span_exemplars) {
        r = kiln_fund_texts_get(&t->series, &t->fund, p->key, &t->key);
        t->profile = (struct kiln_exemplar){.time_ns = p->time_ns};
        if (p->id)
            memcpy(t->profile.profile_id, p->id, sizeof(t->profile.profile_id));
    }
    if (!t->q->average || t->opts->mean)
        return r;
    if (r == 0)
        r = kiln_scan_process(p, &t->process);
    if (r == 0 && in_time(t->q, p->time_ns))
        r = look(t, bucket_of(t, p->time_ns));
    return r;
}

/* ---- values ---- */

static int add_span(struct kiln_tally *t, uint32_t point, const struct kiln_tally_value *value)
{
    struct kiln_tally_span key = {.point = point, .link = *value->link}, *span;
    uint32_t n = t->spans.n, at;
    int r = kiln_fund_table_get(&t->spans, &t->fund, &key, &at);

    if (r < 0)
        return r;
    span = (struct kiln_tally_span *)t->spans.all + at;
    if (at == n) {
        span->time_ns = value->time_ns;
        span->series = t->key;
    }
    span->value = kiln_sat_add(span->value, value->value);
    if (value->time_ns < span->time_ns)
        span->time_ns = value->time_ns;
    if (kiln_str_cmp(t->series.all[t->key], t->series.all[span->series]) < 0)
        span->series = t->key;
    return 0;
}

static int add_mean(struct kiln_tally *t, uint32_t point, uint64_t bucket, int64_t value)
{
    uint64_t key[2] = {point, t->process};
    uint32_t at;
    int r = kiln_fund_table_get(&t->means, &t->fund, key, &at);

    if (r < 0)
        return r;
    ((struct kiln_tally_mean *)t->means.all + at)->sum += (double)value;
    return look(t, bucket);
}

static int touch(struct kiln_tally *t, uint32_t at)
{
    struct kiln_tally_point *point = (struct kiln_tally_point *)t->points.all + at;
    int r;

    if (point->serial == t->serial)
        return 0;
    r = kiln_fund_grow(&t->fund, (void **)&t->touched, &t->cap_touched, (uint64_t)t->n_touched + 1,
                       sizeof(*t->touched));
    if (r < 0)
        return r;
    point->serial = t->serial;
    point->own = 0;
    point->n_profiles++;
    t->touched[t->n_touched++] = at;
    return 0;
}

int kiln_tally_add(struct kiln_tally *t, const struct kiln_tally_value *value)
{
    uint64_t key[2] = {value->group, bucket_of(t, value->time_ns)};
    struct kiln_tally_point *point;
    uint32_t at;
    int r = kiln_fund_table_get(&t->points, &t->fund, key, &at);

    if (r == 0 && t->points.n > (t->opts->buckets_max ? t->opts->buckets_max : BUCKETS_DEFAULT))
        r = KILN_E_LIMIT;
    if (r == 0)
        r = touch(t, at);
    if (r < 0)
        return r;
    point = (struct kiln_tally_point *)t->points.all + at;
    point->sum = kiln_sat_add(point->sum, value->value);
    point->own = kiln_sat_add(point->own, value->value);
    point->count += value->count;
    t->count += value->count;
    if (t->opts->span_exemplars && value->link)
        r = add_span(t, at, value);
    if (r == 0 && t->q->average && !t->opts->mean)
        r = add_mean(t, at, key[1], value->value);
    return r;
}

/* ---- exemplars ---- */

bool kiln_tally_is_better(const struct kiln_exemplar *a, const struct kiln_exemplar *b)
{
    int order;

    if (a->value != b->value)
        return a->value > b->value;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    order = memcmp(a->profile_id, b->profile_id, sizeof(a->profile_id));
    if (order == 0)
        order = memcmp(a->trace_id, b->trace_id, sizeof(a->trace_id));
    if (order == 0)
        order = memcmp(a->span_id, b->span_id, sizeof(a->span_id));
    return order ? order < 0 : kiln_str_cmp(a->series, b->series) < 0;
}

void kiln_tally_end(struct kiln_tally *t)
{
    if (!t->opts->exemplars || t->opts->span_exemplars)
        return;
    t->profile.series = t->series.all[t->key];
    for (uint32_t i = 0; i < t->n_touched; i++) {
        struct kiln_tally_point *point = (struct kiln_tally_point *)t->points.all + t->touched[i];

        t->profile.value = point->own;
        if (!point->has_best || kiln_tally_is_better(&t->profile, &point->best))
            point->best = t->profile;
        point->has_best = true;
    }
}

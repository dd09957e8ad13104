/* SPDX-License-Identifier: Apache-2.0 */
/* Every fact with its group and bucket, sorted, and each run of equal ones added up. */
#include "oracle_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/sat.h"

#define KEY_MAX         (1u << 24)
#define BUCKETS_DEFAULT 1000000u

struct record {
    uint32_t group;
    uint64_t bucket;
    uint32_t process, profile;
    const struct kiln_fact *fact;
};

/* How often a process was looked at in a bucket, by the times of profiles and of what passes of
 * them: sorted, each profile once. */
struct look {
    uint64_t bucket;
    uint32_t process, profile;
};

struct making {
    const struct kiln_facts *facts;
    const struct kiln_timeline_opts *opts;
    struct kiln_timeline *timeline;
    struct kiln_budget budget;
    struct kiln_texts groups;
    struct record *records;
    struct look *looks;
    uint32_t n_looks, cap_looks;
    uint32_t cap_points, cap_exemplars;
};

static uint64_t bucket_of(const struct making *m, uint64_t time_ns)
{
    const struct kiln_question *q = m->facts->question;

    return (time_ns - (q->n_windows ? q->windows[0].start_ns : 0)) / m->opts->step_ns;
}

/* ---- groups ---- */

/* The values of the labels, each with its length. */
static int number_group(struct making *m, const struct kiln_fact *fact, uint32_t *ret_group)
{
    uint32_t attrs = kiln_fact_sample(m->facts, fact)->attrs;
    struct kiln_buf key;
    int r;

    kiln_buf_init(&key, KEY_MAX);
    for (uint32_t i = 0; i < m->opts->n_by; i++) {
        char scratch[KILN_MEANING_SCRATCH];
        struct kiln_str value =
            kiln_fact_label(m->facts, fact->profile, attrs, m->opts->by[i], scratch);
        uint32_t len = (uint32_t)value.len;

        kiln_buf_add(&key, &len, sizeof(len));
        kiln_buf_add_str(&key, value);
    }
    r = key.error ? key.error : kiln_texts_add(&m->groups, kiln_buf_str(&key), ret_group);
    kiln_buf_done(&key);
    return r;
}

static int fill_labels(struct making *m, struct kiln_str key, struct kiln_timeline_series *series)
{
    struct kiln_str *labels =
        kiln_arena_alloc(&m->timeline->arena, (m->opts->n_by + 1) * sizeof(*labels));

    for (uint32_t i = 0; labels && i < m->opts->n_by; i++) {
        uint32_t len;

        memcpy(&len, key.ptr, sizeof(len));
        labels[i] =
            kiln_arena_copy(&m->timeline->arena, (struct kiln_str){key.ptr + sizeof(len), len});
        if (!labels[i].ptr)
            return -ENOMEM;
        key = (struct kiln_str){key.ptr + sizeof(len) + len, key.len - sizeof(len) - len};
    }
    series->labels = labels;
    return labels ? 0 : -ENOMEM;
}

/* ---- looks ---- */

static int add_look(struct making *m, uint32_t profile, uint64_t time_ns)
{
    int r;

    if (!kiln_fact_in_time(m->facts->question, time_ns))
        return 0;
    r = kiln_grow(&m->budget, (void **)&m->looks, &m->cap_looks, (uint64_t)m->n_looks + 1,
                  sizeof(*m->looks), UINT32_MAX);
    if (r == 0)
        m->looks[m->n_looks++] =
            (struct look){bucket_of(m, time_ns), m->facts->profiles[profile].process, profile};
    return r;
}

static int compare_looks(const void *a, const void *b)
{
    const struct look *x = a, *y = b;

    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->profile > y->profile) - (x->profile < y->profile);
}

static int collect_looks(struct making *m)
{
    uint32_t n = 0;
    int r = 0;

    for (uint32_t i = 0; i < m->facts->n_profiles && r == 0; i++) {
        if (m->facts->profiles[i].considered)
            r = add_look(m, i, kiln_fact_head(m->facts, i)->time_ns);
    }
    for (uint32_t i = 0; i < m->facts->n_facts && r == 0; i++)
        r = add_look(m, m->facts->facts[i].profile, m->facts->facts[i].time_ns);
    if (r < 0 || !m->n_looks)
        return r;
    qsort(m->looks, m->n_looks, sizeof(*m->looks), compare_looks);
    for (uint32_t i = 0; i < m->n_looks; i++) {
        if (n == 0 || compare_looks(&m->looks[n - 1], &m->looks[i]) != 0)
            m->looks[n++] = m->looks[i];
    }
    m->n_looks = n;
    return 0;
}

static double count_looks(const struct making *m, uint64_t bucket, uint32_t process)
{
    struct look first = {bucket, process, 0};
    uint32_t low = 0, high = m->n_looks, n = 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare_looks(&m->looks[middle], &first) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low + n < m->n_looks && m->looks[low + n].bucket == bucket &&
           m->looks[low + n].process == process)
        n++;
    return n;
}

/* ---- exemplars ---- */

static struct kiln_exemplar exemplar_of(const struct making *m, const struct kiln_fact *fact)
{
    struct kiln_exemplar e = {.series = kiln_fact_source(m->facts, fact)->found.key};
    const struct kiln_profile *head = kiln_fact_head(m->facts, fact->profile);
    const struct kiln_link *link = kiln_fact_link(m->facts, fact);

    if (m->opts->span_exemplars) {
        memcpy(e.trace_id, link->trace_id, sizeof(e.trace_id));
        memcpy(e.span_id, link->span_id, sizeof(e.span_id));
        e.time_ns = fact->time_ns;
    } else {
        memcpy(e.profile_id, head->id, sizeof(e.profile_id));
        e.time_ns = head->time_ns;
    }
    return e;
}

static int compare_ids(const struct kiln_exemplar *a, const struct kiln_exemplar *b)
{
    int order = memcmp(a->profile_id, b->profile_id, sizeof(a->profile_id));

    if (order == 0)
        order = memcmp(a->trace_id, b->trace_id, sizeof(a->trace_id));
    return order ? order : memcmp(a->span_id, b->span_id, sizeof(a->span_id));
}

/* The larger one; of equal ones the earlier, then that of the smaller id, then of the smaller key.
 */
static bool is_better(const struct kiln_exemplar *a, const struct kiln_exemplar *b)
{
    int order;

    if (a->value != b->value)
        return a->value > b->value;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns;
    order = compare_ids(a, b);
    return order ? order < 0 : kiln_str_cmp(a->series, b->series) < 0;
}

static int by_link(const void *a, const void *b, void *context)
{
    const struct making *m = context;
    const struct record *x = a, *y = b;

    return memcmp(kiln_fact_link(m->facts, x->fact), kiln_fact_link(m->facts, y->fact),
                  sizeof(struct kiln_link));
}

static bool same_exemplar(struct making *m, const struct record *a, const struct record *b)
{
    return m->opts->span_exemplars ? by_link(a, b, m) == 0 : a->profile == b->profile;
}

/* The best of the records of a point, which it may put into another order. */
static int add_exemplar(struct making *m, struct record *records, uint32_t n, uint32_t *ret_number)
{
    struct kiln_timeline *t = m->timeline;
    struct kiln_exemplar best = {0};
    bool any = false;
    int r;

    if (m->opts->span_exemplars)
        qsort_r(records, n, sizeof(*records), by_link, m);
    for (uint32_t i = 0, next; i < n; i = next) {
        struct kiln_exemplar e = exemplar_of(m, records[i].fact);

        e.value = 0;
        for (next = i; next < n && same_exemplar(m, &records[i], &records[next]); next++) {
            struct kiln_exemplar more = exemplar_of(m, records[next].fact);

            e.value = kiln_sat_add(e.value, records[next].fact->value);
            e.time_ns = more.time_ns < e.time_ns ? more.time_ns : e.time_ns;
            e.series = kiln_str_cmp(more.series, e.series) < 0 ? more.series : e.series;
        }
        if (m->opts->span_exemplars && !kiln_fact_sample(m->facts, records[i].fact)->link)
            continue;
        if (!any || is_better(&e, &best))
            best = e;
        any = true;
    }
    if (!any)
        return 0;
    best.series = kiln_arena_copy(&t->arena, best.series);
    r = kiln_grow(&t->budget, (void **)&t->exemplars, &m->cap_exemplars,
                  (uint64_t)t->n_exemplars + 1, sizeof(best), UINT32_MAX - 1);
    if (r < 0 || !best.series.ptr)
        return r < 0 ? r : -ENOMEM;
    t->exemplars[t->n_exemplars++] = best;
    *ret_number = t->n_exemplars;
    return 0;
}

/* ---- points ---- */

/* Each process by its mean over the profiles of the bucket. */
static double average(const struct making *m, const struct record *records, uint32_t n)
{
    double value = 0;

    for (uint32_t i = 0, next; i < n; i = next) {
        double sum = 0;

        for (next = i; next < n && records[next].process == records[i].process; next++)
            sum += (double)records[next].fact->value;
        value += sum / count_looks(m, records[i].bucket, records[i].process);
    }
    return value;
}

static int add_point(struct making *m, struct record *records, uint32_t n)
{
    struct kiln_timeline *t = m->timeline;
    struct kiln_timeline_point point = {.bucket = records[0].bucket};
    int64_t sum = 0;
    int r = 0;

    for (uint32_t i = 0; i < n; i++) {
        point.n_profiles += i == 0 || records[i].profile != records[i - 1].profile;
        point.count += records[i].fact->count;
        sum = kiln_sat_add(sum, records[i].fact->value);
    }
    if (m->opts->mean)
        point.value = (double)sum / (double)point.n_profiles;
    else
        point.value = m->facts->question->average ? average(m, records, n) : (double)sum;
    if (m->opts->exemplars || m->opts->span_exemplars)
        r = add_exemplar(m, records, n, &point.exemplar);
    if (r == 0)
        r = kiln_grow(&t->budget, (void **)&t->points, &m->cap_points, (uint64_t)t->n_points + 1,
                      sizeof(point), m->opts->buckets_max ? m->opts->buckets_max : BUCKETS_DEFAULT);
    if (r == 0)
        t->points[t->n_points++] = point;
    return r;
}

static int add_points(struct making *m, struct record *records, uint32_t n)
{
    int r = 0;

    for (uint32_t i = 0, next; i < n && r == 0; i = next) {
        for (next = i; next < n && records[next].bucket == records[i].bucket; next++) {
        }
        r = add_point(m, records + i, next - i);
    }
    return r;
}

/* ---- series ---- */

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->bucket != y->bucket)
        return x->bucket < y->bucket ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->profile > y->profile) - (x->profile < y->profile);
}

static int collect_records(struct making *m)
{
    int r = 0;

    m->records = kiln_calloc((size_t)m->facts->n_facts + 1, sizeof(*m->records));
    if (!m->records)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->facts->n_facts && r == 0; i++) {
        const struct kiln_fact *fact = &m->facts->facts[i];

        m->records[i] = (struct record){.bucket = bucket_of(m, fact->time_ns),
                                        .process = m->facts->profiles[fact->profile].process,
                                        .profile = fact->profile,
                                        .fact = fact};
        r = number_group(m, fact, &m->records[i].group);
    }
    if (r == 0 && m->facts->n_facts)
        qsort(m->records, m->facts->n_facts, sizeof(*m->records), compare_records);
    return r;
}

static int add_series(struct making *m)
{
    struct kiln_timeline *t = m->timeline;
    uint32_t n = m->facts->n_facts;
    int r = 0;

    t->series = kiln_calloc((size_t)m->groups.n + 1, sizeof(*t->series));
    if (!t->series)
        return -ENOMEM;
    for (uint32_t i = 0, next; i < n && r == 0; i = next) {
        struct kiln_timeline_series *series = &t->series[t->n_series++];

        for (next = i; next < n && m->records[next].group == m->records[i].group; next++) {
        }
        series->first = t->n_points;
        r = fill_labels(m, m->groups.all[m->records[i].group], series);
        if (r == 0)
            r = add_points(m, m->records + i, next - i);
        series->n = t->n_points - series->first;
        for (uint32_t k = 0; k < series->n; k++)
            series->sum += t->points[series->first + k].value;
    }
    return r;
}

static int by_labels(const void *a, const void *b, void *context)
{
    const struct kiln_timeline_series *x = a, *y = b;
    const struct making *m = context;
    int order = 0;

    for (uint32_t i = 0; i < m->opts->n_by && order == 0; i++)
        order = kiln_str_cmp(x->labels[i], y->labels[i]);
    return order;
}

static int by_sum(const void *a, const void *b, void *context)
{
    const struct kiln_timeline_series *x = a, *y = b;

    return x->sum != y->sum ? (x->sum < y->sum ? 1 : -1) : by_labels(a, b, context);
}

static void limit_series(struct making *m)
{
    struct kiln_timeline *t = m->timeline;

    if (m->opts->limit && t->n_series > m->opts->limit) {
        qsort_r(t->series, t->n_series, sizeof(*t->series), by_sum, m);
        t->n_dropped = t->n_series - m->opts->limit;
        t->n_series = m->opts->limit;
    }
    qsort_r(t->series, t->n_series, sizeof(*t->series), by_labels, m);
}

/* ---- everything ---- */

static int make(struct making *m)
{
    int r = kiln_fact_basis(m->facts, &m->timeline->basis);

    if (r == 0 && m->facts->question->average)
        r = collect_looks(m);
    if (r == 0)
        r = collect_records(m);
    if (r == 0)
        r = add_series(m);
    if (r == 0)
        limit_series(m);
    return r;
}

static int make_timeline(const struct kiln_facts *facts, const struct kiln_timeline_opts *opts,
                         struct kiln_timeline **ret_timeline)
{
    struct making m = {.facts = facts, .opts = opts, .budget = {.limit = SIZE_MAX}};
    int r;

    m.timeline = kiln_calloc(1, sizeof(*m.timeline));
    if (!m.timeline)
        return -ENOMEM;
    m.timeline->budget.limit = SIZE_MAX;
    kiln_arena_init(&m.timeline->arena, &m.timeline->budget);
    kiln_texts_init(&m.groups);
    r = make(&m);
    kiln_texts_done(&m.groups);
    kiln_free(m.records);
    kiln_free(m.looks);
    if (r < 0)
        kiln_timeline_free(m.timeline);
    else
        *ret_timeline = m.timeline;
    return r;
}

int kiln_oracle_timeline(struct kiln_engine *engine, const struct kiln_question *question,
                         const struct kiln_timeline_opts *opts, struct kiln_timeline **ret_timeline,
                         struct kiln_err *err)
{
    struct kiln_facts facts;
    int r;

    if (!opts->step_ns)
        return kiln_err_set(err, -EINVAL, NULL, "the step of a timeline is above 0");
    r = kiln_facts_init(&facts, engine, question, err);
    if (r < 0)
        return r;
    r = make_timeline(&facts, opts, ret_timeline);
    kiln_facts_done(&facts);
    if (r == KILN_E_LIMIT)
        return kiln_err_set(err, r, NULL, "more points than an answer may have: take longer steps");
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

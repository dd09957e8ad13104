/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combinations of label values, and the names of labels.
 *
 * A series that decides everything that is asked for and about is told wherever it touches the time
 * with the blocks it is in; any other by its samples in the time.
 */
#include "oracle_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"

#define KEY_MAX  (1u << 24)
#define ROWS_MAX 100000u

struct making {
    const struct kiln_facts *facts;
    const struct kiln_str *names;
    uint32_t n_names;
    struct kiln_labels *labels;
    struct kiln_texts rows; /* of each: its values, each with its length */
    uint32_t *last;         /* of each: 1 + the source that was counted last */
    uint32_t cap_rows, cap_last;
};

/* ---- rows ---- */

static int add_row(struct making *m, uint32_t source, struct kiln_str key)
{
    const struct kiln_series_found *found = &m->facts->sources[source].found;
    struct kiln_labels *labels = m->labels;
    uint32_t n = m->rows.n, at = 0;
    struct kiln_label_row *row;
    int r = kiln_texts_add(&m->rows, key, &at);

    if (r == 0)
        r = kiln_grow(&labels->budget, (void **)&labels->rows, &m->cap_rows, (uint64_t)at + 1,
                      sizeof(*labels->rows), UINT32_MAX);
    if (r == 0)
        r = kiln_grow(&labels->budget, (void **)&m->last, &m->cap_last, (uint64_t)at + 1,
                      sizeof(*m->last), UINT32_MAX);
    if (r < 0)
        return r;
    row = &labels->rows[at];
    if (at == n) {
        *row = (struct kiln_label_row){.min_ns = UINT64_MAX};
        m->last[at] = 0;
    }
    if (m->last[at] == source + 1)
        return 0;
    m->last[at] = source + 1;
    row->min_ns = found->min_ns < row->min_ns ? found->min_ns : row->min_ns;
    row->max_ns = found->max_ns > row->max_ns ? found->max_ns : row->max_ns;
    row->n_profiles += found->n_profiles;
    return 0;
}

static void add_value(struct kiln_buf *key, struct kiln_str value)
{
    uint32_t len = (uint32_t)value.len;

    kiln_buf_add(key, &len, sizeof(len));
    kiln_buf_add_str(key, value);
}

/* A row for the one value. */
static int add_name(struct making *m, uint32_t source, struct kiln_str name)
{
    struct kiln_buf key;
    int r;

    kiln_buf_init(&key, KEY_MAX);
    add_value(&key, name);
    r = key.error ? key.error : add_row(m, source, kiln_buf_str(&key));
    kiln_buf_done(&key);
    return r;
}

/* ---- names ---- */

static int add_set_names(struct making *m, uint32_t source, uint32_t set)
{
    const struct kiln_dict *d = &m->facts->sources[source].batch->dict;
    struct kiln_range range = d->sets[set];
    int r = 0;

    for (uint32_t i = 0; i < range.n && r == 0; i++)
        r = add_name(m, source, d->strings[d->attrs[d->members[range.first + i]].key]);
    return r;
}

static int add_series_names(struct making *m, uint32_t source)
{
    struct kiln_str labels = m->facts->sources[source].series.labels, name, value;
    int r = 0;

    for (uint32_t i = 0; kiln_pseudo_label(i) && r == 0; i++)
        r = add_name(m, source, kiln_str_of(kiln_pseudo_label(i)));
    while (r == 0 && kiln_series_label(&labels, &name, &value))
        r = add_name(m, source, name);
    return r;
}

static int add_names(struct making *m, uint32_t profile, uint32_t attrs)
{
    const struct kiln_fact_profile *p = &m->facts->profiles[profile];
    const struct kiln_batch *batch = kiln_fact_batch(m->facts, profile);
    const uint32_t sets[] = {attrs, kiln_fact_head(m->facts, profile)->attrs,
                             batch->scopes[p->scope].attrs, batch->resources[p->resource].attrs};
    int r = add_series_names(m, p->source);

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(sets) && r == 0; i++)
        r = add_set_names(m, p->source, sets[i]);
    return r;
}

/* ---- values ---- */

static int add_values(struct making *m, uint32_t profile, uint32_t attrs)
{
    struct kiln_buf key;
    int r;

    kiln_buf_init(&key, KEY_MAX);
    for (uint32_t i = 0; i < m->n_names; i++) {
        char scratch[KILN_MEANING_SCRATCH];

        add_value(&key, kiln_fact_label(m->facts, profile, attrs, m->names[i], scratch));
    }
    r = key.error ? key.error : add_row(m, m->facts->profiles[profile].source, kiln_buf_str(&key));
    kiln_buf_done(&key);
    return r;
}

static bool says_samples(const struct kiln_question *q)
{
    const struct kiln_stack_choice *c = &q->stacks;

    return q->n_trace_ids || q->n_span_ids || q->n_profile_ids || c->n_call_site || c->n_with ||
           c->n_without || c->with_regex || c->without_regex;
}

/* Whether its key answers everything. */
static bool decides(const struct making *m, const struct kiln_series *series)
{
    const struct kiln_question *q = m->facts->question;
    struct kiln_str value;

    if (!m->n_names || says_samples(q))
        return false;
    for (uint32_t i = 0; i < m->n_names; i++) {
        if (!kiln_meaning_of_series(series, m->names[i], &value))
            return false;
    }
    for (uint32_t i = 0; i < q->n_matchers; i++) {
        if (!kiln_meaning_of_series(series, q->matchers[i].name, &value))
            return false;
    }
    return true;
}

static int add_decided(struct making *m, uint32_t source)
{
    const struct kiln_series *series = &m->facts->sources[source].series;
    struct kiln_buf key;
    int r;

    kiln_buf_init(&key, KEY_MAX);
    for (uint32_t i = 0; i < m->n_names; i++) {
        struct kiln_str value = KILN_STR("");

        kiln_meaning_of_series(series, m->names[i], &value);
        add_value(&key, value);
    }
    r = key.error ? key.error : add_row(m, source, kiln_buf_str(&key));
    kiln_buf_done(&key);
    return r;
}

/* ---- everything ---- */

static int add_sample(struct making *m, uint32_t profile, uint32_t attrs)
{
    return m->n_names ? add_values(m, profile, attrs) : add_names(m, profile, attrs);
}

/* A series by what it has in the time. */
static int add_source(struct making *m, uint32_t source)
{
    const struct kiln_facts *facts = m->facts;
    int r = 0;

    for (uint32_t i = 0; i < facts->n_facts && r == 0; i++) {
        const struct kiln_fact *fact = &facts->facts[i];

        if (facts->profiles[fact->profile].source == source)
            r = add_sample(m, fact->profile, kiln_fact_sample(facts, fact)->attrs);
    }
    return r;
}

static int add_all(struct making *m)
{
    int r = 0;

    for (uint32_t i = 0; i < m->facts->n_sources && r == 0; i++)
        r = decides(m, &m->facts->sources[i].series) ? add_decided(m, i) : add_source(m, i);
    return r;
}

/* Gives the rows their values. */
static int fill_values(struct making *m)
{
    struct kiln_labels *labels = m->labels;
    uint32_t n = m->n_names ? m->n_names : 1;

    labels->n_rows = m->rows.n;
    for (uint32_t i = 0; i < labels->n_rows; i++) {
        struct kiln_str *values = kiln_arena_alloc(&labels->arena, n * sizeof(*values));
        struct kiln_str key = m->rows.all[i];

        for (uint32_t k = 0; values && k < n; k++) {
            uint32_t len;

            memcpy(&len, key.ptr, sizeof(len));
            values[k] =
                kiln_arena_copy(&labels->arena, (struct kiln_str){key.ptr + sizeof(len), len});
            if (!values[k].ptr)
                return -ENOMEM;
            key = (struct kiln_str){key.ptr + sizeof(len) + len, key.len - sizeof(len) - len};
        }
        if (!values)
            return -ENOMEM;
        labels->rows[i].values = values;
    }
    return 0;
}

static int by_values(const void *a, const void *b, void *context)
{
    const struct kiln_label_row *x = a, *y = b;
    const struct making *m = context;
    int order = 0;

    for (uint32_t i = 0; i < (m->n_names ? m->n_names : 1) && order == 0; i++)
        order = kiln_str_cmp(x->values[i], y->values[i]);
    return order;
}

static int make(struct making *m)
{
    struct kiln_labels *labels = m->labels;
    int r = add_all(m);

    if (r == 0)
        r = fill_values(m);
    if (r < 0 || !labels->n_rows)
        return r;
    qsort_r(labels->rows, labels->n_rows, sizeof(*labels->rows), by_values, m);
    labels->truncated = labels->n_rows > ROWS_MAX;
    labels->n_rows = labels->truncated ? ROWS_MAX : labels->n_rows;
    return 0;
}

int kiln_oracle_labels(struct kiln_engine *engine, const struct kiln_question *question,
                       const struct kiln_str *names, uint32_t n, struct kiln_labels **ret_labels,
                       struct kiln_err *err)
{
    struct making m = {.names = names, .n_names = n};
    struct kiln_facts facts;
    int r = kiln_facts_init(&facts, engine, question, err);

    if (r < 0)
        return r;
    m.facts = &facts;
    m.labels = kiln_calloc(1, sizeof(*m.labels));
    if (m.labels) {
        m.labels->budget.limit = SIZE_MAX;
        kiln_arena_init(&m.labels->arena, &m.labels->budget);
        kiln_texts_init(&m.rows);
        r = make(&m);
        kiln_texts_done(&m.rows);
        kiln_free(m.last);
    } else {
        r = -ENOMEM;
    }
    kiln_facts_done(&facts);
    if (r < 0) {
        kiln_labels_free(m.labels);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_labels = m.labels;
    return 0;
}

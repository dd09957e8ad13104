/* SPDX-License-Identifier: Apache-2.0 */
/* Facts by profile or by link, each run one row; then sorted and cut. */
#include "oracle_int.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"

#define LIMIT_DEFAULT 1000u

struct making {
    const struct kiln_facts *facts;
    const struct kiln_found_opts *opts;
    struct kiln_found *found;
    uint32_t cap;
};

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
    const struct making *m = context;
    int by_time = (x->time_ns < y->time_ns) - (x->time_ns > y->time_ns);
    int by_value = (x->value < y->value) - (x->value > y->value);
    int first = m->opts->order == KILN_FOUND_NEWEST ? by_time : by_value;
    int second = m->opts->order == KILN_FOUND_NEWEST ? by_value : by_time;

    if (first || second)
        return first ? first : second;
    return compare_ids(x, y);
}

static int add_row(struct making *m, const struct kiln_found_row *row)
{
    struct kiln_found *found = m->found;
    int r = kiln_grow(&found->budget, (void **)&found->rows, &m->cap, (uint64_t)found->n_rows + 1,
                      sizeof(*row), UINT32_MAX);

    if (r == 0)
        found->rows[found->n_rows++] = *row;
    return r;
}

/* ---- profiles ---- */

static int add_profiles(struct making *m)
{
    const struct kiln_facts *facts = m->facts;
    int r = 0;

    for (uint32_t i = 0, next; i < facts->n_facts && r == 0; i = next) {
        const struct kiln_fact *fact = &facts->facts[i];
        const struct kiln_profile *head = kiln_fact_head(facts, fact->profile);
        struct kiln_found_row row = {.time_ns = head->time_ns,
                                     .duration_ns = head->duration_ns,
                                     .series = kiln_fact_source(facts, fact)->found.key};

        memcpy(row.profile_id, head->id, sizeof(row.profile_id));
        for (next = i; next < facts->n_facts && facts->facts[next].profile == fact->profile;
             next++) {
            const struct kiln_fact *more = &facts->facts[next];

            row.value = kiln_sat_add(row.value, more->value);
            row.count += more->count;
            row.n_samples++;
        }
        r = add_row(m, &row);
    }
    return r;
}

/* ---- spans ---- */

static int by_link(const void *a, const void *b, void *context)
{
    const struct making *m = context;
    const struct kiln_fact *const *x = a, *const *y = b;
    int order = memcmp(kiln_fact_link(m->facts, *x), kiln_fact_link(m->facts, *y),
                       sizeof(struct kiln_link));

    if (order)
        return order;
    return *x < *y ? -1 : *x > *y;
}

static int add_span(struct making *m, const struct kiln_fact *const *list, uint32_t n)
{
    const struct kiln_link *link = kiln_fact_link(m->facts, list[0]);
    struct kiln_found_row row = {.time_ns = UINT64_MAX,
                                 .series = kiln_fact_source(m->facts, list[0])->found.key};
    uint64_t last = 0;

    memcpy(row.trace_id, link->trace_id, sizeof(row.trace_id));
    memcpy(row.span_id, link->span_id, sizeof(row.span_id));
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_fact *fact = list[i];
        struct kiln_str key = kiln_fact_source(m->facts, fact)->found.key;

        row.value = kiln_sat_add(row.value, fact->value);
        row.count += fact->count;
        row.n_samples++;
        row.time_ns = fact->time_ns < row.time_ns ? fact->time_ns : row.time_ns;
        last = fact->time_ns > last ? fact->time_ns : last;
        row.series = kiln_str_cmp(key, row.series) < 0 ? key : row.series;
    }
    row.duration_ns = last - row.time_ns;
    return add_row(m, &row);
}

static int add_spans(struct making *m)
{
    const struct kiln_facts *facts = m->facts;
    const struct kiln_fact **list = kiln_calloc((size_t)facts->n_facts + 1, sizeof(*list));
    uint32_t n = 0;
    int r = 0;

    if (!list)
        return -ENOMEM;
    for (uint32_t i = 0; i < facts->n_facts; i++) {
        if (kiln_fact_sample(facts, &facts->facts[i])->link)
            list[n++] = &facts->facts[i];
    }
    if (n)
        qsort_r(list, n, sizeof(*list), by_link, m);
    for (uint32_t i = 0, next; i < n && r == 0; i = next) {
        for (next = i;
             next < n && memcmp(kiln_fact_link(facts, list[i]), kiln_fact_link(facts, list[next]),
                                sizeof(struct kiln_link)) == 0;
             next++) {
        }
        r = add_span(m, list + i, next - i);
    }
    kiln_free(list);
    return r;
}

/* ---- everything ---- */

static int cut(struct making *m)
{
    struct kiln_found *found = m->found;
    uint32_t limit = m->opts->limit ? m->opts->limit : LIMIT_DEFAULT;

    if (found->n_rows)
        qsort_r(found->rows, found->n_rows, sizeof(*found->rows), compare_rows, m);
    found->n_all = found->n_rows;
    found->n_rows = found->n_rows < limit ? found->n_rows : limit;
    for (uint32_t i = 0; i < found->n_rows; i++) {
        found->rows[i].series = kiln_arena_copy(&found->arena, found->rows[i].series);
        if (!found->rows[i].series.ptr)
            return -ENOMEM;
    }
    return 0;
}

int kiln_oracle_found(struct kiln_engine *engine, const struct kiln_question *question,
                      const struct kiln_found_opts *opts, struct kiln_found **ret_found,
                      struct kiln_err *err)
{
    struct kiln_found *found;
    struct kiln_facts facts;
    int r = kiln_facts_init(&facts, engine, question, err);

    if (r < 0)
        return r;
    found = kiln_calloc(1, sizeof(*found));
    if (found) {
        struct making m = {&facts, opts, found, 0};

        found->budget.limit = SIZE_MAX;
        kiln_arena_init(&found->arena, &found->budget);
        r = kiln_fact_basis(&facts, &found->basis);
        if (r == 0)
            r = opts->spans ? add_spans(&m) : add_profiles(&m);
        if (r == 0)
            r = cut(&m);
    } else {
        r = -ENOMEM;
    }
    kiln_facts_done(&facts);
    if (r < 0) {
        kiln_found_free(found);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_found = found;
    return 0;
}

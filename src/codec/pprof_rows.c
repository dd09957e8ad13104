/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First every profile gets a column, then every sample a row.
 *
 * Samples that only have timestamps are counts of a sampling profiler; where their period is CPU
 * time, readers of pprof expect that time too, so they fill a second column, as Go's CPU profiles
 * do.
 */
#include <errno.h>

#include "base/hash.h"
#include "codec/pprof_int.h"
#include "codec/pprof_rows.h"
#include "core/intern.h"

#define MEMORY_MAX  (1u << 30)
#define ENTRIES_MAX (1u << 28)

/* While the table is made. */
struct making {
    struct kiln_pprof_rows *t;
    const struct kiln_batch *batch;
    struct kiln_pprof_losses *losses;
    uint32_t *columns; /* by profile */
    uint32_t cap_columns;
    uint32_t cpu_column; /* for time made of counts, or NO_INDEX */
    bool one_to_one;     /* every profile its own column, every sample position a row */
    struct kiln_intern type_index, row_index;
};

/* ---- columns ---- */

static int add_column(struct making *m, struct kiln_value_type type, uint32_t *ret)
{
    struct kiln_pprof_rows *t = m->t;
    int r = kiln_grow(&t->budget, (void **)&t->types, &t->cap_types, (uint64_t)t->n_types + 1,
                      sizeof(*t->types), ENTRIES_MAX);

    if (r < 0)
        return r;
    t->types[t->n_types] = type;
    *ret = t->n_types++;
    return 0;
}

/* The column of a type, new or old. */
static int column_of(struct making *m, struct kiln_value_type type, uint32_t *ret)
{
    uint64_t hash = kiln_hash_mix(type.type, type.unit);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&m->type_index, hash);
         kiln_intern_next(&m->type_index, &p);) {
        if (m->t->types[p.entry].type == type.type && m->t->types[p.entry].unit == type.unit) {
            *ret = p.entry;
            return 0;
        }
    }
    r = add_column(m, type, ret);
    return r < 0 ? r : kiln_intern_add(&m->type_index, &m->t->budget, hash, *ret);
}

/* The place of the profile in its pprof, as the scope's attribute has it; false if it has not. */
static bool original_place(const struct kiln_batch *batch, const struct kiln_scope *scope,
                           uint32_t i, uint32_t *ret)
{
    const struct kiln_attr *order = kiln_set_find(batch, scope->attrs, ATTR_TYPE_ORDER);
    const struct kiln_value *item;

    if (!order || order->value.kind != KILN_VALUE_ARRAY || order->value.n != scope->n_profiles)
        return false;
    item = &batch->dict.nested[order->value.first + i].value;
    if (item->kind != KILN_VALUE_INT || item->i < 0 || item->i >= scope->n_profiles)
        return false;
    *ret = (uint32_t)item->i;
    return true;
}

/*
 * The profiles of a scope, in the order of the pprof they came from, else as they are.  `ret` has
 * room for them.  Returns true if the scope knows the order.
 */
static bool ordered_profiles(const struct kiln_batch *batch, const struct kiln_scope *scope,
                             uint32_t *ret)
{
    bool known = scope->n_profiles > 0;
    uint32_t place;

    for (uint32_t i = 0; i < scope->n_profiles; i++)
        ret[i] = NO_INDEX;
    for (uint32_t i = 0; known && i < scope->n_profiles; i++) {
        known = original_place(batch, scope, i, &place) && ret[place] == NO_INDEX;
        if (known)
            ret[place] = scope->first_profile + i;
    }
    for (uint32_t i = 0; !known && i < scope->n_profiles; i++)
        ret[i] = scope->first_profile + i;
    return known;
}

/* True if the profiles have the same identities in the same order. */
static bool parallel(const struct kiln_batch *batch, const struct kiln_scope *scope)
{
    const struct kiln_profile *first = &batch->profiles[scope->first_profile];
    const struct kiln_sample *a = batch->samples + first->first_sample;

    for (uint32_t p = 1; p < scope->n_profiles; p++) {
        const struct kiln_sample *b = batch->samples + first[p].first_sample;

        if (first[p].n_samples != first->n_samples)
            return false;
        for (uint32_t i = 0; i < first->n_samples; i++) {
            if (a[i].stack != b[i].stack || a[i].attrs != b[i].attrs || a[i].link != b[i].link)
                return false;
        }
    }
    return true;
}

static bool types_differ(const struct kiln_batch *batch, const struct kiln_scope *scope)
{
    const struct kiln_profile *list = &batch->profiles[scope->first_profile];

    if (scope->n_profiles > 64) /* no pprof: not worth a table */
        return false;
    for (uint32_t i = 0; i < scope->n_profiles; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (list[i].sample_type.type == list[k].sample_type.type &&
                list[i].sample_type.unit == list[k].sample_type.unit)
                return false;
        }
    }
    return true;
}

static bool counts_only(const struct kiln_batch *batch, const struct kiln_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        if (!batch->samples[profile->first_sample + i].has_values)
            return true;
    }
    return false;
}

static bool type_is(const struct kiln_batch *batch, struct kiln_value_type type,
                    struct kiln_str name, struct kiln_str unit)
{
    return kiln_str_eq(batch->dict.strings[type.type], name) &&
           kiln_str_eq(batch->dict.strings[type.unit], unit);
}

/* True for samples/count whose period is CPU time. */
static bool counts_cpu(const struct kiln_batch *batch, const struct kiln_profile *profile)
{
    return profile->period > 0 &&
           type_is(batch, profile->sample_type, KILN_STR("samples"), KILN_STR("count")) &&
           type_is(batch, profile->period_type, KILN_STR("cpu"), KILN_STR("nanoseconds"));
}

static bool has_cpu_time(const struct kiln_batch *batch, const struct kiln_scope *scope)
{
    for (uint32_t i = 0; i < scope->n_profiles; i++) {
        if (type_is(batch, batch->profiles[scope->first_profile + i].sample_type, KILN_STR("cpu"),
                    KILN_STR("nanoseconds")))
            return true;
    }
    return false;
}

/* Adds the column for CPU time where there are counts to make it of. */
static int add_cpu_column(struct making *m)
{
    const struct kiln_batch *batch = m->batch;

    for (uint32_t s = 0; s < batch->n_scopes; s++) {
        const struct kiln_scope *scope = &batch->scopes[s];

        for (uint32_t i = 0; i < scope->n_profiles; i++) {
            const struct kiln_profile *profile = &batch->profiles[scope->first_profile + i];

            if (counts_cpu(batch, profile) && counts_only(batch, profile) &&
                !has_cpu_time(batch, scope))
                return column_of(m, profile->period_type, &m->cpu_column);
        }
    }
    return 0;
}

static int make_columns(struct making *m)
{
    const struct kiln_batch *batch = m->batch;
    uint32_t *order = NULL;
    uint32_t cap_order = 0;
    int r;

    m->cpu_column = NO_INDEX;
    r = kiln_reserve(&m->t->budget, (void **)&m->columns, &m->cap_columns, batch->n_profiles,
                     sizeof(*m->columns), ENTRIES_MAX);
    if (r == 0)
        r = kiln_reserve(&m->t->budget, (void **)&order, &cap_order, batch->n_profiles,
                         sizeof(*order), ENTRIES_MAX);
    for (uint32_t s = 0; r == 0 && s < batch->n_scopes; s++) {
        const struct kiln_scope *scope = &batch->scopes[s];
        bool known = ordered_profiles(batch, scope, order);

        m->one_to_one = batch->n_scopes == 1 && scope->n_profiles > 0 &&
                        (known || types_differ(batch, scope)) && parallel(batch, scope);
        for (uint32_t i = 0; r == 0 && i < scope->n_profiles; i++) {
            struct kiln_value_type type = batch->profiles[order[i]].sample_type;

            r = m->one_to_one ? add_column(m, type, &m->columns[order[i]])
                              : column_of(m, type, &m->columns[order[i]]);
        }
    }
    if (r == 0)
        r = add_cpu_column(m);
    kiln_array_free(&m->t->budget, (void **)&order, &cap_order, sizeof(*order));
    return r;
}

/* ---- rows ---- */

static int add_row(struct making *m, struct kiln_pprof_row row, uint32_t *ret)
{
    struct kiln_pprof_rows *t = m->t;
    uint64_t n = (uint64_t)t->n_rows + 1;
    int r =
        kiln_grow(&t->budget, (void **)&t->rows, &t->cap_rows, n, sizeof(*t->rows), ENTRIES_MAX);

    if (r == 0)
        r = kiln_grow(&t->budget, (void **)&t->values, &t->cap_values, n * t->n_types,
                      sizeof(*t->values), ENTRIES_MAX);
    if (r < 0)
        return r;
    t->rows[t->n_rows] = row;
    memset(t->values + (size_t)t->n_rows * t->n_types, 0, t->n_types * sizeof(*t->values));
    *ret = t->n_rows++;
    return 0;
}

static int row_of(struct making *m, struct kiln_pprof_row row, uint32_t *ret)
{
    uint64_t hash = kiln_hash(&row, sizeof(row));
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&m->row_index, hash);
         kiln_intern_next(&m->row_index, &p);) {
        if (memcmp(&m->t->rows[p.entry], &row, sizeof(row)) == 0) {
            *ret = p.entry;
            return 0;
        }
    }
    r = add_row(m, row, ret);
    return r < 0 ? r : kiln_intern_add(&m->row_index, &m->t->budget, hash, *ret);
}

/* Adds to a cell, and stops at the limits. */
static void add_value(struct making *m, uint32_t row, uint32_t column, int64_t value)
{
    int64_t *cell = m->t->values + (size_t)row * m->t->n_types + column;

    if (!__builtin_add_overflow(*cell, value, cell))
        return;
    *cell = value < 0 ? INT64_MIN : INT64_MAX;
    m->losses->overflows++;
}

static void add_cpu_time(struct making *m, uint32_t row, int64_t count, int64_t period)
{
    int64_t time;

    if (__builtin_mul_overflow(count, period, &time)) {
        time = count < 0 ? INT64_MIN : INT64_MAX;
        m->losses->overflows++;
    }
    add_value(m, row, m->cpu_column, time);
}

/* Puts the samples of one profile into the table. */
static int add_profile(struct making *m, uint32_t profile, uint32_t resource, bool make_cpu_time)
{
    const struct kiln_profile *p = &m->batch->profiles[profile];

    for (uint32_t i = 0; i < p->n_samples; i++) {
        const struct kiln_sample *s = &m->batch->samples[p->first_sample + i];
        struct kiln_pprof_row identity = {s->stack, s->attrs, s->link, resource};
        int64_t total = kiln_sample_total(m->batch, s);
        uint32_t row = i;
        int r = 0;

        if (!m->one_to_one)
            r = row_of(m, identity, &row);
        else if (i >= m->t->n_rows)
            r = add_row(m, identity, &row);
        if (r < 0)
            return r;
        add_value(m, row, m->columns[profile], total);
        if (make_cpu_time)
            add_cpu_time(m, row, total, p->period);
        if (s->has_times)
            m->losses->timestamps += s->n;
    }
    return 0;
}

static int make_rows(struct making *m)
{
    const struct kiln_batch *batch = m->batch;
    int result = 0;

    for (uint32_t r = 0; r < batch->n_resources; r++) {
        const struct kiln_resource *resource = &batch->resources[r];

        for (uint32_t s = 0; s < resource->n_scopes; s++) {
            const struct kiln_scope *scope = &batch->scopes[resource->first_scope + s];
            bool cpu = m->cpu_column != NO_INDEX && !has_cpu_time(batch, scope);

            for (uint32_t i = 0; result == 0 && i < scope->n_profiles; i++) {
                uint32_t profile = scope->first_profile + i;

                result = add_profile(m, profile, resource->attrs,
                                     cpu && counts_cpu(batch, &batch->profiles[profile]));
            }
        }
    }
    return result;
}

int kiln_pprof_rows_init(struct kiln_pprof_rows *rows, const struct kiln_batch *batch,
                         struct kiln_pprof_losses *losses)
{
    struct making m = {.t = rows, .batch = batch, .losses = losses};
    int r;

    *rows = (struct kiln_pprof_rows){.budget = {.limit = MEMORY_MAX}};
    r = make_columns(&m);
    rows->has_cpu_time = m.cpu_column != NO_INDEX && m.cpu_column + 1 == rows->n_types;
    if (r == 0)
        r = make_rows(&m);
    kiln_intern_done(&m.type_index, &rows->budget);
    kiln_intern_done(&m.row_index, &rows->budget);
    kiln_array_free(&rows->budget, (void **)&m.columns, &m.cap_columns, sizeof(*m.columns));
    if (r < 0)
        kiln_pprof_rows_done(rows);
    return r;
}

void kiln_pprof_rows_done(struct kiln_pprof_rows *rows)
{
    kiln_array_free(&rows->budget, (void **)&rows->types, &rows->cap_types, sizeof(*rows->types));
    kiln_array_free(&rows->budget, (void **)&rows->rows, &rows->cap_rows, sizeof(*rows->rows));
    kiln_array_free(&rows->budget, (void **)&rows->values, &rows->cap_values,
                    sizeof(*rows->values));
}

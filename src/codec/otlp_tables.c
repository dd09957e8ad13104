/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "codec/otlp_tables.h"
#include "core/frame.h"

/* While marking, an attribute in use is 0, a string in use is its kind, and all others are
 * OTLP_UNUSED.  Kinds stand in this order, and what is of two is of the first. */
#define NAME    (OTLP_UNUSED - 3)
#define TEXT    (OTLP_UNUSED - 2)
#define MADE_UP (OTLP_UNUSED - 1)

enum { BY_INDEX = 1, INLINE = 2 };

struct marker {
    const struct kiln_batch *batch;
    struct otlp_tables *t;
    uint8_t *sets; /* how a set is used: BY_INDEX, INLINE */
    struct kiln_otlp_encode_opts opts;
};

/* The empty string comes first, and all others too where they keep their order. */
static void mark_as(struct marker *m, uint32_t string, uint32_t kind)
{
    if (!m->opts.dense || string == 0)
        kind = NAME;
    if (kind < m->t->strings[string])
        m->t->strings[string] = kind;
}

static void mark_string(struct marker *m, uint32_t string)
{
    mark_as(m, string, TEXT);
}

static void mark_type(struct marker *m, struct kiln_value_type type)
{
    mark_string(m, type.type);
    mark_string(m, type.unit);
}

/* The texts of an attribute and of what is nested in it. */
static void mark_attr_texts(struct marker *m, const struct kiln_attr *attr)
{
    struct kiln_value value = attr->value;

    mark_string(m, attr->key);
    if (value.kind == KILN_VALUE_STRING)
        mark_string(m, (uint32_t)value.str);
    if (value.kind != KILN_VALUE_ARRAY && value.kind != KILN_VALUE_MAP)
        return;
    for (uint32_t i = 0; i < value.n; i++)
        mark_attr_texts(m, &m->batch->dict.nested[value.first + i]);
}

static void mark_sets(struct marker *m)
{
    const struct kiln_batch *batch = m->batch;
    const struct kiln_dict *d = &batch->dict;

    for (uint32_t i = 0; i < d->n_mappings; i++)
        m->sets[d->mappings[i].attrs] = BY_INDEX;
    for (uint32_t i = 0; i < d->n_locations; i++)
        m->sets[d->locations[i].attrs] = BY_INDEX;
    for (uint32_t i = 0; i < batch->n_profiles; i++)
        m->sets[batch->profiles[i].attrs] = BY_INDEX;
    for (uint32_t i = 0; i < batch->n_samples; i++)
        m->sets[batch->samples[i].attrs] = BY_INDEX;
    for (uint32_t i = 0; m->opts.string_refs && i < batch->n_resources; i++)
        m->sets[batch->resources[i].attrs] |= INLINE;
    for (uint32_t i = 0; m->opts.string_refs && i < batch->n_scopes; i++)
        m->sets[batch->scopes[i].attrs] |= INLINE;
}

/* Marks the attributes of a set as it is used; the texts of all of them where they are referred to.
 */
static void mark_members(struct marker *m, uint32_t set)
{
    const struct kiln_dict *d = &m->batch->dict;
    struct kiln_range range = d->sets[set];

    for (uint32_t i = 0; i < range.n; i++) {
        uint32_t attr = d->members[range.first + i];

        if (m->sets[set] & BY_INDEX)
            m->t->attrs[attr] = 0;
        if (m->opts.string_refs)
            mark_attr_texts(m, &d->attrs[attr]);
    }
}

static void mark_attrs(struct marker *m)
{
    const struct kiln_dict *d = &m->batch->dict;

    m->t->attrs[0] = 0;
    for (uint32_t s = 0; s < d->n_sets; s++) {
        if (m->sets[s])
            mark_members(m, s);
    }
    for (uint32_t i = 0; i < d->n_attrs; i++) {
        if (m->t->attrs[i] == OTLP_UNUSED)
            continue;
        mark_string(m, d->attrs[i].key);
        mark_string(m, d->attrs[i].unit);
    }
}

static void mark_name(struct marker *m, const struct kiln_function *function)
{
    bool made_up = m->opts.dense && kiln_frame_is_made_up(&m->batch->dict, function);

    mark_as(m, function->name, made_up ? MADE_UP : NAME);
}

static void mark_texts(struct marker *m)
{
    const struct kiln_batch *batch = m->batch;
    const struct kiln_dict *d = &batch->dict;

    mark_string(m, 0);
    for (uint32_t i = 0; i < d->n_functions; i++) {
        mark_name(m, &d->functions[i]);
        mark_string(m, d->functions[i].system_name);
        mark_string(m, d->functions[i].filename);
    }
    for (uint32_t i = 0; i < d->n_mappings; i++)
        mark_string(m, d->mappings[i].filename);
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        mark_type(m, batch->profiles[i].sample_type);
        mark_type(m, batch->profiles[i].period_type);
    }
}

/* Turns marks of one kind into consecutive wire indexes.  Returns the one that is next then. */
static uint32_t number(uint32_t *entries, uint32_t n, uint32_t mark, uint32_t next)
{
    for (uint32_t i = 0; i < n; i++) {
        if (entries[i] == mark)
            entries[i] = next++;
    }
    return next;
}

static void number_strings(struct otlp_tables *t, uint32_t n)
{
    for (uint32_t kind = 0; kind < OTLP_STRING_KINDS; kind++) {
        t->first[kind] = t->n_strings;
        t->n_strings = number(t->strings, n, NAME + kind, t->n_strings);
    }
}

int otlp_tables_init(struct otlp_tables *t, const struct kiln_batch *batch,
                     const struct kiln_otlp_encode_opts *opts)
{
    const struct kiln_dict *d = &batch->dict;
    struct marker m = {.batch = batch, .t = t};

    if (opts)
        m.opts = *opts;
    *t = (struct otlp_tables){0};
    t->strings = kiln_malloc(d->n_strings * sizeof(*t->strings));
    t->attrs = kiln_malloc(d->n_attrs * sizeof(*t->attrs));
    m.sets = kiln_calloc(d->n_sets, 1);
    if (!t->strings || !t->attrs || !m.sets) {
        kiln_free(m.sets);
        otlp_tables_done(t);
        return -ENOMEM;
    }
    memset(t->strings, 0xff, d->n_strings * sizeof(*t->strings));
    memset(t->attrs, 0xff, d->n_attrs * sizeof(*t->attrs));
    mark_sets(&m);
    mark_attrs(&m);
    mark_texts(&m);
    number_strings(t, d->n_strings);
    t->n_attrs = number(t->attrs, d->n_attrs, 0, 0);
    kiln_free(m.sets);
    return 0;
}

void otlp_tables_done(struct otlp_tables *t)
{
    kiln_free(t->strings);
    kiln_free(t->attrs);
    *t = (struct otlp_tables){0};
}

static int by_key(const void *a, const void *b, void *dict)
{
    const struct kiln_attr *x = *(const struct kiln_attr *const *)a;
    const struct kiln_attr *y = *(const struct kiln_attr *const *)b;
    const struct kiln_dict *d = dict;

    return kiln_str_cmp(d->strings[x->key], d->strings[y->key]);
}

#define FEW 16u

/* By insertion where there are few, as nearly always: they are in order but for one or two. */
static void sort_attrs(const struct kiln_attr **list, uint32_t n, const struct kiln_dict *d)
{
    if (n > FEW) {
        qsort_r(list, n, sizeof(struct kiln_attr *), by_key, (void *)(uintptr_t)d);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        const struct kiln_attr *moving = list[i];
        struct kiln_str key = d->strings[moving->key];
        uint32_t at = i;

        for (; at > 0 && kiln_str_cmp(d->strings[list[at - 1]->key], key) > 0; at--)
            list[at] = list[at - 1];
        list[at] = moving;
    }
}

int otlp_sorted_attrs(const struct kiln_batch *batch, uint32_t set,
                      const struct kiln_attr ***ret_sorted, uint32_t *ret_n)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range range = d->sets[set];
    const struct kiln_attr **sorted = NULL;

    if (range.n) {
        sorted = kiln_malloc(range.n * sizeof(struct kiln_attr *));
        if (!sorted)
            return -ENOMEM;
        for (uint32_t i = 0; i < range.n; i++)
            sorted[i] = &d->attrs[d->members[range.first + i]];
        sort_attrs(sorted, range.n, d);
    }
    *ret_sorted = sorted;
    *ret_n = range.n;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which entries of the dictionary are written, and under which number.
 *
 * Everything that rows, origins and stacks refer to is walked once.  Attribute sets, attributes and
 * lists are numbered as the walk meets them, after those that rows have numbered already.  Strings,
 * functions, mappings and locations are collected, sorted, and numbered in that order: neighbours
 * then differ by little.
 */
#include <stdlib.h>

#include "store/block_writer.h"

#define AHEAD 8u /* stacks */

/* ---- collecting ---- */

static void use_string(struct kiln_block_writer *w, uint64_t string)
{
    kiln_writer_number(w, &w->strings, (uint32_t)string);
}

/* A list is known by its first child; lists are numbered children first. */
static void use_value(struct kiln_block_writer *w, const struct kiln_value *value)
{
    const struct kiln_attr *children;

    if (value->kind == KILN_VALUE_STRING || value->kind == KILN_VALUE_BYTES)
        use_string(w, value->str);
    if ((value->kind != KILN_VALUE_ARRAY && value->kind != KILN_VALUE_MAP) || value->n == 0 ||
        w->lists.of[value->first + 1])
        return;
    children = w->dict->dict.nested + value->first;
    for (uint32_t i = 0; i < value->n; i++) {
        use_string(w, children[i].key);
        use_string(w, children[i].unit);
        use_value(w, &children[i].value);
    }
    if (kiln_writer_number(w, &w->lists, (uint32_t)value->first + 1) &&
        WRITER_ROOM(w, w->list_sizes, w->cap_list_sizes, w->lists.n))
        w->list_sizes[w->lists.n - 1] = value->n;
}

static void use_attr(struct kiln_block_writer *w, uint32_t attr)
{
    const struct kiln_attr *a = &w->dict->dict.attrs[attr];
    uint32_t n = w->attrs.n;

    kiln_writer_number(w, &w->attrs, attr);
    if (w->attrs.n == n)
        return;
    use_string(w, a->key);
    use_string(w, a->unit);
    use_value(w, &a->value);
}

/* The members of all sets. */
static void use_members(struct kiln_block_writer *w)
{
    const struct kiln_dict *d = &w->dict->dict;

    for (uint32_t i = 0; i < w->sets.n && !w->error; i++) {
        struct kiln_range set = d->sets[w->sets.order[i]];

        for (uint32_t k = 0; k < set.n; k++)
            use_attr(w, d->members[set.first + k]);
    }
}

static void use_set(struct kiln_block_writer *w, uint32_t set)
{
    kiln_writer_number(w, &w->sets, set);
}

static void use_resource(struct kiln_block_writer *w, const struct kiln_resource *r)
{
    const struct kiln_batch *b = w->dict;

    use_set(w, r->attrs);
    use_string(w, r->schema_url);
    for (uint32_t i = 0; i < r->n_entities; i++) {
        const struct kiln_entity *e = &b->entities[r->first_entity + i];

        use_string(w, e->schema_url);
        use_string(w, e->type);
        for (uint32_t k = 0; k < e->n_id_keys + e->n_description_keys; k++)
            use_string(w, b->entity_keys[e->first_key + k]);
    }
}

static void use_heads(struct kiln_block_writer *w)
{
    for (uint32_t i = 0; i < w->n_resources; i++)
        use_resource(w, &w->dict->resources[w->resources[i]]);
    for (uint32_t i = 0; i < w->n_scopes; i++) {
        const struct kiln_scope *s = &w->dict->scopes[w->scopes[i]];

        use_string(w, s->name);
        use_string(w, s->version);
        use_string(w, s->schema_url);
        use_set(w, s->attrs);
    }
    for (uint32_t i = 0; i < w->n_origins; i++) {
        const struct kiln_origin *o = &w->origins[i];

        use_string(w, o->sample_type.type);
        use_string(w, o->sample_type.unit);
        use_string(w, o->period_type.type);
        use_string(w, o->period_type.unit);
        use_string(w, o->payload_format);
        use_set(w, o->attrs);
    }
}

static void use_function(struct kiln_block_writer *w, uint32_t function)
{
    const struct kiln_function *f = &w->dict->dict.functions[function];
    uint32_t n = w->functions.n;

    kiln_writer_number(w, &w->functions, function);
    if (w->functions.n == n)
        return;
    use_string(w, f->name);
    use_string(w, f->system_name);
    use_string(w, f->filename);
}

static void use_mapping(struct kiln_block_writer *w, uint32_t mapping)
{
    const struct kiln_mapping *m = &w->dict->dict.mappings[mapping];
    uint32_t n = w->mappings.n;

    kiln_writer_number(w, &w->mappings, mapping);
    if (w->mappings.n == n)
        return;
    use_string(w, m->filename);
    use_set(w, m->attrs);
}

static void use_location(struct kiln_block_writer *w, uint32_t location)
{
    const struct kiln_dict *d = &w->dict->dict;
    const struct kiln_location *l = &d->locations[location];

    kiln_writer_number(w, &w->locations, location);
    use_mapping(w, l->mapping);
    use_set(w, l->attrs);
    for (uint32_t i = 0; i < l->n; i++)
        use_function(w, d->lines[l->first + i].function);
}

/* Asks for the stacks that come soon, which lie all over memory. */
static void fetch_stacks(const struct kiln_block_writer *w, uint32_t i)
{
    const struct kiln_dict *d = &w->dict->dict;
    struct kiln_range stack;

    if (w->n_stacks - i <= 2 * AHEAD)
        return;
    __builtin_prefetch(&d->stacks[w->stack_order[i + 2 * AHEAD]]);
    stack = d->stacks[w->stack_order[i + AHEAD]];
    for (uint32_t k = 0; k < stack.n; k += 64 / sizeof(*d->frames))
        __builtin_prefetch(d->frames + stack.first + k);
}

static void use_stacks(struct kiln_block_writer *w)
{
    const struct kiln_dict *d = &w->dict->dict;

    for (uint32_t i = 0; i < w->n_stacks && !w->error; i++) {
        struct kiln_range stack = d->stacks[w->stack_order[i]];

        fetch_stacks(w, i);
        for (uint32_t k = 0; k < stack.n; k++) {
            uint32_t location = d->frames[stack.first + k];

            if (location && !w->locations.of[location])
                use_location(w, location);
        }
    }
}

/* ---- sorting ---- */

/* Equal keys one after another: those are sorted by comparing. */
static void sort_ties(struct kiln_block_writer *w, uint32_t n,
                      int (*compare)(const void *, const void *, void *))
{
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && w->keyed[k].key == w->keyed[i].key;)
            k++;
        if (k - i > 1)
            qsort_r(w->keyed + i, k - i, sizeof(*w->keyed), compare, w);
    }
}

static bool begin_sort(struct kiln_block_writer *w, uint32_t n)
{
    return WRITER_ROOM(w, w->keyed, w->cap_keyed, n) &&
           WRITER_ROOM(w, w->keyed_scratch, w->cap_keyed_scratch, n);
}

/* Gives numbers in the order of `keyed`, whose `at` are indexes. */
static void end_sort(struct kiln_block_writer *w, struct kiln_numbers *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        numbers->order[i] = w->keyed[i].at;
        numbers->of[w->keyed[i].at] = i + 1;
    }
}

static int by_number(uint64_t x, uint64_t y)
{
    return x < y ? -1 : x > y;
}

static int by_text(const void *a, const void *b, void *context)
{
    const struct kiln_block_writer *w = context;
    const struct kiln_keyed *x = a, *y = b;

    return kiln_str_cmp(w->dict->dict.strings[x->at], w->dict->dict.strings[y->at]);
}

/* Its first eight bytes, so that keys stand in the order of texts. */
static uint64_t text_key(struct kiln_str s)
{
    uint64_t key = 0;

    memcpy(&key, s.ptr, s.len < sizeof(key) ? s.len : sizeof(key));
    return __builtin_bswap64(key);
}

static void sort_strings(struct kiln_block_writer *w)
{
    struct kiln_numbers *n = &w->strings;

    if (!begin_sort(w, n->n))
        return;
    for (uint32_t i = 0; i < n->n; i++)
        w->keyed[i] = (struct kiln_keyed){.key = text_key(w->dict->dict.strings[n->order[i]]),
                                          .at = n->order[i]};
    kiln_sort_keyed(w->keyed, w->keyed_scratch, n->n);
    sort_ties(w, n->n, by_text);
    end_sort(w, n);
}

static int by_function(const void *a, const void *b, void *context)
{
    const struct kiln_block_writer *w = context;
    const struct kiln_function *x = &w->dict->dict.functions[((const struct kiln_keyed *)a)->at];
    const struct kiln_function *y = &w->dict->dict.functions[((const struct kiln_keyed *)b)->at];
    int order = by_number(w->strings.of[x->system_name], w->strings.of[y->system_name]);

    return order ? order : (x->start_line > y->start_line) - (x->start_line < y->start_line);
}

static void sort_functions(struct kiln_block_writer *w)
{
    struct kiln_numbers *n = &w->functions;

    if (!begin_sort(w, n->n))
        return;
    for (uint32_t i = 0; i < n->n; i++) {
        const struct kiln_function *f = &w->dict->dict.functions[n->order[i]];

        w->keyed[i] = (struct kiln_keyed){
            .key = (uint64_t)w->strings.of[f->name] << 32 | w->strings.of[f->filename],
            .at = n->order[i],
        };
    }
    kiln_sort_keyed(w->keyed, w->keyed_scratch, n->n);
    sort_ties(w, n->n, by_function);
    end_sort(w, n);
}

static int by_mapping(const void *a, const void *b, void *context)
{
    const struct kiln_block_writer *w = context;
    const struct kiln_mapping *x = &w->dict->dict.mappings[((const struct kiln_keyed *)a)->at];
    const struct kiln_mapping *y = &w->dict->dict.mappings[((const struct kiln_keyed *)b)->at];

    return by_number(x->start, y->start);
}

static void sort_mappings(struct kiln_block_writer *w)
{
    struct kiln_numbers *n = &w->mappings;

    if (!begin_sort(w, n->n))
        return;
    for (uint32_t i = 0; i < n->n; i++) {
        const struct kiln_mapping *m = &w->dict->dict.mappings[n->order[i]];

        w->keyed[i] = (struct kiln_keyed){
            .key = (uint64_t)w->strings.of[m->filename] << 32 | w->sets.of[m->attrs],
            .at = n->order[i],
        };
    }
    kiln_sort_keyed(w->keyed, w->keyed_scratch, n->n);
    sort_ties(w, n->n, by_mapping);
    end_sort(w, n);
}

/* Where addresses are equal, mostly for want of one: by the functions. */
static int by_lines(const void *a, const void *b, void *context)
{
    const struct kiln_block_writer *w = context;
    const struct kiln_dict *d = &w->dict->dict;
    const struct kiln_location *x = &d->locations[((const struct kiln_keyed *)a)->at];
    const struct kiln_location *y = &d->locations[((const struct kiln_keyed *)b)->at];

    for (uint32_t i = 0; i < x->n && i < y->n; i++) {
        const struct kiln_line *l = &d->lines[x->first + i], *m = &d->lines[y->first + i];
        int order = by_number(w->functions.of[l->function], w->functions.of[m->function]);

        if (order == 0)
            order = (l->line > m->line) - (l->line < m->line);
        if (order)
            return order;
    }
    return by_number(x->n, y->n);
}

/* By mapping and address: the second first, as sorting is stable. */
static void sort_locations(struct kiln_block_writer *w)
{
    struct kiln_numbers *n = &w->locations;
    const struct kiln_location *locations = w->dict->dict.locations;

    if (!begin_sort(w, n->n))
        return;
    for (uint32_t i = 0; i < n->n; i++)
        w->keyed[i] = (struct kiln_keyed){.key = locations[n->order[i]].address, .at = n->order[i]};
    kiln_sort_keyed(w->keyed, w->keyed_scratch, n->n);
    sort_ties(w, n->n, by_lines);
    for (uint32_t i = 0; i < n->n; i++)
        w->keyed[i].key = w->mappings.of[locations[w->keyed[i].at].mapping];
    kiln_sort_keyed(w->keyed, w->keyed_scratch, n->n);
    end_sort(w, n);
}

void kiln_writer_number_all(struct kiln_block_writer *w)
{
    if (w->error)
        return;
    use_heads(w);
    use_stacks(w);
    use_members(w);
    if (w->error)
        return;
    sort_strings(w);
    sort_functions(w);
    sort_mappings(w);
    sort_locations(w);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays of the batch are those of the builder, as full as they are.  Indexes over strings,
 * functions, locations and stacks are made when somebody looks one up (core/bulk.h); those over the
 * other tables, which are small, are made at once.
 */
#include "core/reopen.h"

#include <assert.h>
#include <errno.h>

#include "core/builder_int.h"
#include "core/bulk.h"
#include "core/remap.h"

bool kiln_batch_is_sole(const struct kiln_batch *batch)
{
    return atomic_load_explicit(&kiln_batch_box(batch)->refs, memory_order_acquire) == 1;
}

static void set_capacities(struct kiln_builder *b)
{
    const struct kiln_batch *batch = &b->box->batch;
    const struct kiln_dict *d = &batch->dict;

    b->cap = (struct kiln_caps){
        .strings = d->n_strings,
        .functions = d->n_functions,
        .mappings = d->n_mappings,
        .locations = d->n_locations,
        .lines = d->n_lines,
        .stacks = d->n_stacks,
        .frames = d->n_frames,
        .links = d->n_links,
        .attrs = d->n_attrs,
        .nested = d->n_nested,
        .sets = d->n_sets,
        .members = d->n_members,
        .resources = batch->n_resources,
        .entities = batch->n_entities,
        .entity_keys = batch->n_entity_keys,
        .scopes = batch->n_scopes,
        .profiles = batch->n_profiles,
        .samples = batch->n_samples,
        .observations = batch->n_observations,
    };
}

static void add(struct kiln_builder *b, struct kiln_intern *index, uint64_t hash, uint32_t entry)
{
    int r = kiln_intern_add(index, &b->box->budget, hash, entry);

    if (r < 0)
        kiln_builder_fail(b, r);
}

/* Room for what an index will hold, once. */
static void size_index(struct kiln_builder *b, struct kiln_intern *index, uint32_t n_entries)
{
    int r = n_entries > 1 ? kiln_intern_expect(index, &b->box->budget, n_entries) : 0;

    if (r < 0)
        kiln_builder_fail(b, r);
}

static void index_records(struct kiln_builder *b)
{
    const struct kiln_dict *d = &b->box->batch.dict;
    uint64_t words[3];

    size_index(b, &b->attrs, d->n_attrs);
    size_index(b, &b->sets, d->n_sets);
    size_index(b, &b->mappings, d->n_mappings);
    size_index(b, &b->links, d->n_links);
    for (uint32_t i = 1; i < d->n_attrs && !b->error; i++) {
        memcpy(words, &d->attrs[i], sizeof(words));
        add(b, &b->attrs, kiln_hash_attr(words), i);
    }
    for (uint32_t i = 1; i < d->n_sets && !b->error; i++)
        add(b, &b->sets, kiln_hash_members(d->members + d->sets[i].first, d->sets[i].n), i);
    for (uint32_t i = 1; i < d->n_mappings && !b->error; i++)
        add(b, &b->mappings, kiln_hash_mapping(&d->mappings[i]), i);
    for (uint32_t i = 1; i < d->n_links && !b->error; i++)
        add(b, &b->links, kiln_hash(&d->links[i], sizeof(d->links[i])), i);
}

/* The children of arrays and maps: the list of a value is found again, as any other is. */
static void index_lists(struct kiln_builder *b, const struct kiln_attr *attrs, uint32_t n)
{
    const struct kiln_attr *nested = b->box->batch.dict.nested;

    for (uint32_t i = 0; i < n && !b->error; i++) {
        struct kiln_value value = attrs[i].value;
        uint64_t hash;

        if ((value.kind != KILN_VALUE_ARRAY && value.kind != KILN_VALUE_MAP) || value.n == 0)
            continue;
        if (!SIDE_ROOM(b, b->list_ranges, b->lists.n, lists, 1))
            return;
        hash = kiln_hash(&nested[value.first], value.n * sizeof(*nested));
        b->list_ranges[b->lists.n] = (struct kiln_range){(uint32_t)value.first, value.n};
        add(b, &b->lists, hash, b->lists.n);
    }
}

static int builder_of(struct kiln_batch *batch, struct kiln_builder **ret_builder)
{
    struct kiln_builder *b = kiln_calloc(1, sizeof(*b));

    if (!b) {
        kiln_batch_unref(batch);
        return -ENOMEM;
    }
    b->box = kiln_batch_box(batch);
    b->limits = kiln_limits_default;
    b->box->budget.limit = b->limits.memory_bytes;
    b->last_owner = batch->n_profiles ? batch->n_profiles - 1 : 0;
    kiln_arena_init(&b->scratch, &b->box->budget);
    set_capacities(b);
    index_records(b);
    index_lists(b, batch->dict.attrs, batch->dict.n_attrs);
    index_lists(b, batch->dict.nested, batch->dict.n_nested);
    *ret_builder = b;
    return 0;
}

int kiln_reopen(struct kiln_batch *batch, struct kiln_builder **ret_builder, struct kiln_err *err)
{
    struct kiln_batch *copy;
    int r;

    if (!kiln_batch_is_sole(batch)) {
        r = kiln_remap_batch(batch, NULL, NULL, &copy, err);
        kiln_batch_unref(batch);
        if (r < 0)
            return r;
        batch = copy;
    }
    r = builder_of(batch, ret_builder);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

/* ---- changes ---- */

static bool has_key(const struct kiln_batch *batch, uint32_t set, uint32_t key)
{
    return kiln_set_find(batch, set, kiln_batch_str(batch, key)) != NULL;
}

/* Keeps the keys of a list that a set has; returns how many. */
static uint32_t keep_keys(const struct kiln_batch *batch, uint32_t set, const uint32_t *from,
                          uint32_t n, uint32_t *to)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (has_key(batch, set, from[i]))
            to[kept++] = from[i];
    }
    return kept;
}

void kiln_reopened_resource(struct kiln_builder *b, uint32_t resource, uint32_t attrs)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_resource *to = &batch->resources[resource];

    if (b->error || to->attrs == attrs)
        return;
    to->attrs = attrs;
    for (uint32_t i = 0; i < to->n_entities; i++) {
        struct kiln_entity *e = &batch->entities[to->first_entity + i];
        uint32_t *ids = batch->entity_keys + e->first_key, *rest = ids + e->n_id_keys;

        e->n_id_keys = keep_keys(batch, attrs, ids, e->n_id_keys, ids);
        e->n_description_keys =
            keep_keys(batch, attrs, rest, e->n_description_keys, ids + e->n_id_keys);
    }
}

void kiln_reopened_sample(struct kiln_builder *b, uint32_t sample, uint32_t attrs)
{
    assert(sample < b->box->batch.n_samples && attrs < b->box->batch.dict.n_sets);
    b->box->batch.samples[sample].attrs = attrs;
}

void kiln_reopened_link(struct kiln_builder *b, uint32_t sample, uint32_t link)
{
    assert(sample < b->box->batch.n_samples && link < b->box->batch.dict.n_links);
    b->box->batch.samples[sample].link = link;
}

void kiln_reopened_observations(struct kiln_builder *b, uint32_t sample, const int64_t *values,
                                const uint64_t *times, uint32_t n)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_sample *s = &batch->samples[sample];
    uint32_t had = s->n * (s->has_values + s->has_times);
    uint32_t need = n * ((values != NULL) + (times != NULL));
    int64_t *at = batch->observations + s->first;

    assert(sample < batch->n_samples && need > 0 && n < 1u << 30);
    if (need > had) {
        at = kiln_builder_observations(b, need);
        if (!at)
            return;
        s->first = (uint32_t)(at - batch->observations);
        batch->n_observations += need;
    }
    s->n = n & 0x3fffffffu;
    s->has_values = values != NULL;
    s->has_times = times != NULL;
    if (values)
        memcpy(at, values, n * sizeof(*values));
    if (times)
        memcpy(at + (values ? n : 0), times, n * sizeof(*times));
}

#define NOT_ASKED UINT32_MAX

int kiln_reopened_samples(struct kiln_builder *b,
                          int (*edit)(void *context, struct kiln_builder *b, uint32_t *attrs),
                          void *context)
{
    struct kiln_batch *batch = &b->box->batch;
    uint32_t n_sets = batch->dict.n_sets;
    uint32_t *known = kiln_malloc(n_sets * sizeof(*known));
    int r = 0;

    if (!known)
        return -ENOMEM;
    memset(known, 0xff, n_sets * sizeof(*known));
    for (uint32_t i = 0; i < batch->n_samples && r == 0 && !b->error; i++) {
        struct kiln_sample *s = &batch->samples[i];
        uint32_t to = s->attrs;

        if (known[s->attrs] == NOT_ASKED) {
            r = edit(context, b, &to);
            known[s->attrs] = to;
        }
        s->attrs = known[s->attrs];
    }
    kiln_free(known);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources, scopes and profiles with what they refer to, and with them whole batches.
 *
 * Texts are brought over in a fixed order, here as everywhere: core/otlp_size.c counts on it.
 */
#include "core/bulk.h"
#include "core/remap_int.h"

/* ---- heads ---- */

struct kiln_resource kiln_remap_resource(struct kiln_remap *remap, uint32_t resource)
{
    const struct kiln_resource *from = &remap->from->resources[resource];
    struct kiln_resource to = {.dropped_attrs = from->dropped_attrs};

    to.attrs = kiln_remap_set(remap, from->attrs);
    to.schema_url = kiln_remap_string(remap, from->schema_url);
    return to;
}

struct kiln_scope kiln_remap_scope(struct kiln_remap *remap, uint32_t scope)
{
    const struct kiln_scope *from = &remap->from->scopes[scope];
    struct kiln_scope to = {.dropped_attrs = from->dropped_attrs};

    to.name = kiln_remap_string(remap, from->name);
    to.version = kiln_remap_string(remap, from->version);
    to.attrs = kiln_remap_set(remap, from->attrs);
    to.schema_url = kiln_remap_string(remap, from->schema_url);
    return to;
}

static struct kiln_value_type remap_type(struct kiln_remap *remap, struct kiln_value_type type)
{
    type.type = kiln_remap_string(remap, type.type);
    type.unit = kiln_remap_string(remap, type.unit);
    return type;
}

struct kiln_profile kiln_remap_profile(struct kiln_remap *remap, uint32_t profile)
{
    struct kiln_profile to = remap->from->profiles[profile];

    to.sample_type = remap_type(remap, to.sample_type);
    to.period_type = remap_type(remap, to.period_type);
    to.attrs = kiln_remap_set(remap, to.attrs);
    to.payload_format = 0;
    to.payload = KILN_STR_NONE;
    to.first_sample = to.n_samples = 0;
    return to;
}

void kiln_remap_payload(struct kiln_remap *remap, uint32_t profile, struct kiln_profile *head)
{
    const struct kiln_profile *from = &remap->from->profiles[profile];
    char *copy;

    if (remap->edit && remap->edit->drop_payloads)
        return;
    head->payload_format = kiln_remap_string(remap, from->payload_format);
    if (from->payload.len == 0)
        return;
    copy = kiln_builder_alloc(remap->b, from->payload.len);
    if (copy)
        head->payload = (struct kiln_str){memcpy(copy, from->payload.ptr, from->payload.len),
                                          from->payload.len};
}

/* Marks or unmarks the keys whose attributes the edit drops from a set. */
static void mark_lost_keys(struct kiln_remap *remap, uint32_t set, uint8_t mark)
{
    const struct kiln_dict *d = &remap->from->dict;
    struct kiln_range range = d->sets[set];

    for (uint32_t i = 0; remap->edit && i < range.n; i++) {
        uint32_t attr = d->members[range.first + i];

        if (remap->attrs[attr] == KILN_REMAP_DROPPED)
            remap->lost_keys[d->attrs[attr].key] = mark;
    }
}

/* The keys of an entity that an edit leaves, into the scratch; returns how many of them. */
static uint32_t remap_keys(struct kiln_remap *remap, uint32_t first, uint32_t n, uint32_t at)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t key = remap->from->entity_keys[first + i];

        if (!remap->edit || !remap->lost_keys[key])
            remap->indexes[at + kept++] = kiln_remap_string(remap, key);
    }
    return kept;
}

static void add_entity(struct kiln_remap *remap, const struct kiln_entity *e)
{
    uint64_t n_keys = (uint64_t)e->n_id_keys + e->n_description_keys;
    uint32_t schema_url = kiln_remap_string(remap, e->schema_url);
    uint32_t type = kiln_remap_string(remap, e->type);
    uint32_t n_id, n_description;

    if (!kiln_remap_scratch(remap, n_keys + 1))
        return;
    n_id = remap_keys(remap, e->first_key, e->n_id_keys, 0);
    n_description = remap_keys(remap, e->first_key + e->n_id_keys, e->n_description_keys, n_id);
    kiln_builder_add_entity(remap->b, schema_url, type, remap->indexes, n_id, remap->indexes + n_id,
                            n_description);
}

uint32_t kiln_remap_add_resource(struct kiln_remap *remap, uint32_t resource)
{
    const struct kiln_resource *from = &remap->from->resources[resource];
    struct kiln_resource head = kiln_remap_resource(remap, resource);
    uint32_t added = kiln_builder_add_resource(remap->b, &head);

    mark_lost_keys(remap, from->attrs, 1);
    for (uint32_t i = 0; i < from->n_entities; i++)
        add_entity(remap, &remap->from->entities[from->first_entity + i]);
    mark_lost_keys(remap, from->attrs, 0);
    return added;
}

/* ---- whole batches ---- */

struct kiln_counts kiln_batch_counts(const struct kiln_batch *batch)
{
    const struct kiln_dict *d = &batch->dict;

    return (struct kiln_counts){
        .strings = d->n_strings,
        .functions = d->n_functions,
        .mappings = d->n_mappings,
        .locations = d->n_locations,
        .lines = d->n_lines,
        .stacks = d->n_stacks,
        .frames = d->n_frames,
        .links = d->n_links,
        .attrs = d->n_attrs,
        .sets = d->n_sets,
        .profiles = batch->n_profiles,
        .samples = batch->n_samples,
        .observations = batch->n_observations,
    };
}

void kiln_remap_add_profile(struct kiln_remap *remap, uint32_t profile)
{
    const struct kiln_batch *from = remap->from;
    const struct kiln_profile *p = &from->profiles[profile];
    struct kiln_profile head = kiln_remap_profile(remap, profile);
    uint32_t added;

    kiln_remap_payload(remap, profile, &head);
    added = kiln_builder_add_profile(remap->b, &head);
    for (uint32_t i = 0; i < p->n_samples && !remap->b->error; i++) {
        const struct kiln_sample *s = &from->samples[p->first_sample + i];
        uint32_t stack = kiln_remap_stack(remap, s->stack);
        uint32_t attrs = kiln_remap_set(remap, s->attrs);

        kiln_builder_add_sample(remap->b, added, stack, attrs, kiln_remap_link(remap, s->link),
                                kiln_sample_values(from, s), kiln_sample_times(from, s), s->n);
    }
}

static void copy_batch(struct kiln_remap *remap)
{
    const struct kiln_batch *from = remap->from;

    for (uint32_t r = 0; r < from->n_resources; r++) {
        const struct kiln_resource *resource = &from->resources[r];

        kiln_remap_add_resource(remap, r);
        for (uint32_t s = 0; s < resource->n_scopes && !remap->b->error; s++) {
            const struct kiln_scope *scope = &from->scopes[resource->first_scope + s];
            struct kiln_scope head = kiln_remap_scope(remap, resource->first_scope + s);

            kiln_builder_add_scope(remap->b, &head);
            for (uint32_t p = 0; p < scope->n_profiles && !remap->b->error; p++)
                kiln_remap_add_profile(remap, scope->first_profile + p);
        }
    }
}

/* A time that is not known stays so. */
static uint64_t shifted(uint64_t time_ns, int64_t by)
{
    uint64_t moved = time_ns + (uint64_t)by;

    if (time_ns == 0 || (by < 0 && moved > time_ns))
        return 0;
    return by > 0 && moved < time_ns ? UINT64_MAX : moved;
}

static void shift_times(struct kiln_builder *b, int64_t by)
{
    struct kiln_batch *batch = &b->box->batch;

    for (uint32_t i = 0; i < batch->n_profiles; i++)
        batch->profiles[i].time_ns = shifted(batch->profiles[i].time_ns, by);
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        struct kiln_sample *s = &batch->samples[i];
        uint64_t *times = (uint64_t *)batch->observations + s->first + (s->has_values ? s->n : 0);

        for (uint32_t j = 0; s->has_times && j < s->n; j++)
            times[j] = shifted(times[j], by);
    }
}

/* What is left to do when all is copied. */
static void finish_edit(struct kiln_builder *b, const struct kiln_remap_edit *edit)
{
    if (edit->shift_ns)
        shift_times(b, edit->shift_ns);
    if (edit->finish)
        edit->finish(edit->context, b);
}

int kiln_remap_batch(const struct kiln_batch *batch, const struct kiln_remap_edit *edit,
                     const struct kiln_limits *limits, struct kiln_batch **ret_batch,
                     struct kiln_err *err)
{
    struct kiln_counts counts = kiln_batch_counts(batch);
    struct kiln_remap *remap = NULL;
    struct kiln_builder *b;
    int r;

    r = kiln_builder_new(limits, &b);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    kiln_builder_expect(b, &counts);
    r = kiln_remap_new(b, batch, edit, &remap);
    if (r < 0)
        kiln_builder_fail(b, r);
    if (r == 0 && !edit)
        kiln_remap_sole(remap);
    if (r == 0)
        copy_batch(remap);
    kiln_remap_free(remap);
    if (edit && !kiln_builder_error(b))
        finish_edit(b, edit);
    return kiln_builder_finish(b, ret_batch, err);
}

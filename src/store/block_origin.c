/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What profiles share is written once: the origin (resource, scope, types, period, attributes) and
 * the moment (time and duration, which all profiles of one batch have in common).  Both get numbers
 * as they are first seen.  Resources and scopes of equal content become one.
 */
#include "base/hash.h"
#include "store/block_writer.h"

#define MOMENTS_MAX (1u << 20) /* beyond, a profile has its own time beside it */

/* ---- resources ---- */

static bool same_entities(const struct kiln_batch *b, const struct kiln_resource *x,
                          const struct kiln_resource *y)
{
    for (uint32_t i = 0; i < x->n_entities; i++) {
        const struct kiln_entity *e = &b->entities[x->first_entity + i];
        const struct kiln_entity *f = &b->entities[y->first_entity + i];
        uint32_t n = e->n_id_keys + e->n_description_keys;

        if (e->schema_url != f->schema_url || e->type != f->type || e->n_id_keys != f->n_id_keys ||
            e->n_description_keys != f->n_description_keys ||
            memcmp(b->entity_keys + e->first_key, b->entity_keys + f->first_key,
                   n * sizeof(*b->entity_keys)) != 0)
            return false;
    }
    return true;
}

static bool same_resource(const struct kiln_batch *b, uint32_t i, uint32_t k)
{
    const struct kiln_resource *x = &b->resources[i], *y = &b->resources[k];

    return x->attrs == y->attrs && x->dropped_attrs == y->dropped_attrs &&
           x->schema_url == y->schema_url && x->n_entities == y->n_entities &&
           same_entities(b, x, y);
}

static uint32_t add_resource(struct kiln_block_writer *w, uint32_t index)
{
    const struct kiln_resource *resource = &w->dict->resources[index];
    uint64_t hash =
        kiln_hash_mix(resource->attrs, (uint64_t)resource->schema_url << 32 | resource->n_entities);

    for (struct kiln_probe p = kiln_intern_probe(&w->resource_index, hash);
         kiln_intern_next(&w->resource_index, &p);) {
        if (same_resource(w->dict, w->resources[p.entry], index))
            return p.entry + 1;
    }
    if (!WRITER_ROOM(w, w->resources, w->cap_resources, (uint64_t)w->n_resources + 1) ||
        !kiln_writer_ok(w, kiln_intern_add(&w->resource_index, &w->budget, hash, w->n_resources)))
        return 0;
    w->resources[w->n_resources++] = index;
    return w->n_resources;
}

static uint32_t number_resource(struct kiln_block_writer *w, uint32_t index)
{
    if (!w->resource_of[index])
        w->resource_of[index] = add_resource(w, index);
    return w->resource_of[index];
}

/* ---- scopes ---- */

static bool same_scope(const struct kiln_batch *b, uint32_t i, uint32_t k)
{
    const struct kiln_scope *x = &b->scopes[i], *y = &b->scopes[k];

    return x->name == y->name && x->version == y->version && x->attrs == y->attrs &&
           x->dropped_attrs == y->dropped_attrs && x->schema_url == y->schema_url;
}

static uint32_t add_scope(struct kiln_block_writer *w, uint32_t index)
{
    const struct kiln_scope *scope = &w->dict->scopes[index];
    uint64_t hash = kiln_hash_mix((uint64_t)scope->name << 32 | scope->version, scope->attrs);

    for (struct kiln_probe p = kiln_intern_probe(&w->scope_index, hash);
         kiln_intern_next(&w->scope_index, &p);) {
        if (same_scope(w->dict, w->scopes[p.entry], index))
            return p.entry + 1;
    }
    if (!WRITER_ROOM(w, w->scopes, w->cap_scopes, (uint64_t)w->n_scopes + 1) ||
        !kiln_writer_ok(w, kiln_intern_add(&w->scope_index, &w->budget, hash, w->n_scopes)))
        return 0;
    w->scopes[w->n_scopes++] = index;
    return w->n_scopes;
}

static uint32_t number_scope(struct kiln_block_writer *w, uint32_t index)
{
    if (!w->scope_of[index])
        w->scope_of[index] = add_scope(w, index);
    return w->scope_of[index];
}

/* ---- origins, moments ---- */

uint32_t kiln_writer_origin(struct kiln_block_writer *w, const struct kiln_block_profile *profile)
{
    const struct kiln_profile *head = &profile->head;
    struct kiln_origin origin = {
        .resource = number_resource(w, profile->resource),
        .scope = number_scope(w, profile->scope),
        .sample_type = head->sample_type,
        .period_type = head->period_type,
        .attrs = head->attrs,
        .dropped_attrs = head->dropped_attrs,
        .payload_format = head->payload_format,
        .flags = profile->flags,
        .period = head->period,
    };
    uint64_t hash = kiln_hash(&origin, sizeof(origin));

    _Static_assert(sizeof(origin) == 48, "no padding: it is hashed and compared as bytes");
    for (struct kiln_probe p = kiln_intern_probe(&w->origin_index, hash);
         kiln_intern_next(&w->origin_index, &p);) {
        if (memcmp(&w->origins[p.entry], &origin, sizeof(origin)) == 0)
            return p.entry + 1;
    }
    if (!WRITER_ROOM(w, w->origins, w->cap_origins, (uint64_t)w->n_origins + 1) ||
        !kiln_writer_ok(w, kiln_intern_add(&w->origin_index, &w->budget, hash, w->n_origins)))
        return 0;
    w->origins[w->n_origins++] = origin;
    return w->n_origins;
}

uint32_t kiln_writer_moment(struct kiln_block_writer *w, struct kiln_moment moment)
{
    uint64_t hash = kiln_hash_mix(moment.time_ns, moment.duration_ns);

    for (struct kiln_probe p = kiln_intern_probe(&w->moment_index, hash);
         kiln_intern_next(&w->moment_index, &p);) {
        if (w->moments[p.entry].time_ns == moment.time_ns &&
            w->moments[p.entry].duration_ns == moment.duration_ns)
            return p.entry + 1;
    }
    if (w->n_moments == MOMENTS_MAX ||
        !WRITER_ROOM(w, w->moments, w->cap_moments, (uint64_t)w->n_moments + 1) ||
        !kiln_writer_ok(w, kiln_intern_add(&w->moment_index, &w->budget, hash, w->n_moments)))
        return 0;
    w->moments[w->n_moments++] = moment;
    return w->n_moments;
}

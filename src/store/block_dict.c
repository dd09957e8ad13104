/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sections of attributes and heads, each a table in columns; entry n is number n + 1.
 *
 *   lists      children of the list | of all children: key, unit, kind, value
 *   attrs      key, unit, kind, value
 *   sets       members of the set | all members, as recently seen (kiln_recent_encode)
 *   links      (bytes) trace id, span id
 *   resources  attributes, dropped, schema, entities | of all entities: schema, type, identifying
 *              keys, describing keys | all keys
 *   scopes     name, version, attributes, dropped, schema
 *   origins    resource (as recently seen), scope, sample type and unit, period type and unit,
 *              period (zigzag), attributes, dropped, payload format, flags
 *   moments    time, duration: each the difference to the entry before, zigzag
 *
 * A value is a number by its kind: a string's number, 0 or 1, an integer as difference to the
 * integer before it in this column (zigzag), the bits of a double, the number of a list (0: the
 * empty one).
 */
#include "store/block_writer.h"

/* A value as its columns have it. */
static uint64_t value_code(struct kiln_block_writer *w, const struct kiln_value *value,
                           uint64_t *last)
{
    uint64_t code;

    switch (value->kind) {
    case KILN_VALUE_STRING:
    case KILN_VALUE_BYTES:
        return w->strings.of[value->str];
    case KILN_VALUE_ARRAY:
    case KILN_VALUE_MAP:
        return value->n ? w->lists.of[value->first + 1] : 0;
    case KILN_VALUE_INT:
        code = kiln_zigzag_diff(value->bits, *last);
        *last = value->bits;
        return code;
    default:
        return value->bits;
    }
}

/* An attribute, or child of a list, in the four columns from `column` on. */
static void put_attr(struct kiln_block_writer *w, uint32_t column, const struct kiln_attr *attr,
                     uint64_t *last)
{
    kiln_writer_put(w, column, w->strings.of[attr->key]);
    kiln_writer_put(w, column + 1, w->strings.of[attr->unit]);
    kiln_writer_put(w, column + 2, attr->value.kind);
    kiln_writer_put(w, column + 3, value_code(w, &attr->value, last));
}

static void put_lists(struct kiln_block_writer *w)
{
    uint64_t last = 0;

    kiln_writer_section(w, KILN_SECTION_LISTS, 0);
    for (uint32_t i = 0; i < w->lists.n && !w->error; i++) {
        const struct kiln_attr *children = w->dict->dict.nested + w->lists.order[i] - 1;

        kiln_writer_put(w, 0, w->list_sizes[i]);
        for (uint32_t k = 0; k < w->list_sizes[i]; k++)
            put_attr(w, 1, &children[k], &last);
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_attrs(struct kiln_block_writer *w)
{
    uint64_t last = 0;

    kiln_writer_section(w, KILN_SECTION_ATTRS, 0);
    for (uint32_t i = 0; i < w->attrs.n && !w->error; i++) {
        put_attr(w, 0, &w->dict->dict.attrs[w->attrs.order[i]], &last);
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_sets(struct kiln_block_writer *w)
{
    const struct kiln_dict *d = &w->dict->dict;
    uint32_t next = 0;

    kiln_writer_section(w, KILN_SECTION_SETS, 0);
    for (uint32_t i = 0; i < w->sets.n && !w->error; i++) {
        struct kiln_range set = d->sets[w->sets.order[i]];

        kiln_writer_put(w, 0, set.n);
        for (uint32_t k = 0; k < set.n; k++)
            kiln_writer_put(w, 1,
                            kiln_recent_encode(w->attrs.of[d->members[set.first + k]], &next));
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_links(struct kiln_block_writer *w)
{
    kiln_writer_section(w, KILN_SECTION_LINKS, 0);
    for (uint32_t i = 0; i < w->links.n && !w->error; i++) {
        kiln_buf_add(&w->bytes[0], &w->dict->dict.links[w->links.order[i]],
                     sizeof(struct kiln_link));
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_entity(struct kiln_block_writer *w, const struct kiln_entity *e)
{
    kiln_writer_put(w, 4, w->strings.of[e->schema_url]);
    kiln_writer_put(w, 5, w->strings.of[e->type]);
    kiln_writer_put(w, 6, e->n_id_keys);
    kiln_writer_put(w, 7, e->n_description_keys);
    for (uint32_t i = 0; i < e->n_id_keys + e->n_description_keys; i++)
        kiln_writer_put(w, 8, w->strings.of[w->dict->entity_keys[e->first_key + i]]);
}

static void put_resources(struct kiln_block_writer *w)
{
    kiln_writer_section(w, KILN_SECTION_RESOURCES, 0);
    for (uint32_t i = 0; i < w->n_resources && !w->error; i++) {
        const struct kiln_resource *r = &w->dict->resources[w->resources[i]];

        kiln_writer_put(w, 0, w->sets.of[r->attrs]);
        kiln_writer_put(w, 1, r->dropped_attrs);
        kiln_writer_put(w, 2, w->strings.of[r->schema_url]);
        kiln_writer_put(w, 3, r->n_entities);
        for (uint32_t k = 0; k < r->n_entities; k++)
            put_entity(w, &w->dict->entities[r->first_entity + k]);
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_scopes(struct kiln_block_writer *w)
{
    kiln_writer_section(w, KILN_SECTION_SCOPES, 0);
    for (uint32_t i = 0; i < w->n_scopes && !w->error; i++) {
        const struct kiln_scope *s = &w->dict->scopes[w->scopes[i]];

        kiln_writer_put(w, 0, w->strings.of[s->name]);
        kiln_writer_put(w, 1, w->strings.of[s->version]);
        kiln_writer_put(w, 2, w->sets.of[s->attrs]);
        kiln_writer_put(w, 3, s->dropped_attrs);
        kiln_writer_put(w, 4, w->strings.of[s->schema_url]);
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

static void put_origin(struct kiln_block_writer *w, const struct kiln_origin *o, uint32_t *next)
{
    kiln_writer_put(w, 0, kiln_recent_encode(o->resource, next));
    kiln_writer_put(w, 1, o->scope);
    kiln_writer_put(w, 2, w->strings.of[o->sample_type.type]);
    kiln_writer_put(w, 3, w->strings.of[o->sample_type.unit]);
    kiln_writer_put(w, 4, w->strings.of[o->period_type.type]);
    kiln_writer_put(w, 5, w->strings.of[o->period_type.unit]);
    kiln_writer_put(w, 6, kiln_zigzag(o->period));
    kiln_writer_put(w, 7, w->sets.of[o->attrs]);
    kiln_writer_put(w, 8, o->dropped_attrs);
    kiln_writer_put(w, 9, w->strings.of[o->payload_format]);
    kiln_writer_put(w, 10, o->flags);
    kiln_writer_entry(w);
}

static void put_origins(struct kiln_block_writer *w)
{
    uint32_t next = 0;

    kiln_writer_section(w, KILN_SECTION_ORIGINS, 0);
    for (uint32_t i = 0; i < w->n_origins && !w->error; i++)
        put_origin(w, &w->origins[i], &next);
    kiln_writer_flush(w);
}

static void put_moments(struct kiln_block_writer *w)
{
    struct kiln_moment last = {0};

    kiln_writer_section(w, KILN_SECTION_MOMENTS, 0);
    for (uint32_t i = 0; i < w->n_moments && !w->error; i++) {
        kiln_writer_put(w, 0, kiln_zigzag_diff(w->moments[i].time_ns, last.time_ns));
        kiln_writer_put(w, 1, kiln_zigzag_diff(w->moments[i].duration_ns, last.duration_ns));
        last = w->moments[i];
        kiln_writer_entry(w);
    }
    kiln_writer_flush(w);
}

void kiln_writer_put_dict(struct kiln_block_writer *w)
{
    if (w->error)
        return;
    put_lists(w);
    put_attrs(w);
    put_sets(w);
    put_links(w);
    put_resources(w);
    put_scopes(w);
    put_origins(w);
    put_moments(w);
}

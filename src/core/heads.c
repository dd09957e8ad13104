/* SPDX-License-Identifier: Apache-2.0 */
#include "core/heads.h"

static uint32_t brought(struct kiln_remap *remap, uint32_t string)
{
    return remap ? kiln_remap_string(remap, string) : string;
}

static void add_entity(struct kiln_keys *keys, struct kiln_builder *b, struct kiln_remap *remap,
                       const struct kiln_batch *from, const struct kiln_entity *e)
{
    kiln_keys_add(keys, b, brought(remap, e->schema_url));
    kiln_keys_add(keys, b, brought(remap, e->type));
    kiln_keys_add(keys, b, e->n_id_keys);
    kiln_keys_add(keys, b, e->n_description_keys);
    for (uint32_t i = 0; i < e->n_id_keys + e->n_description_keys; i++)
        kiln_keys_add(keys, b, brought(remap, from->entity_keys[e->first_key + i]));
}

uint32_t kiln_heads_resource(struct kiln_keys *keys, struct kiln_builder *b,
                             struct kiln_remap *remap, const struct kiln_batch *from,
                             uint32_t resource, const struct kiln_resource *head)
{
    const struct kiln_resource *source = &from->resources[resource];

    kiln_keys_add(keys, b, head->attrs);
    kiln_keys_add(keys, b, head->schema_url);
    for (uint32_t i = 0; i < source->n_entities; i++)
        add_entity(keys, b, remap, from, &from->entities[source->first_entity + i]);
    return kiln_keys_take(keys, b);
}

uint32_t kiln_heads_scope(struct kiln_keys *keys, struct kiln_builder *b, uint32_t resource,
                          const struct kiln_scope *head)
{
    kiln_keys_add(keys, b, resource);
    kiln_keys_add(keys, b, head->name);
    kiln_keys_add(keys, b, head->version);
    kiln_keys_add(keys, b, head->attrs);
    kiln_keys_add(keys, b, head->schema_url);
    return kiln_keys_take(keys, b);
}

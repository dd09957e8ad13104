/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heads - which resources and scopes of several batches are the same: those that differ in nothing
 * but what is in them.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_HEADS_H
#define KILN_CORE_HEADS_H

#include "core/keys.h"
#include "core/remap.h"

/* A list of entities in a resource's key: these numbers, then its keys. */
enum {
    KILN_ENTITY_URL,
    KILN_ENTITY_TYPE,
    KILN_ENTITY_N_ID,
    KILN_ENTITY_N_DESCRIPTION,
    KILN_ENTITY_KEYS
};
#define KILN_RESOURCE_KEY_HEAD 2u /* attributes, schema URL; then the entities */

/*
 * The number of a resource of `from`, whose head is brought over already: that of the first one
 * like it, or the next one.  `remap` NULL: `from` is what the builder has.
 */
uint32_t kiln_heads_resource(struct kiln_keys *keys, struct kiln_builder *b,
                             struct kiln_remap *remap, const struct kiln_batch *from,
                             uint32_t resource, const struct kiln_resource *head);
/* The same of a scope of the resource of this number. */
uint32_t kiln_heads_scope(struct kiln_keys *keys, struct kiln_builder *b, uint32_t resource,
                          const struct kiln_scope *head);

#endif /* KILN_CORE_HEADS_H */

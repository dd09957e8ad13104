/* SPDX-License-Identifier: Apache-2.0 */
#include "core/part.h"

#include "core/remap.h"

int kiln_part_scope(const struct kiln_batch *batch, uint32_t resource, uint32_t scope,
                    struct kiln_batch **ret_part, struct kiln_err *err)
{
    const struct kiln_scope *from = &batch->scopes[scope];
    struct kiln_remap *remap = NULL;
    struct kiln_scope head;
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    r = kiln_remap_new(b, batch, NULL, &remap);
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    kiln_remap_add_resource(remap, resource);
    head = kiln_remap_scope(remap, scope);
    kiln_builder_add_scope(b, &head);
    for (uint32_t i = 0; i < from->n_profiles; i++)
        kiln_remap_add_profile(remap, from->first_profile + i);
    kiln_remap_free(remap);
    return kiln_builder_finish(b, ret_part, err);
}

bool kiln_part_is_empty(const struct kiln_batch *batch, uint32_t scope)
{
    const struct kiln_scope *s = &batch->scopes[scope];

    for (uint32_t i = 0; i < s->n_profiles; i++)
        if (batch->profiles[s->first_profile + i].n_samples)
            return false;
    return true;
}

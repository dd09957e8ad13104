/* SPDX-License-Identifier: Apache-2.0 */
#include "core/part.h"

#include "core/remap.h"

static int begin(const struct kiln_batch *batch, struct kiln_builder **ret_builder,
                 struct kiln_remap **ret_remap)
{
    int r = kiln_builder_new(NULL, ret_builder);

    if (r < 0)
        return r;
    r = kiln_remap_new(*ret_builder, batch, NULL, ret_remap);
    if (r < 0)
        kiln_builder_free(*ret_builder);
    return r;
}

/* The scope with `n` of its profiles. */
static int finish(struct kiln_builder *b, struct kiln_remap *remap, uint32_t scope, uint32_t first,
                  uint32_t n, struct kiln_batch **ret_part, struct kiln_err *err)
{
    struct kiln_scope head = kiln_remap_scope(remap, scope);

    kiln_builder_add_scope(b, &head);
    for (uint32_t i = 0; i < n; i++)
        kiln_remap_add_profile(remap, first + i);
    kiln_remap_free(remap);
    return kiln_builder_finish(b, ret_part, err);
}

int kiln_part_scope(const struct kiln_batch *batch, uint32_t resource, uint32_t scope,
                    struct kiln_batch **ret_part, struct kiln_err *err)
{
    const struct kiln_scope *from = &batch->scopes[scope];
    struct kiln_remap *remap;
    struct kiln_builder *b;
    int r = begin(batch, &b, &remap);

    if (r < 0)
        return r;
    kiln_remap_add_resource(remap, resource);
    return finish(b, remap, scope, from->first_profile, from->n_profiles, ret_part, err);
}

int kiln_part_profile(const struct kiln_batch *batch, uint32_t scope, uint32_t profile,
                      struct kiln_batch **ret_part, struct kiln_err *err)
{
    struct kiln_remap *remap;
    struct kiln_builder *b;
    int r = begin(batch, &b, &remap);

    if (r < 0)
        return r;
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    return finish(b, remap, scope, profile, 1, ret_part, err);
}

bool kiln_part_is_empty(const struct kiln_batch *batch, uint32_t scope)
{
    const struct kiln_scope *s = &batch->scopes[scope];

    for (uint32_t i = 0; i < s->n_profiles; i++)
        if (batch->profiles[s->first_profile + i].n_samples)
            return false;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pick.h"

#include "core/remap.h"

struct pick {
    const struct kiln_batch *from;
    const uint8_t *no_profile, *no_sample;
    struct kiln_builder *b;
    struct kiln_remap *remap;
    bool has_resource, has_scope; /* the heads of what is at hand were brought over */
};

static bool has_samples(const struct pick *p, const struct kiln_profile *profile)
{
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        if (!p->no_sample[profile->first_sample + i])
            return true;
    }
    return profile->n_samples == 0;
}

static void add_heads(struct pick *p, uint32_t resource, uint32_t scope)
{
    struct kiln_scope head;

    if (!p->has_resource)
        kiln_remap_add_resource(p->remap, resource);
    p->has_resource = true;
    if (!p->has_scope) {
        head = kiln_remap_scope(p->remap, scope);
        kiln_builder_add_scope(p->b, &head);
    }
    p->has_scope = true;
}

static void add_profile(struct pick *p, uint32_t index)
{
    const struct kiln_profile *profile = &p->from->profiles[index];
    struct kiln_profile head = kiln_remap_profile(p->remap, index);
    uint32_t added;

    kiln_remap_payload(p->remap, index, &head);
    added = kiln_builder_add_profile(p->b, &head);
    for (uint32_t i = 0; i < profile->n_samples && !kiln_builder_error(p->b); i++) {
        const struct kiln_sample *s = &p->from->samples[profile->first_sample + i];
        uint32_t stack, attrs;

        if (p->no_sample[profile->first_sample + i])
            continue;
        stack = kiln_remap_stack(p->remap, s->stack);
        attrs = kiln_remap_set(p->remap, s->attrs);
        kiln_builder_add_sample(p->b, added, stack, attrs, kiln_remap_link(p->remap, s->link),
                                kiln_sample_values(p->from, s), kiln_sample_times(p->from, s),
                                s->n);
    }
}

static void walk(struct pick *p)
{
    for (uint32_t r = 0; r < p->from->n_resources; r++) {
        const struct kiln_resource *resource = &p->from->resources[r];

        p->has_resource = false;
        for (uint32_t s = resource->first_scope; s < resource->first_scope + resource->n_scopes;
             s++) {
            const struct kiln_scope *scope = &p->from->scopes[s];

            p->has_scope = false;
            for (uint32_t i = scope->first_profile;
                 i < scope->first_profile + scope->n_profiles && !kiln_builder_error(p->b); i++) {
                if (p->no_profile[i] || !has_samples(p, &p->from->profiles[i]))
                    continue;
                add_heads(p, r, s);
                add_profile(p, i);
            }
        }
    }
}

int kiln_pick(const struct kiln_batch *batch, const uint8_t *without_profiles,
              const uint8_t *without_samples, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct pick p = {.from = batch, .no_profile = without_profiles, .no_sample = without_samples};
    int r = kiln_builder_new(NULL, &p.b);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    r = kiln_remap_new(p.b, batch, NULL, &p.remap);
    if (r == 0) {
        kiln_remap_sole(p.remap);
        walk(&p);
    } else {
        kiln_builder_fail(p.b, r);
    }
    kiln_remap_free(p.remap);
    return kiln_builder_finish(p.b, ret_batch, err);
}

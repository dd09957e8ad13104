/* SPDX-License-Identifier: Apache-2.0 */
#include "core/concat.h"

#include "core/coalesce.h"
#include "core/remap.h"

/* Dictionaries are likely to say much the same, samples are all kept. */
static void expect(struct kiln_builder *b, struct kiln_batch *const *batches, uint32_t n)
{
    struct kiln_counts most = {0}, total = {0};

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_counts counts = kiln_batch_counts(batches[i]);

        total.profiles += counts.profiles;
        total.samples += counts.samples;
        total.observations += counts.observations;
        if (counts.frames + counts.strings > most.frames + most.strings)
            most = counts;
    }
    most.profiles = total.profiles;
    most.samples = total.samples;
    most.observations = total.observations;
    kiln_builder_expect(b, &most);
}

static void add_scope(struct kiln_builder *b, struct kiln_remap *remap,
                      const struct kiln_batch *from, uint32_t scope)
{
    struct kiln_scope head = kiln_remap_scope(remap, scope);
    const struct kiln_scope *source = &from->scopes[scope];

    kiln_builder_add_scope(b, &head);
    for (uint32_t i = 0; i < source->n_profiles && !kiln_builder_error(b); i++)
        kiln_remap_add_profile(remap, source->first_profile + i);
}

static void add_batch(struct kiln_builder *b, const struct kiln_batch *from)
{
    struct kiln_remap *remap;
    int r = kiln_remap_new(b, from, NULL, &remap);

    if (r < 0) {
        kiln_builder_fail(b, r);
        return;
    }
    for (uint32_t i = 0; i < from->n_resources && !kiln_builder_error(b); i++) {
        const struct kiln_resource *source = &from->resources[i];

        kiln_remap_add_resource(remap, i);
        for (uint32_t s = 0; s < source->n_scopes && !kiln_builder_error(b); s++)
            add_scope(b, remap, from, source->first_scope + s);
    }
    kiln_remap_free(remap);
}

int kiln_concat(struct kiln_batch *const *batches, uint32_t n, const struct kiln_limits *limits,
                struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_builder *b;
    int r = kiln_builder_new(limits, &b);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    expect(b, batches, n);
    for (uint32_t i = 0; i < n && !kiln_builder_error(b); i++)
        add_batch(b, batches[i]);
    if (!kiln_builder_error(b))
        kiln_builder_coalesce(b);
    return kiln_builder_finish(b, ret_batch, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First the tree: which profiles of which batches come below which scope.  Then all that is in it,
 * scope by scope, each profile through the remap of its batch.
 */
#include "core/concat.h"

#include "core/heads.h"

#define NONE UINT32_MAX

/* A chain in the order of arrival, by index. */
struct chain {
    uint32_t first, last;
};

struct resource {
    uint32_t batch, index; /* the first of them */
    uint32_t dropped_attrs;
    struct chain scopes;
};

struct scope {
    struct kiln_scope head;
    struct chain profiles;
    uint32_t next;
};

struct profile {
    uint32_t batch, index, next;
};

struct concat {
    struct kiln_builder *b;
    struct kiln_batch *const *batches;
    uint32_t n;
    struct kiln_remap **remaps; /* of the batches */
    struct kiln_keys resource_keys, scope_keys;
    struct resource *resources;
    struct scope *scopes;
    struct profile *profiles;
    uint32_t n_resources, n_scopes, n_profiles;
    uint32_t cap_remaps, cap_resources, cap_scopes, cap_profiles;
};

#define SPACE(c, array, need)                                                                      \
    kiln_builder_room((c)->b, (void **)&(c)->array, &(c)->cap_##array, (need), sizeof(*(c)->array))

/* ---- the tree ---- */

/* True where it is the first of its chain; else its place is to be noted in the last one. */
static bool link_in(struct chain *chain, uint32_t entry, uint32_t *ret_last)
{
    bool first = chain->first == NONE;

    *ret_last = chain->last;
    if (first)
        chain->first = entry;
    chain->last = entry;
    return first;
}

static uint32_t find_resource(struct concat *c, uint32_t batch, uint32_t index)
{
    struct kiln_remap *remap = c->remaps[batch];
    struct kiln_resource head = kiln_remap_resource(remap, index);
    uint32_t found =
        kiln_heads_resource(&c->resource_keys, c->b, remap, c->batches[batch], index, &head);

    if (found == c->n_resources && SPACE(c, resources, (uint64_t)found + 1))
        c->resources[c->n_resources++] = (struct resource){batch, index, 0, {NONE, NONE}};
    if (c->b->error)
        return NONE;
    if (head.dropped_attrs > c->resources[found].dropped_attrs)
        c->resources[found].dropped_attrs = head.dropped_attrs;
    return found;
}

static uint32_t find_scope(struct concat *c, uint32_t resource, uint32_t batch, uint32_t index)
{
    struct kiln_scope head = kiln_remap_scope(c->remaps[batch], index);
    uint32_t found = kiln_heads_scope(&c->scope_keys, c->b, resource, &head);
    uint32_t last;

    if (found == c->n_scopes && SPACE(c, scopes, (uint64_t)found + 1)) {
        c->scopes[c->n_scopes++] = (struct scope){head, {NONE, NONE}, NONE};
        if (!link_in(&c->resources[resource].scopes, found, &last))
            c->scopes[last].next = found;
    }
    if (c->b->error)
        return NONE;
    if (head.dropped_attrs > c->scopes[found].head.dropped_attrs)
        c->scopes[found].head.dropped_attrs = head.dropped_attrs;
    return found;
}

static void add_profiles(struct concat *c, uint32_t scope, uint32_t batch,
                         const struct kiln_scope *source)
{
    uint32_t last;

    if (!SPACE(c, profiles, (uint64_t)c->n_profiles + source->n_profiles))
        return;
    for (uint32_t i = 0; i < source->n_profiles; i++) {
        c->profiles[c->n_profiles] = (struct profile){batch, source->first_profile + i, NONE};
        if (!link_in(&c->scopes[scope].profiles, c->n_profiles, &last))
            c->profiles[last].next = c->n_profiles;
        c->n_profiles++;
    }
}

static void take_tree(struct concat *c, uint32_t batch)
{
    const struct kiln_batch *from = c->batches[batch];

    for (uint32_t r = 0; r < from->n_resources && !c->b->error; r++) {
        const struct kiln_resource *source = &from->resources[r];
        uint32_t resource = find_resource(c, batch, r);

        for (uint32_t s = 0; s < source->n_scopes && !c->b->error; s++) {
            uint32_t scope = find_scope(c, resource, batch, source->first_scope + s);

            if (scope != NONE)
                add_profiles(c, scope, batch, &from->scopes[source->first_scope + s]);
        }
    }
}

/* ---- what is in it ---- */

static void lay_out_scope(struct concat *c, const struct scope *scope)
{
    kiln_builder_add_scope(c->b, &scope->head);
    for (uint32_t p = scope->profiles.first; p != NONE && !c->b->error; p = c->profiles[p].next)
        kiln_remap_add_profile(c->remaps[c->profiles[p].batch], c->profiles[p].index);
}

static void lay_out(struct concat *c)
{
    for (uint32_t r = 0; r < c->n_resources && !c->b->error; r++) {
        const struct resource *resource = &c->resources[r];
        uint32_t added = kiln_remap_add_resource(c->remaps[resource->batch], resource->index);

        if (c->b->error)
            return;
        kiln_builder_resource(c->b, added)->dropped_attrs = resource->dropped_attrs;
        for (uint32_t s = resource->scopes.first; s != NONE && !c->b->error; s = c->scopes[s].next)
            lay_out_scope(c, &c->scopes[s]);
    }
}

/* ---- all of it ---- */

/* Dictionaries are likely to say much the same, samples are all kept. */
static void expect(struct concat *c)
{
    struct kiln_counts most = {0}, total = {0};

    for (uint32_t i = 0; i < c->n; i++) {
        struct kiln_counts counts = kiln_batch_counts(c->batches[i]);

        total.profiles += counts.profiles;
        total.samples += counts.samples;
        total.observations += counts.observations;
        if (counts.frames + counts.strings > most.frames + most.strings)
            most = counts;
    }
    most.profiles = total.profiles;
    most.samples = total.samples;
    most.observations = total.observations;
    kiln_builder_expect(c->b, &most);
}

static void take_all(struct concat *c)
{
    int r = 0;

    if (!SPACE(c, remaps, c->n))
        return;
    memset(c->remaps, 0, c->n * sizeof(*c->remaps));
    expect(c);
    for (uint32_t i = 0; i < c->n && r == 0 && !c->b->error; i++) {
        r = kiln_remap_new(c->b, c->batches[i], NULL, &c->remaps[i]);
        if (r == 0)
            take_tree(c, i);
        else
            kiln_builder_fail(c->b, r);
    }
    if (!c->b->error)
        lay_out(c);
}

static void concat_done(struct concat *c)
{
    struct kiln_budget *budget = &c->b->box->budget;

    for (uint32_t i = 0; c->remaps && i < c->n; i++)
        kiln_remap_free(c->remaps[i]);
    kiln_keys_done(&c->resource_keys, c->b);
    kiln_keys_done(&c->scope_keys, c->b);
#define FREE(name) kiln_array_free(budget, (void **)&c->name, &c->cap_##name, sizeof(*c->name))
    FREE(remaps);
    FREE(resources);
    FREE(scopes);
    FREE(profiles);
#undef FREE
}

int kiln_concat(struct kiln_batch *const *batches, uint32_t n, const struct kiln_limits *limits,
                struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct concat c = {.batches = batches, .n = n};
    int r = kiln_builder_new(limits, &c.b);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    take_all(&c);
    concat_done(&c);
    return kiln_builder_finish(c.b, ret_batch, err);
}

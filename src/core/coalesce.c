/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First the tree: which profiles come below which scope.  Then, where two heads were equal, what
 * was built is laid out anew, from a copy and in its own arrays: it has become no larger.
 */
#include "core/coalesce.h"

#include <assert.h>

#include "core/heads.h"

#define NONE UINT32_MAX

/* A chain in the order of arrival, by index. */
struct chain {
    uint32_t first, last;
};

struct resource {
    struct kiln_resource head;
    struct chain scopes;
};

struct scope {
    struct kiln_scope head;
    struct chain profiles;
    uint32_t next;
};

struct tree {
    struct kiln_builder *b;
    struct kiln_keys resource_keys, scope_keys;
    struct resource *resources;
    struct scope *scopes;
    uint32_t *next_profile; /* of each: the next one of its scope */
    uint32_t n_resources, n_scopes;
};

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

static void keep_larger(uint32_t *count, uint32_t other)
{
    *count = *count > other ? *count : other;
}

static uint32_t find_resource(struct tree *t, const struct kiln_resource *head, uint32_t index)
{
    uint32_t found =
        kiln_heads_resource(&t->resource_keys, t->b, NULL, &t->b->box->batch, index, head);

    if (found == t->n_resources)
        t->resources[t->n_resources++] = (struct resource){*head, {NONE, NONE}};
    keep_larger(&t->resources[found].head.dropped_attrs, head->dropped_attrs);
    return found;
}

static uint32_t find_scope(struct tree *t, uint32_t resource, const struct kiln_scope *head)
{
    uint32_t found = kiln_heads_scope(&t->scope_keys, t->b, resource, head);
    uint32_t last;

    if (found == t->n_scopes) {
        t->scopes[t->n_scopes++] = (struct scope){*head, {NONE, NONE}, NONE};
        if (!link_in(&t->resources[resource].scopes, found, &last))
            t->scopes[last].next = found;
    }
    keep_larger(&t->scopes[found].head.dropped_attrs, head->dropped_attrs);
    return found;
}

static void add_profiles(struct tree *t, uint32_t scope, const struct kiln_scope *from)
{
    uint32_t last;

    for (uint32_t p = from->first_profile; p < from->first_profile + from->n_profiles; p++) {
        t->next_profile[p] = NONE;
        if (!link_in(&t->scopes[scope].profiles, p, &last))
            t->next_profile[last] = p;
    }
}

static void find_all(struct tree *t)
{
    const struct kiln_batch *batch = &t->b->box->batch;

    for (uint32_t i = 0; i < batch->n_resources && !t->b->error; i++) {
        const struct kiln_resource *from = &batch->resources[i];
        uint32_t resource = find_resource(t, from, i);

        for (uint32_t k = 0; k < from->n_scopes && !t->b->error; k++) {
            const struct kiln_scope *scope = &batch->scopes[from->first_scope + k];

            add_profiles(t, find_scope(t, resource, scope), scope);
        }
    }
}

/* ---- laying out ---- */

/* What is read while the batch is written. */
struct copy {
    const struct kiln_profile *profiles;
    const struct kiln_sample *samples;
};

static void put_profile(struct kiln_batch *batch, const struct copy *from, uint32_t profile)
{
    const struct kiln_profile *p = &from->profiles[profile];

    batch->profiles[batch->n_profiles++] = *p;
    if (p->n_samples)
        memcpy(batch->samples + batch->n_samples, from->samples + p->first_sample,
               p->n_samples * sizeof(*from->samples));
    batch->n_samples += p->n_samples;
}

static void put_scope(const struct tree *t, const struct copy *from, const struct scope *scope)
{
    struct kiln_batch *batch = &t->b->box->batch;
    struct kiln_scope *to = &batch->scopes[batch->n_scopes++];

    *to = scope->head;
    to->first_profile = batch->n_profiles;
    for (uint32_t p = scope->profiles.first; p != NONE; p = t->next_profile[p])
        put_profile(batch, from, p);
    to->n_profiles = batch->n_profiles - to->first_profile;
}

static void lay_out(const struct tree *t, const struct copy *from)
{
    struct kiln_batch *batch = &t->b->box->batch;

    batch->n_resources = t->n_resources;
    batch->n_scopes = batch->n_profiles = batch->n_samples = 0;
    for (uint32_t i = 0; i < t->n_resources; i++) {
        const struct resource *resource = &t->resources[i];
        struct kiln_resource *to = &batch->resources[i];

        *to = resource->head;
        to->first_scope = batch->n_scopes;
        for (uint32_t s = resource->scopes.first; s != NONE; s = t->scopes[s].next)
            put_scope(t, from, &t->scopes[s]);
        to->n_scopes = batch->n_scopes - to->first_scope;
    }
}

/* ---- all of it ---- */

static void *copy_of(struct kiln_builder *b, const void *array, size_t bytes)
{
    void *copy = kiln_builder_scratch(b, bytes ? bytes : 1);

    return copy && bytes ? memcpy(copy, array, bytes) : copy;
}

/* Samples follow each other as their profiles do: where those of each begin is a sum. */
static void place_samples(struct kiln_batch *batch)
{
    uint32_t at = 0;

    for (uint32_t p = 0; p < batch->n_profiles; p++) {
        batch->profiles[p].first_sample = at;
        at += batch->profiles[p].n_samples;
    }
}

static void lay_out_anew(struct tree *t)
{
    struct kiln_batch *batch = &t->b->box->batch;
    struct copy from;

    place_samples(batch);
    from.profiles = copy_of(t->b, batch->profiles, batch->n_profiles * sizeof(*batch->profiles));
    from.samples = copy_of(t->b, batch->samples, batch->n_samples * sizeof(*batch->samples));
    if (!t->b->error)
        lay_out(t, &from);
}

void kiln_builder_coalesce(struct kiln_builder *b)
{
    const struct kiln_batch *batch = &b->box->batch;
    struct tree t = {.b = b};

    assert(!b->owners);
    t.resources = kiln_builder_scratch(b, (batch->n_resources + 1) * sizeof(*t.resources));
    t.scopes = kiln_builder_scratch(b, (batch->n_scopes + 1) * sizeof(*t.scopes));
    t.next_profile = kiln_builder_scratch(b, (batch->n_profiles + 1) * sizeof(*t.next_profile));
    if (!b->error)
        find_all(&t);
    if (!b->error && (t.n_resources < batch->n_resources || t.n_scopes < batch->n_scopes))
        lay_out_anew(&t);
    kiln_keys_done(&t.resource_keys, b);
    kiln_keys_done(&t.scope_keys, b);
}

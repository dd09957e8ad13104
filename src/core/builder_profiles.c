/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples usually come profile by profile, and then they already lie as the batch wants them.  A
 * decoder that meets several profiles in turn may add them in any order: from the first sample that
 * steps back, `owners` notes the profile of each, and finish sorts them, stably and in linear time.
 */
#include <assert.h>
#include <errno.h>

#include "base/sat.h"
#include "core/bulk.h"

uint32_t kiln_builder_add_resource(struct kiln_builder *b, const struct kiln_resource *resource)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_resource *added;

    if (!ROOM(b, batch->resources, batch->n_resources, resources, 1))
        return 0;
    added = &batch->resources[batch->n_resources];
    *added = *resource;
    added->first_entity = batch->n_entities;
    added->n_entities = 0;
    added->first_scope = batch->n_scopes;
    added->n_scopes = 0;
    return batch->n_resources++;
}

uint32_t kiln_builder_add_scope(struct kiln_builder *b, const struct kiln_scope *scope)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_scope *added;

    if (!ROOM(b, batch->scopes, batch->n_scopes, scopes, 1))
        return 0;
    assert(batch->n_resources > 0);
    batch->resources[batch->n_resources - 1].n_scopes++;
    added = &batch->scopes[batch->n_scopes];
    *added = *scope;
    added->first_profile = batch->n_profiles;
    added->n_profiles = 0;
    return batch->n_scopes++;
}

uint32_t kiln_builder_add_profile(struct kiln_builder *b, const struct kiln_profile *profile)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_profile *added;

    if (!ROOM(b, batch->profiles, batch->n_profiles, profiles, 1))
        return 0;
    assert(batch->n_scopes > 0);
    batch->scopes[batch->n_scopes - 1].n_profiles++;
    added = &batch->profiles[batch->n_profiles];
    *added = *profile;
    added->first_sample = 0;
    added->n_samples = 0;
    return batch->n_profiles++;
}

struct kiln_profile *kiln_builder_profile(struct kiln_builder *b, uint32_t profile)
{
    assert(profile < b->box->batch.n_profiles);
    return &b->box->batch.profiles[profile];
}

struct kiln_scope *kiln_builder_scope(struct kiln_builder *b, uint32_t scope)
{
    assert(scope < b->box->batch.n_scopes);
    return &b->box->batch.scopes[scope];
}

struct kiln_resource *kiln_builder_resource(struct kiln_builder *b, uint32_t resource)
{
    assert(resource < b->box->batch.n_resources);
    return &b->box->batch.resources[resource];
}

void kiln_builder_drop_profile(struct kiln_builder *b)
{
    struct kiln_batch *batch = &b->box->batch;
    uint32_t n;

    assert(batch->n_profiles > 0 && !b->owners);
    n = batch->profiles[--batch->n_profiles].n_samples;
    batch->scopes[batch->n_scopes - 1].n_profiles--;
    if (n)
        batch->n_observations = batch->samples[batch->n_samples - n].first;
    batch->n_samples -= n;
    b->last_owner = batch->n_profiles ? batch->n_profiles - 1 : 0;
}

void kiln_builder_add_entity(struct kiln_builder *b, uint32_t schema_url, uint32_t type,
                             const uint32_t *id_keys, uint32_t n_id_keys,
                             const uint32_t *description_keys, uint32_t n_description_keys)
{
    struct kiln_batch *batch = &b->box->batch;
    uint32_t *keys;

    if (!ROOM(b, batch->entities, batch->n_entities, entities, 1) ||
        !ROOM(b, batch->entity_keys, batch->n_entity_keys, entity_keys,
              (uint64_t)n_id_keys + n_description_keys))
        return;
    assert(batch->n_resources > 0);
    batch->resources[batch->n_resources - 1].n_entities++;
    batch->entities[batch->n_entities++] = (struct kiln_entity){
        .schema_url = schema_url,
        .type = type,
        .first_key = batch->n_entity_keys,
        .n_id_keys = n_id_keys,
        .n_description_keys = n_description_keys,
    };
    keys = batch->entity_keys + batch->n_entity_keys;
    if (n_id_keys)
        memcpy(keys, id_keys, n_id_keys * sizeof(*keys));
    if (n_description_keys)
        memcpy(keys + n_id_keys, description_keys, n_description_keys * sizeof(*keys));
    batch->n_entity_keys += n_id_keys + n_description_keys;
}

/* ---- samples ---- */

/* From here on `owners` says whose each sample is: fills it in for the samples there are. */
static bool start_owners(struct kiln_builder *b)
{
    struct kiln_batch *batch = &b->box->batch;
    uint32_t at = 0;

    if (!SIDE_ROOM(b, b->owners, 0, owners, (uint64_t)batch->n_samples + 1))
        return false;
    assert(b->owners);
    for (uint32_t p = 0; p < batch->n_profiles; p++) {
        for (uint32_t i = 0; i < batch->profiles[p].n_samples; i++)
            b->owners[at++] = p;
    }
    assert(at == batch->n_samples);
    return true;
}

bool kiln_builder_own(struct kiln_builder *b, uint32_t profile)
{
    uint32_t n = b->box->batch.n_samples;

    if ((!b->owners && !start_owners(b)) || !SIDE_ROOM(b, b->owners, n, owners, 1))
        return false;
    b->owners[n] = profile;
    return true;
}

void kiln_builder_add_sample(struct kiln_builder *b, uint32_t profile, uint32_t stack,
                             uint32_t attrs, uint32_t link, const int64_t *values,
                             const uint64_t *times, uint32_t n)
{
    struct kiln_sample sample = {
        .stack = stack,
        .attrs = attrs,
        .link = link,
        .n = n & 0x3fffffffu,
        .has_values = values != NULL,
        .has_times = times != NULL,
    };
    uint64_t columns = (values != NULL) + (times != NULL);
    int64_t *at;

    if (n >= 1u << 30) {
        kiln_builder_fail(b, KILN_E_LIMIT);
        return;
    }
    if (n == 0 || columns == 0) {
        b->silent++;
        return;
    }
    at = kiln_builder_observations(b, n * columns);
    if (!at)
        return;
    if (values && n) {
        memcpy(at, values, n * sizeof(*at));
        at += n;
    }
    if (times && n)
        memcpy(at, times, n * sizeof(*at));
    (void)kiln_builder_new_sample(b, profile, sample);
}

void kiln_builder_scale_profile(struct kiln_builder *b, uint32_t profile, int64_t factor)
{
    struct kiln_batch *batch = &b->box->batch;
    uint32_t at = 0;

    if (b->error || factor == 1)
        return;
    for (uint32_t p = 0; p < profile && !b->owners; p++)
        at += batch->profiles[p].n_samples;
    for (uint32_t left = batch->profiles[profile].n_samples; left; at++) {
        const struct kiln_sample *s = &batch->samples[at];

        if (b->owners && b->owners[at] != profile)
            continue;
        for (uint32_t i = 0; s->has_values && i < s->n; i++)
            batch->observations[s->first + i] =
                kiln_sat_mul(batch->observations[s->first + i], factor);
        left--;
    }
}

uint64_t kiln_builder_silent(const struct kiln_builder *b)
{
    return b->silent;
}

int kiln_builder_open_grid(struct kiln_builder *b, uint32_t n_profiles, uint32_t n_samples,
                           struct kiln_grid *ret_grid)
{
    struct kiln_batch *batch = &b->box->batch;
    uint64_t n = (uint64_t)n_profiles * n_samples;
    uint32_t first = batch->n_profiles - n_profiles;

    if (n == 0 || b->error) {
        *ret_grid = (struct kiln_grid){.n_profiles = n_profiles};
        return b->error;
    }
    assert(n_profiles <= batch->n_profiles && !b->owners);
    if (!ROOM(b, batch->samples, batch->n_samples, samples, n) ||
        !ROOM(b, batch->observations, batch->n_observations, observations, n))
        return b->error;
    *ret_grid = (struct kiln_grid){
        .first_sample = batch->n_samples,
        .first_observation = batch->n_observations,
        .n_profiles = n_profiles,
        .n_samples = n_samples,
    };
    batch->n_samples += (uint32_t)n;
    batch->n_observations += (uint32_t)n;
    for (uint32_t p = first; p < batch->n_profiles; p++) {
        assert(batch->profiles[p].n_samples == 0);
        batch->profiles[p].n_samples = n_samples;
    }
    b->last_owner = batch->n_profiles - 1;
    return 0;
}

void kiln_builder_set_row(struct kiln_builder *b, const struct kiln_grid *grid, uint32_t i,
                          uint32_t stack, uint32_t attrs, const int64_t *values)
{
    struct kiln_batch *batch = &b->box->batch;

    if (KILN_UNLIKELY(b->error))
        return;
    assert(i < grid->n_samples && stack < batch->dict.n_stacks && attrs < batch->dict.n_sets);
    for (uint32_t p = 0; p < grid->n_profiles; p++) {
        uint32_t at = p * grid->n_samples + i;

        batch->observations[grid->first_observation + at] = values[p];
        batch->samples[grid->first_sample + at] = (struct kiln_sample){
            .stack = stack,
            .attrs = attrs,
            .first = grid->first_observation + at,
            .n = 1,
            .has_values = 1,
        };
    }
}

/* ---- finish ---- */

/* Lays the samples out profile by profile. */
static int sort_samples(struct kiln_builder *b)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_sample *sorted = NULL;
    uint32_t cap = 0;
    int r;

    r = kiln_reserve(&b->box->budget, (void **)&sorted, &cap, batch->n_samples, sizeof(*sorted),
                     b->limits.table_count);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        struct kiln_profile *owner = &batch->profiles[b->owners[i]];

        sorted[owner->first_sample + owner->n_samples++] = batch->samples[i];
    }
    if (!kiln_box_holds(b->box, batch->samples))
        kiln_array_free(&b->box->budget, (void **)&batch->samples, &b->cap.samples,
                        sizeof(*sorted));
    batch->samples = sorted;
    b->cap.samples = cap;
    return 0;
}

static int place_samples(struct kiln_builder *b)
{
    struct kiln_batch *batch = &b->box->batch;
    uint32_t at = 0;

    for (uint32_t p = 0; p < batch->n_profiles; p++) {
        batch->profiles[p].first_sample = at;
        at += batch->profiles[p].n_samples;
        if (b->owners)
            batch->profiles[p].n_samples = 0; /* sort_samples() counts again */
    }
    return b->owners ? sort_samples(b) : 0;
}

static void free_scratch(struct kiln_builder *b)
{
    struct kiln_intern *indexes[] = {&b->strings,   &b->functions, &b->mappings,
                                     &b->locations, &b->stacks,    &b->links,
                                     &b->attrs,     &b->lists,     &b->sets};

    for (size_t i = 0; i < KILN_ARRAY_LEN(indexes); i++)
        kiln_intern_done(indexes[i], &b->box->budget);
    kiln_array_free(&b->box->budget, (void **)&b->owners, &b->cap.owners, sizeof(*b->owners));
    kiln_array_free(&b->box->budget, (void **)&b->list_ranges, &b->cap.lists,
                    sizeof(*b->list_ranges));
    kiln_arena_done(&b->scratch);
}

/* Gives back the memory of arrays that grew well past what they hold. */
static void trim(struct kiln_builder *b, void **array, uint32_t *cap, uint32_t n, size_t size)
{
    size_t waste = (size_t)(*cap - n) * size;
    void *smaller;

    if (waste < 64u << 10 || n == 0 || kiln_box_holds(b->box, *array))
        return;
    smaller = kiln_realloc(*array, n * size);
    if (!smaller)
        return;
    *array = smaller;
    *cap = n;
    kiln_budget_give(&b->box->budget, waste);
}

static void trim_arrays(struct kiln_builder *b)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_dict *d = &batch->dict;

#define TRIM(owner, field)                                                                         \
    trim(b, (void **)&(owner)->field, &b->cap.field, (owner)->n_##field, sizeof(*(owner)->field))
    TRIM(d, strings);
    TRIM(d, functions);
    TRIM(d, locations);
    TRIM(d, lines);
    TRIM(d, stacks);
    TRIM(d, frames);
    TRIM(d, attrs);
    TRIM(d, sets);
    TRIM(d, members);
    TRIM(batch, samples);
    TRIM(batch, observations);
#undef TRIM
}

void kiln_builder_free(struct kiln_builder *b)
{
    if (!b)
        return;
    free_scratch(b);
    if (b->box)
        kiln_batch_unref(&b->box->batch);
    kiln_free(b);
}

int kiln_builder_finish(struct kiln_builder *b, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    int r = b->error;

    if (r == 0)
        r = place_samples(b);
    if (r == 0) {
        free_scratch(b);
        trim_arrays(b);
        *ret_batch = &b->box->batch;
        b->box = NULL;
        kiln_free(b);
        return 0;
    }
    kiln_err_set(err, r, NULL,
                 r == KILN_E_LIMIT ? "%s (%zu MiB of memory, %u entries a table)" : "%s",
                 kiln_err_text(r), b->limits.memory_bytes >> 20, b->limits.table_count);
    kiln_builder_free(b);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both batches are brought into one builder: there equal entries have equal indexes, whatever order
 * their tables had, and what is left to compare are numbers.
 */
#include "core/batch.h"
#include "core/remap.h"

struct pair {
    const struct kiln_batch *a, *b;
    struct kiln_remap *to_a, *to_b;
};

/* Whether an entry of `a` and one of `b` are the same; `remap` is the function of their table. */
static bool same(const struct pair *p, uint32_t (*remap)(struct kiln_remap *, uint32_t), uint32_t a,
                 uint32_t b)
{
    return remap(p->to_a, a) == remap(p->to_b, b);
}

static bool equal_samples(const struct pair *p, const struct kiln_sample *x,
                          const struct kiln_sample *y)
{
    uint32_t columns = x->has_values + x->has_times;

    return x->n == y->n && x->has_values == y->has_values && x->has_times == y->has_times &&
           same(p, kiln_remap_stack, x->stack, y->stack) &&
           same(p, kiln_remap_set, x->attrs, y->attrs) &&
           same(p, kiln_remap_link, x->link, y->link) &&
           (x->n * columns == 0 ||
            memcmp(p->a->observations + x->first, p->b->observations + y->first,
                   sizeof(int64_t) * x->n * columns) == 0);
}

static bool equal_types(const struct pair *p, struct kiln_value_type x, struct kiln_value_type y)
{
    return same(p, kiln_remap_string, x.type, y.type) && same(p, kiln_remap_string, x.unit, y.unit);
}

static bool equal_profiles(const struct pair *p, const struct kiln_profile *x,
                           const struct kiln_profile *y)
{
    if (!equal_types(p, x->sample_type, y->sample_type) ||
        !equal_types(p, x->period_type, y->period_type) ||
        !same(p, kiln_remap_set, x->attrs, y->attrs) ||
        !same(p, kiln_remap_string, x->payload_format, y->payload_format) ||
        !kiln_str_eq(x->payload, y->payload) || memcmp(x->id, y->id, sizeof(x->id)) != 0 ||
        x->period != y->period || x->time_ns != y->time_ns || x->duration_ns != y->duration_ns ||
        x->dropped_attrs != y->dropped_attrs || x->n_samples != y->n_samples)
        return false;
    for (uint32_t i = 0; i < x->n_samples; i++) {
        if (!equal_samples(p, &p->a->samples[x->first_sample + i],
                           &p->b->samples[y->first_sample + i]))
            return false;
    }
    return true;
}

static bool equal_scopes(const struct pair *p, const struct kiln_scope *x,
                         const struct kiln_scope *y)
{
    return same(p, kiln_remap_string, x->name, y->name) &&
           same(p, kiln_remap_string, x->version, y->version) &&
           same(p, kiln_remap_set, x->attrs, y->attrs) &&
           same(p, kiln_remap_string, x->schema_url, y->schema_url) &&
           x->dropped_attrs == y->dropped_attrs && x->n_profiles == y->n_profiles;
}

static bool equal_entities(const struct pair *p, const struct kiln_entity *x,
                           const struct kiln_entity *y)
{
    if (!same(p, kiln_remap_string, x->schema_url, y->schema_url) ||
        !same(p, kiln_remap_string, x->type, y->type) || x->n_id_keys != y->n_id_keys ||
        x->n_description_keys != y->n_description_keys)
        return false;
    for (uint32_t i = 0; i < x->n_id_keys + x->n_description_keys; i++) {
        if (!same(p, kiln_remap_string, p->a->entity_keys[x->first_key + i],
                  p->b->entity_keys[y->first_key + i]))
            return false;
    }
    return true;
}

static bool equal_resources(const struct pair *p, const struct kiln_resource *x,
                            const struct kiln_resource *y)
{
    if (!same(p, kiln_remap_set, x->attrs, y->attrs) ||
        !same(p, kiln_remap_string, x->schema_url, y->schema_url) ||
        x->dropped_attrs != y->dropped_attrs || x->n_entities != y->n_entities ||
        x->n_scopes != y->n_scopes)
        return false;
    for (uint32_t i = 0; i < x->n_entities; i++) {
        if (!equal_entities(p, &p->a->entities[x->first_entity + i],
                            &p->b->entities[y->first_entity + i]))
            return false;
    }
    return true;
}

/* Equal numbers of children at every level make the flat arrays comparable one by one. */
static bool equal(const struct pair *p)
{
    const struct kiln_batch *a = p->a, *b = p->b;

    if (a->n_resources != b->n_resources || a->n_scopes != b->n_scopes ||
        a->n_profiles != b->n_profiles)
        return false;
    for (uint32_t i = 0; i < a->n_resources; i++) {
        if (!equal_resources(p, &a->resources[i], &b->resources[i]))
            return false;
    }
    for (uint32_t i = 0; i < a->n_scopes; i++) {
        if (!equal_scopes(p, &a->scopes[i], &b->scopes[i]))
            return false;
    }
    for (uint32_t i = 0; i < a->n_profiles; i++) {
        if (!equal_profiles(p, &a->profiles[i], &b->profiles[i]))
            return false;
    }
    return true;
}

bool kiln_batch_equal(const struct kiln_batch *a, const struct kiln_batch *b)
{
    struct kiln_limits limits = kiln_limits_default;
    struct pair p = {.a = a, .b = b};
    struct kiln_builder *builder;
    bool result = false;

    limits.memory_bytes = SIZE_MAX; /* both are in memory already */
    limits.table_count = limits.stack_depth = limits.value_depth = UINT32_MAX - 1;
    if (kiln_builder_new(&limits, &builder) < 0)
        return false;
    if (kiln_remap_new(builder, a, NULL, &p.to_a) == 0 &&
        kiln_remap_new(builder, b, NULL, &p.to_b) == 0)
        result = equal(&p) && kiln_builder_error(builder) == 0;
    kiln_remap_free(p.to_a);
    kiln_remap_free(p.to_b);
    kiln_builder_free(builder);
    return result;
}

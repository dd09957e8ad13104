/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many observations a value stands for, as far as that can be known:
 *
 *   - a timestamp is one observation;
 *   - the scope may hold the counts beside the values (samples beside cpu, contentions beside
 * delay): then sample by sample the two profiles have the same stack, attributes and link;
 *   - a period in the unit of the values says what one observation weighs (nanoseconds of CPU,
 * bytes between two allocation samples); for numbers of objects their bytes lie beside them;
 *   - else each value is one observation: too few, so that noise is rather over- than understated.
 */
#include <math.h>

#include "core/view_int.h"

/* Siblings lie side by side; looking no further keeps a scope of many profiles linear. */
#define NEAR 16

static bool line_up(const struct kiln_batch *batch, const struct kiln_profile *a,
                    const struct kiln_profile *b)
{
    if (a == b || a->n_samples != b->n_samples || a->time_ns != b->time_ns)
        return false;
    for (uint32_t i = 0; i < a->n_samples; i++) {
        const struct kiln_sample *x = &batch->samples[a->first_sample + i];
        const struct kiln_sample *y = &batch->samples[b->first_sample + i];

        if (x->stack != y->stack || x->attrs != y->attrs || x->link != y->link)
            return false;
    }
    return true;
}

static bool counts_observations(const struct kiln_batch *batch,
                                __attribute__((unused)) const struct kiln_profile *own,
                                const struct kiln_profile *other)
{
    struct kiln_str type = kiln_batch_str(batch, other->sample_type.type);

    return kiln_str_eq(kiln_batch_str(batch, other->sample_type.unit), KILN_STR("count")) &&
           (kiln_str_eq(type, KILN_STR("samples")) || kiln_str_eq(type, KILN_STR("sample")) ||
            kiln_str_eq(type, KILN_STR("contentions")));
}

/* A period of one nanosecond or one byte is a placeholder: nobody samples so. */
static bool tells_weight(const struct kiln_batch *batch, const struct kiln_profile *profile)
{
    struct kiln_str unit = kiln_batch_str(batch, profile->period_type.unit);

    return profile->period > (kiln_unit_kind(unit) == KILN_UNIT_COUNT ? 0 : 1);
}

/* alloc_space for alloc_objects: of the same half of a heap profile, in the unit of the period. */
static bool weighs_objects(const struct kiln_batch *batch, const struct kiln_profile *objects,
                           const struct kiln_profile *space)
{
    struct kiln_str a = kiln_batch_str(batch, objects->sample_type.type);
    struct kiln_str b = kiln_batch_str(batch, space->sample_type.type);

    if (space->sample_type.unit != objects->period_type.unit || !tells_weight(batch, objects))
        return false;
    return kiln_str_eq(kiln_str_cut(&a, '_'), kiln_str_cut(&b, '_'));
}

/* The first profile near `index` in the scope that lines up with it and `fits`, or NULL. */
static const struct kiln_profile *
find_sibling(const struct kiln_batch *batch, const struct kiln_scope *scope, uint32_t index,
             bool (*fits)(const struct kiln_batch *batch, const struct kiln_profile *own,
                          const struct kiln_profile *other))
{
    const struct kiln_profile *own = &batch->profiles[index];
    uint32_t first = scope->first_profile, end = first + scope->n_profiles;

    if (index - first > NEAR)
        first = index - NEAR;
    if (end - index > NEAR)
        end = index + NEAR;
    for (uint32_t i = first; i < end; i++) {
        if (fits(batch, own, &batch->profiles[i]) && line_up(batch, own, &batch->profiles[i]))
            return &batch->profiles[i];
    }
    return NULL;
}

struct kiln_counter kiln_counter_of(const struct kiln_batch *batch, const struct kiln_scope *scope,
                                    uint32_t index, const struct kiln_type *type)
{
    const struct kiln_profile *own = &batch->profiles[index];
    const struct kiln_profile *sibling = NULL;
    struct kiln_counter counter = {.batch = batch, .own = own};
    bool own_counts = type->scale != 1 || counts_observations(batch, own, own);

    if (!own_counts)
        sibling = find_sibling(batch, scope, index, counts_observations);
    if (own_counts || sibling) {
        counter.unit = 1;
    } else if (tells_weight(batch, own) && own->period_type.unit == own->sample_type.unit) {
        counter.unit = (double)own->period;
    } else {
        sibling = find_sibling(batch, scope, index, weighs_objects);
        counter.unit = sibling ? (double)own->period : 0;
    }
    counter.sibling = sibling;
    return counter;
}

double kiln_counter_count(const struct kiln_counter *counter, uint32_t i, int64_t raw)
{
    const struct kiln_batch *batch = counter->batch;
    const struct kiln_sample *sample = &batch->samples[counter->own->first_sample + i];

    if (sample->has_times)
        return sample->n;
    if (counter->unit == 0)
        return sample->n;
    if (counter->sibling)
        raw = kiln_sample_total(batch, &batch->samples[counter->sibling->first_sample + i]);
    return fabs((double)raw) / counter->unit;
}

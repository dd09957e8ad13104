/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batch.h"
#include "core/batch_int.h"

struct kiln_batch *kiln_batch_ref(struct kiln_batch *batch)
{
    atomic_fetch_add_explicit(&kiln_batch_box(batch)->refs, 1, memory_order_relaxed);
    return batch;
}

static void free_arrays(struct kiln_batch *batch)
{
    struct kiln_dict *d = &batch->dict;
    void *arrays[] = {
        d->strings,          d->functions,    d->mappings,
        d->locations,        d->lines,        d->stacks,
        d->frames,           d->links,        d->attrs,
        d->nested,           d->sets,         d->members,
        batch->resources,    batch->scopes,   batch->profiles,
        batch->samples,      batch->entities, batch->entity_keys,
        batch->observations,
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(arrays); i++) {
        if (!kiln_box_holds(kiln_batch_box(batch), arrays[i]))
            kiln_free(arrays[i]);
    }
    kiln_free(kiln_batch_box(batch)->block);
}

void kiln_batch_unref(struct kiln_batch *batch)
{
    struct kiln_batch_box *box = kiln_batch_box(batch);

    if (!batch || atomic_fetch_sub_explicit(&box->refs, 1, memory_order_acq_rel) != 1)
        return;
    free_arrays(batch);
    kiln_arena_done(&box->arena);
    kiln_free(box);
}

size_t kiln_batch_bytes(const struct kiln_batch *batch)
{
    return kiln_batch_box(batch)->budget.used;
}

size_t kiln_batch_peak_bytes(const struct kiln_batch *batch)
{
    return kiln_batch_box(batch)->budget.peak;
}

int64_t kiln_sample_total(const struct kiln_batch *batch, const struct kiln_sample *sample)
{
    const int64_t *values = kiln_sample_values(batch, sample);
    int64_t sum = 0;

    if (!values)
        return sample->n;
    for (uint32_t i = 0; i < sample->n; i++) {
        if (__builtin_add_overflow(sum, values[i], &sum))
            return values[i] < 0 ? INT64_MIN : INT64_MAX;
    }
    return sum;
}

const struct kiln_attr *kiln_set_find(const struct kiln_batch *batch, uint32_t set,
                                      struct kiln_str key)
{
    const struct kiln_dict *d = &batch->dict;
    struct kiln_range range = d->sets[set];

    for (uint32_t i = 0; i < range.n; i++) {
        const struct kiln_attr *attr = &d->attrs[d->members[range.first + i]];

        if (kiln_str_eq(d->strings[attr->key], key))
            return attr;
    }
    return NULL;
}

struct kiln_str kiln_set_text(const struct kiln_batch *batch, uint32_t set, struct kiln_str key)
{
    const struct kiln_attr *attr = kiln_set_find(batch, set, key);

    if (!attr || attr->value.kind != KILN_VALUE_STRING)
        return KILN_STR_NONE;
    return batch->dict.strings[attr->value.str];
}

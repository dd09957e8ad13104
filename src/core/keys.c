/* SPDX-License-Identifier: Apache-2.0 */
#include "core/keys.h"

#include "base/hash.h"

uint32_t kiln_keys_take(struct kiln_keys *keys, struct kiln_builder *b)
{
    uint32_t n = keys->n_key;
    size_t bytes = n * sizeof(*keys->key);
    uint64_t hash = kiln_hash(keys->key, bytes);
    int r;

    keys->n_key = 0;
    for (struct kiln_probe p = kiln_intern_probe(&keys->index, hash);
         kiln_intern_next(&keys->index, &p);) {
        struct kiln_range known = keys->ranges[p.entry];

        if (known.n == n && memcmp(keys->numbers + known.first, keys->key, bytes) == 0)
            return p.entry;
    }
    if (!kiln_builder_room(b, (void **)&keys->ranges, &keys->cap_ranges, (uint64_t)keys->n + 1,
                           sizeof(*keys->ranges)) ||
        !kiln_builder_room(b, (void **)&keys->numbers, &keys->cap_numbers,
                           (uint64_t)keys->n_numbers + n, sizeof(*keys->numbers)))
        return 0;
    r = kiln_intern_add(&keys->index, &b->box->budget, hash, keys->n);
    if (r < 0) {
        kiln_builder_fail(b, r);
        return 0;
    }
    memcpy(keys->numbers + keys->n_numbers, keys->key, bytes);
    keys->ranges[keys->n] = (struct kiln_range){keys->n_numbers, n};
    keys->n_numbers += n;
    return keys->n++;
}

void kiln_keys_done(struct kiln_keys *keys, struct kiln_builder *b)
{
    struct kiln_budget *budget = &b->box->budget;

    kiln_intern_done(&keys->index, budget);
    kiln_array_free(budget, (void **)&keys->ranges, &keys->cap_ranges, sizeof(*keys->ranges));
    kiln_array_free(budget, (void **)&keys->numbers, &keys->cap_numbers, sizeof(*keys->numbers));
    kiln_array_free(budget, (void **)&keys->key, &keys->cap_key, sizeof(*keys->key));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing over 64-bit hashes, which stand for the keys: two keys of one hash count as one
 * series, which moves a limit by one, in a store of 250,000 series, once in half a billion stores.
 */
#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"
#include "store/head.h"

#define SLOTS_MIN 64u

static uint64_t hash_of(struct kiln_str key)
{
    uint64_t hash = kiln_hash(key.ptr, key.len);

    return hash ? hash : 1;
}

/* The slot of a hash: where it is, or where it would go. */
static uint64_t *slot_of(const struct kiln_series_set *set, uint64_t hash)
{
    uint32_t mask = set->n_slots - 1;
    uint32_t i = (uint32_t)(hash >> 32) & mask;

    while (set->slots[i] && set->slots[i] != hash)
        i = (i + 1) & mask;
    return &set->slots[i];
}

static int grow(struct kiln_series_set *set)
{
    struct kiln_series_set larger = {.n = set->n,
                                     .n_slots = set->n_slots ? set->n_slots * 2 : SLOTS_MIN};

    larger.slots = kiln_calloc(larger.n_slots, sizeof(*larger.slots));
    if (!larger.slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < set->n_slots; i++) {
        if (set->slots[i])
            *slot_of(&larger, set->slots[i]) = set->slots[i];
    }
    kiln_free(set->slots);
    *set = larger;
    return 0;
}

int kiln_series_set_add(struct kiln_series_set *set, struct kiln_str key)
{
    uint64_t hash = hash_of(key);
    uint64_t *slot;

    if (set->n * UINT64_C(4) >= set->n_slots * UINT64_C(3)) {
        int r = grow(set);

        if (r < 0)
            return r;
    }
    slot = slot_of(set, hash);
    if (*slot)
        return 0;
    *slot = hash;
    set->n++;
    return 1;
}

bool kiln_series_set_has(const struct kiln_series_set *set, struct kiln_str key)
{
    return set->n_slots && *slot_of(set, hash_of(key));
}

void kiln_series_set_done(struct kiln_series_set *set)
{
    kiln_free(set->slots);
    *set = (struct kiln_series_set){0};
}

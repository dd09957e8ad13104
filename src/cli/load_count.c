/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many distinct stacks and tree nodes a load has sent.  A node is the path from the root to it,
 * as a hash; a service has a tree of its own.  Stacks of the base come again and again: a table
 * says how much of each is counted already, so that only the first time costs anything.
 */
#include <errno.h>

#include "base/hash.h"
#include "cli/load_int.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    struct kiln_dice dice = {hash ^ value * UINT64_C(0xff51afd7ed558ccd)};

    return kiln_dice_next(&dice) | 1;
}

static bool insert_into(uint64_t *slots, uint32_t cap, uint64_t hash)
{
    uint32_t i = (uint32_t)(hash >> 32) & (cap - 1);

    while (slots[i] && slots[i] != hash)
        i = (i + 1) & (cap - 1);
    if (slots[i])
        return false;
    slots[i] = hash;
    return true;
}

static bool grow(struct kiln_load_set *set)
{
    uint32_t cap = set->cap ? set->cap * 2 : 1u << 16;
    uint64_t *slots = cap ? kiln_calloc(cap, sizeof(*slots)) : NULL;

    if (!slots)
        return false;
    for (uint32_t i = 0; i < set->cap; i++)
        if (set->slots[i])
            insert_into(slots, cap, set->slots[i]);
    kiln_free(set->slots);
    set->slots = slots;
    set->cap = cap;
    return true;
}

/* True if the hash was not there.  Without memory nothing is counted any more. */
static bool insert(struct kiln_load_set *set, uint64_t hash)
{
    if (set->n >= set->cap / 4 * 3 && !grow(set))
        return false;
    if (!insert_into(set->slots, set->cap, hash))
        return false;
    set->n++;
    return true;
}

/* ---- the base ---- */

static uint64_t hash_of(const uint32_t *locations, uint32_t n)
{
    uint64_t hash = mix(0, n);

    for (uint32_t i = 0; i < n; i++)
        hash = mix(hash, locations[i]);
    return hash;
}

int kiln_load_learn_base(struct kiln_load *load)
{
    const struct kiln_dict *dict = &load->base->dict;

    for (uint32_t i = 0; i < dict->n_stacks; i++) {
        struct kiln_range range = dict->stacks[i];

        insert(&load->known, hash_of(dict->frames + range.first, range.n));
    }
    return load->known.n ? 0 : -ENOMEM;
}

bool kiln_load_in_base(const struct kiln_load *load, const uint32_t *locations, uint32_t n)
{
    const struct kiln_load_set *set = &load->known;
    uint64_t hash = hash_of(locations, n);
    uint32_t i = (uint32_t)(hash >> 32) & (set->cap - 1);

    while (set->slots[i] && set->slots[i] != hash)
        i = (i + 1) & (set->cap - 1);
    return set->slots[i] != 0;
}

/* ---- what was sent ---- */

void kiln_load_note_base(struct kiln_load *load, uint32_t service, uint32_t stack, uint32_t depth)
{
    const struct kiln_dict *dict = &load->base->dict;
    struct kiln_range range = dict->stacks[stack];
    _Atomic uint16_t *counted = &load->counted[(size_t)service * dict->n_stacks + stack];
    uint64_t hash = mix(0, service), added = 0;

    if (depth > UINT16_MAX - 1)
        depth = UINT16_MAX - 1;
    if (atomic_load(counted) >= depth + (depth == range.n))
        return;
    pthread_mutex_lock(&load->lock);
    for (uint32_t i = 0; i < depth; i++) {
        hash = mix(hash, dict->frames[range.first + range.n - 1 - i]);
        added += insert(&load->nodes, hash);
    }
    load->n_nodes += added;
    if (atomic_load(counted) <= range.n && depth == range.n)
        load->n_stacks++;
    if (atomic_load(counted) < depth + (depth == range.n))
        atomic_store(counted, (uint16_t)(depth + (depth == range.n)));
    pthread_mutex_unlock(&load->lock);
}

void kiln_load_note_new(struct kiln_load *load, uint32_t n)
{
    atomic_fetch_add(&load->n_stacks, 1);
    atomic_fetch_add(&load->n_nodes, n);
}

void kiln_load_note_stack(struct kiln_load *load, uint32_t service, const uint32_t *locations,
                          uint32_t n)
{
    uint64_t hash = mix(0, service), added = 0;

    pthread_mutex_lock(&load->lock);
    for (uint32_t i = n; i-- > 0;) {
        hash = mix(hash, locations[i]);
        added += insert(&load->nodes, hash);
    }
    load->n_nodes += added;
    load->n_stacks += insert(&load->nodes, mix(hash, UINT64_MAX));
    pthread_mutex_unlock(&load->lock);
}

void kiln_load_counts(struct kiln_load *load, uint64_t *ret_stacks, uint64_t *ret_nodes)
{
    *ret_stacks = atomic_load(&load->n_stacks);
    *ret_nodes = atomic_load(&load->n_nodes);
}

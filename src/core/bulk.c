/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distinctness is shown by the hashes alone, in one set that is used for table after table.  A slot
 * holds 32 bits of a hash, and the other 32 say where it stands; only neighbours are ever compared.
 * Two equal hashes mean two equal entries, or chance; either way the caller takes the ordinary
 * door, which compares.
 */
#include "core/bulk.h"

uint32_t kiln_builder_new_string(struct kiln_builder *b, struct kiln_str s)
{
    struct kiln_dict *d = &b->box->batch.dict;
    char *text;

    if (!ROOM(b, d->strings, d->n_strings, strings, 1))
        return 0;
    text = kiln_builder_alloc(b, s.len);
    if (!text)
        return 0;
    d->strings[d->n_strings] = (struct kiln_str){memcpy(text, s.ptr, s.len), s.len};
    return d->n_strings++;
}

uint32_t *kiln_builder_frames(struct kiln_builder *b, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;

    if (n > b->limits.stack_depth)
        kiln_builder_fail(b, KILN_E_LIMIT);
    return ROOM(b, d->frames, d->n_frames, frames, n) ? d->frames + d->n_frames : NULL;
}

/* ---- catching up ---- */

void kiln_builder_drop_indexes(struct kiln_builder *b)
{
    kiln_intern_done(&b->strings, &b->box->budget);
    kiln_intern_done(&b->functions, &b->box->budget);
    kiln_intern_done(&b->locations, &b->box->budget);
}

static uint64_t hash_location(const struct kiln_dict *d, uint32_t i)
{
    const struct kiln_location *l = &d->locations[i];

    return kiln_hash_location(l, d->lines + l->first, l->n);
}

static uint64_t hash_entry(const struct kiln_builder *b, const struct kiln_intern *index,
                           uint32_t i)
{
    const struct kiln_dict *d = &b->box->batch.dict;

    if (index == &b->strings)
        return kiln_hash(d->strings[i].ptr, d->strings[i].len);
    if (index == &b->functions)
        return kiln_hash_function(&d->functions[i]);
    return index == &b->locations ? hash_location(d, i) : kiln_hash_stack(d, d->stacks[i]);
}

uint32_t kiln_builder_new_set(struct kiln_builder *b, const uint32_t *attrs, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;

    if (!ROOM(b, d->sets, d->n_sets, sets, 1) || !ROOM(b, d->members, d->n_members, members, n))
        return 0;
    if (n)
        memcpy(d->members + d->n_members, attrs, n * sizeof(*attrs));
    d->sets[d->n_sets] = (struct kiln_range){d->n_members, n};
    d->n_members += n;
    return d->n_sets++;
}

static uint32_t entries_of(const struct kiln_builder *b, const struct kiln_intern *index)
{
    const struct kiln_dict *d = &b->box->batch.dict;

    if (index == &b->strings)
        return d->n_strings;
    if (index == &b->functions)
        return d->n_functions;
    return index == &b->locations ? d->n_locations : d->n_stacks;
}

/* How many entries the table has room for. */
static uint32_t room_of(const struct kiln_builder *b, const struct kiln_intern *index)
{
    if (index == &b->strings)
        return b->cap.strings;
    if (index == &b->functions)
        return b->cap.functions;
    return index == &b->locations ? b->cap.locations : b->cap.stacks;
}

bool kiln_builder_catch_up(struct kiln_builder *b, struct kiln_intern *index)
{
    uint32_t n = entries_of(b, index);
    int r = kiln_intern_expect(index, &b->box->budget, room_of(b, index) - 1 - index->n);

    for (uint32_t i = index->n + 1; r == 0 && i < n; i++)
        r = kiln_intern_add(index, &b->box->budget, hash_entry(b, index, i), i);
    if (r < 0)
        kiln_builder_fail(b, r);
    return r == 0;
}

/* ---- distinctness ---- */

#define SLOTS 2u /* an entry */

/* A set of hashes; 0 is a free slot. */
struct hash_set {
    uint32_t *slots;
    uint32_t cap;
    uint64_t n_slots; /* in use for the table at hand */
};

static void set_begin(struct hash_set *set, uint32_t n)
{
    set->n_slots = (uint64_t)n * SLOTS;
    memset(set->slots, 0, set->n_slots * sizeof(*set->slots));
}

/* False if the hash is there already. */
static inline bool set_add(struct hash_set *set, uint64_t hash)
{
    uint64_t at = (hash >> 32) * set->n_slots >> 32;
    uint32_t kept = (uint32_t)hash | ((uint32_t)hash == 0);

    while (set->slots[at]) {
        if (KILN_UNLIKELY(set->slots[at] == kept))
            return false;
        at = at + 1 == set->n_slots ? 0 : at + 1;
    }
    set->slots[at] = kept;
    return true;
}

static bool functions_distinct(const struct kiln_dict *d, struct hash_set *set)
{
    set_begin(set, d->n_functions);
    for (uint32_t i = 0; i < d->n_functions; i++) {
        if (!set_add(set, kiln_hash_function(&d->functions[i])))
            return false;
    }
    return true;
}

static bool locations_distinct(const struct kiln_dict *d, struct hash_set *set)
{
    set_begin(set, d->n_locations);
    for (uint32_t i = 0; i < d->n_locations; i++) {
        if (!set_add(set, hash_location(d, i)))
            return false;
    }
    return true;
}

static bool stacks_distinct(const struct kiln_dict *d, struct hash_set *set)
{
    set_begin(set, d->n_stacks);
    for (uint32_t i = 0; i < d->n_stacks; i++) {
        if (!set_add(set, kiln_hash_stack(d, d->stacks[i])))
            return false;
    }
    return true;
}

bool kiln_builder_distinct(struct kiln_builder *b)
{
    const struct kiln_dict *d = &b->box->batch.dict;
    struct hash_set set = {0};
    uint32_t most = d->n_functions > d->n_locations ? d->n_functions : d->n_locations;
    bool distinct;

    if (d->n_stacks > most)
        most = d->n_stacks;
    if (kiln_reserve(&b->box->budget, (void **)&set.slots, &set.cap, (uint64_t)most * SLOTS,
                     sizeof(*set.slots), UINT32_MAX) < 0)
        return false;
    distinct =
        functions_distinct(d, &set) && locations_distinct(d, &set) && stacks_distinct(d, &set);
    kiln_array_free(&b->box->budget, (void **)&set.slots, &set.cap, sizeof(*set.slots));
    return distinct;
}

bool kiln_builder_has_no_stacks(const struct kiln_builder *b)
{
    const struct kiln_dict *d = &b->box->batch.dict;

    return d->n_functions == 1 && d->n_locations == 1 && d->n_stacks == 1;
}

void kiln_builder_forget_stacks(struct kiln_builder *b)
{
    struct kiln_dict *d = &b->box->batch.dict;

    kiln_intern_done(&b->functions, &b->box->budget);
    kiln_intern_done(&b->locations, &b->box->budget);
    kiln_intern_done(&b->stacks, &b->box->budget);
    d->n_functions = d->n_locations = d->n_stacks = 1;
    d->n_lines = d->n_frames = 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What samples refer to is listed first: stacks, their locations, the functions of those, and the
 * texts of those.  Then each list is brought over, the last one first, so that an entry finds what
 * it refers to brought over already.
 *
 * A chunk of entries is looked up in steps: all hashes, which tell where in the index to look; all
 * candidates found there; what these point to; and only then one after the other, as usual, when
 * the memory of all of them is on its way or there.  Where the entries are just the next ones of
 * the builder, as of a sender that says the same again, nothing has to be looked up, and the steps
 * are left out.
 */
#include <assert.h>
#include <errno.h>

#include "core/remap_int.h"

#define CHUNK  16u
#define LISTED UINT32_MAX /* in the place of a new index: on a list, not brought over yet */
#define NONE   UINT32_MAX

/* ---- listing ---- */

/* Puts an entry behind the `n` of a list, unless it is known or listed; returns how many now. */
KILN_INLINE uint32_t list_entry(uint32_t *places, uint32_t entry, uint32_t *list, uint32_t n)
{
    if (KILN_LIKELY(places[entry] || entry == 0))
        return n;
    places[entry] = LISTED;
    list[n] = entry;
    return n + 1;
}

static uint32_t list_stacks(struct kiln_remap *remap, uint32_t *list)
{
    const struct kiln_batch *from = remap->from;
    uint32_t *places = remap->stacks, n = 0;

    for (uint32_t i = 0; i < from->n_samples; i++)
        n = list_entry(places, from->samples[i].stack, list, n);
    return n;
}

static uint32_t list_locations(struct kiln_remap *remap, const uint32_t *stacks, uint32_t n_stacks,
                               uint32_t *list)
{
    const struct kiln_dict *d = &remap->from->dict;
    const uint32_t *frames = d->frames;
    uint32_t *places = remap->locations, n = 0;

    for (uint32_t i = 0; i < n_stacks; i++) {
        struct kiln_range range = d->stacks[stacks[i]];

        for (uint32_t k = range.first; k < range.first + range.n; k++)
            n = list_entry(places, frames[k], list, n);
    }
    return n;
}

static uint32_t list_functions(struct kiln_remap *remap, const uint32_t *locations,
                               uint32_t n_locations, uint32_t *list)
{
    const struct kiln_dict *d = &remap->from->dict;
    uint32_t *places = remap->functions, n = 0;

    for (uint32_t i = 0; i < n_locations; i++) {
        const struct kiln_location *l = &d->locations[locations[i]];

        for (uint32_t k = 0; k < l->n; k++)
            n = list_entry(places, d->lines[l->first + k].function, list, n);
    }
    return n;
}

static uint32_t list_strings(struct kiln_remap *remap, const uint32_t *functions,
                             uint32_t n_functions, uint32_t *list)
{
    const struct kiln_dict *d = &remap->from->dict;
    uint32_t *places = remap->strings, n = 0;

    for (uint32_t i = 0; i < n_functions; i++) {
        const struct kiln_function *f = &d->functions[functions[i]];

        n = list_entry(places, f->name, list, n);
        n = list_entry(places, f->system_name, list, n);
        n = list_entry(places, f->filename, list, n);
    }
    return n;
}

/* ---- looking up ---- */

/* Asks for the part of an index where a hash would be. */
static inline void fetch_group(const struct kiln_intern *index, uint64_t hash)
{
    uint32_t group;

    if (!index->tags)
        return;
    group = kiln_intern_home(index, kiln_intern_fold(hash));
    __builtin_prefetch(&index->tags[group]);
    __builtin_prefetch(&index->slots[group * KILN_INTERN_GROUP]);
    __builtin_prefetch(&index->slots[group * KILN_INTERN_GROUP + KILN_INTERN_GROUP - 1]);
}

/* The first entry that may have the hash. */
static inline uint32_t candidate(const struct kiln_intern *index, uint64_t hash)
{
    struct kiln_probe p = kiln_intern_probe(index, hash);

    return p.matches && kiln_intern_next(index, &p) ? p.entry : NONE;
}

/* Notes that a candidate is it.  It may be where a guess would have looked, had there been one. */
KILN_INLINE uint32_t is_it(struct kiln_remap *remap, uint32_t *next, uint32_t entry)
{
    remap->guessed += entry - *next <= 1;
    *next = entry + 1;
    return entry;
}

/* Candidates of a chunk (none without hashes), whose entries in `array`, `size` bytes each, are
 * asked for. */
static void fetch_entries(const struct kiln_intern *index, const void *array, size_t size,
                          const uint64_t *hashes, uint32_t n, uint32_t *ret_candidates)
{
    for (uint32_t i = 0; i < n; i++) {
        ret_candidates[i] = hashes ? candidate(index, hashes[i]) : NONE;
        if (ret_candidates[i] != NONE)
            __builtin_prefetch((const char *)array + ret_candidates[i] * size);
    }
}

static void bring_strings(struct kiln_remap *remap, const uint32_t *list, uint32_t n, bool look)
{
    const struct kiln_builder *b = remap->b;
    const struct kiln_dict *known = &b->box->batch.dict;
    const struct kiln_str *strings = remap->from->dict.strings;
    uint64_t hashes[CHUNK];
    uint32_t at[CHUNK];

    for (uint32_t i = 0; look && i < n; i++) {
        hashes[i] = kiln_hash(strings[list[i]].ptr, strings[list[i]].len);
        fetch_group(&b->strings, hashes[i]);
    }
    fetch_entries(&b->strings, known->strings, sizeof(*strings), look ? hashes : NULL, n, at);
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] != NONE)
            __builtin_prefetch(known->strings[at[i]].ptr);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_str s = strings[list[i]];

        remap->strings[list[i]] = at[i] != NONE && kiln_str_eq(known->strings[at[i]], s)
                                      ? is_it(remap, &remap->next.string, at[i])
                                      : kiln_remap_find_string(remap, s);
    }
}

static void bring_functions(struct kiln_remap *remap, const uint32_t *list, uint32_t n, bool look)
{
    const struct kiln_builder *b = remap->b;
    const struct kiln_dict *known = &b->box->batch.dict;
    struct kiln_function made[CHUNK];
    uint64_t hashes[CHUNK];
    uint32_t at[CHUNK];

    for (uint32_t i = 0; i < n; i++) {
        made[i] = kiln_remap_make_function(remap, list[i]);
        if (!look)
            continue;
        hashes[i] = kiln_hash_function(&made[i]);
        fetch_group(&b->functions, hashes[i]);
    }
    fetch_entries(&b->functions, known->functions, sizeof(*made), look ? hashes : NULL, n, at);
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_function *function = &known->functions[at[i]];

        remap->functions[list[i]] =
            at[i] != NONE && memcmp(function, &made[i], sizeof(*function)) == 0
                ? is_it(remap, &remap->next.function, at[i])
                : kiln_remap_find_function(remap, &made[i]);
    }
}

/* The lines of a chunk of locations; false (and sticky) if there is no memory for them. */
static bool make_lines(struct kiln_remap *remap, const uint32_t *list, uint32_t n)
{
    const struct kiln_dict *from = &remap->from->dict;
    uint64_t need = 1;
    uint32_t used = 0;

    for (uint32_t i = 0; i < n; i++)
        need += from->locations[list[i]].n;
    if (!kiln_builder_room(remap->b, (void **)&remap->lines, &remap->cap_lines, need,
                           sizeof(*remap->lines)))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_location *l = &from->locations[list[i]];

        for (uint32_t k = 0; k < l->n; k++) {
            struct kiln_line line = from->lines[l->first + k];

            line.function = remap->functions[line.function];
            remap->lines[used++] = line;
        }
    }
    return true;
}

static void bring_locations(struct kiln_remap *remap, const uint32_t *list, uint32_t n, bool look)
{
    const struct kiln_builder *b = remap->b;
    const struct kiln_dict *known = &b->box->batch.dict;
    const struct kiln_location *from = remap->from->dict.locations;
    const struct kiln_line *lines;
    struct kiln_location made[CHUNK];
    uint64_t hashes[CHUNK];
    uint32_t at[CHUNK];

    if (!make_lines(remap, list, n))
        return;
    lines = remap->lines;
    for (uint32_t i = 0; i < n; lines += from[list[i++]].n) {
        made[i] = kiln_remap_make_location(remap, &from[list[i]]);
        if (!look)
            continue;
        hashes[i] = kiln_hash_location(&made[i], lines, from[list[i]].n);
        fetch_group(&b->locations, hashes[i]);
    }
    fetch_entries(&b->locations, known->locations, sizeof(*made), look ? hashes : NULL, n, at);
    for (uint32_t i = 0; i < n; i++) {
        if (at[i] != NONE)
            __builtin_prefetch(&known->lines[known->locations[at[i]].first]);
    }
    lines = remap->lines;
    for (uint32_t i = 0; i < n; lines += from[list[i++]].n) {
        uint32_t n_lines = from[list[i]].n;

        remap->locations[list[i]] =
            at[i] != NONE && kiln_location_is(known, at[i], &made[i], lines, n_lines)
                ? is_it(remap, &remap->next.location, at[i])
                : kiln_remap_find_location(remap, &made[i], lines, n_lines);
    }
}

/* The frames of a chunk of stacks; false (and sticky) if there is no memory for them. */
static bool make_frames(struct kiln_remap *remap, const uint32_t *list, uint32_t n)
{
    const struct kiln_dict *from = &remap->from->dict;
    uint64_t need = 1;
    uint32_t *to;

    for (uint32_t i = 0; i < n; i++)
        need += from->stacks[list[i]].n;
    if (!kiln_builder_room(remap->b, (void **)&remap->frames, &remap->cap_frames, need,
                           sizeof(*remap->frames)))
        return false;
    to = remap->frames;
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_range range = from->stacks[list[i]];

        for (uint32_t k = 0; k < range.n; k++)
            *to++ = remap->locations[from->frames[range.first + k]];
    }
    return true;
}

static void bring_stacks(struct kiln_remap *remap, const uint32_t *list, uint32_t n, bool look)
{
    const struct kiln_builder *b = remap->b;
    const struct kiln_dict *known = &b->box->batch.dict;
    const struct kiln_range *from = remap->from->dict.stacks;
    const uint32_t *frames;
    uint64_t hashes[CHUNK];
    uint32_t at[CHUNK];

    if (!make_frames(remap, list, n))
        return;
    frames = remap->frames;
    for (uint32_t i = 0; look && i < n; frames += from[list[i++]].n) {
        hashes[i] = kiln_hash(frames, from[list[i]].n * sizeof(*frames));
        fetch_group(&b->stacks, hashes[i]);
    }
    fetch_entries(&b->stacks, known->stacks, sizeof(*from), look ? hashes : NULL, n, at);
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_range range = at[i] == NONE ? (struct kiln_range){0} : known->stacks[at[i]];

        for (uint32_t k = 0; k < range.n; k += 64 / sizeof(*frames))
            __builtin_prefetch(known->frames + range.first + k);
    }
    frames = remap->frames;
    for (uint32_t i = 0; i < n; frames += from[list[i++]].n) {
        uint32_t depth = from[list[i]].n;

        remap->stacks[list[i]] = at[i] != NONE && known->stacks[at[i]].n == depth &&
                                         memcmp(known->frames + known->stacks[at[i]].first, frames,
                                                depth * sizeof(*frames)) == 0
                                     ? is_it(remap, &remap->next.stack, at[i])
                                     : kiln_remap_find_stack(remap, frames, depth);
    }
}

/* ---- all of them ---- */

static void bring(struct kiln_remap *remap, const uint32_t *list, uint32_t n,
                  void (*chunk)(struct kiln_remap *, const uint32_t *, uint32_t, bool))
{
    bool look = true;

    for (uint32_t i = 0; i < n && !remap->b->error; i += CHUNK) {
        uint32_t size = n - i < CHUNK ? n - i : CHUNK, before = remap->guessed;

        chunk(remap, list + i, size, look);
        look = remap->guessed - before < size / 2;
    }
}

void kiln_remap_ahead(struct kiln_remap *remap)
{
    const struct kiln_dict *d = &remap->from->dict;
    size_t n = (size_t)d->n_stacks + d->n_locations + d->n_functions + d->n_strings;
    uint32_t *stacks = kiln_malloc((n + 1) * sizeof(*stacks));
    uint32_t *locations, *functions, *strings;
    uint32_t n_stacks, n_locations, n_functions, n_strings;

    assert(!remap->edit && !remap->sole && !remap->notes_touched);
    if (!stacks) {
        kiln_builder_fail(remap->b, -ENOMEM);
        return;
    }
    n_stacks = list_stacks(remap, stacks);
    locations = stacks + n_stacks;
    n_locations = list_locations(remap, stacks, n_stacks, locations);
    functions = locations + n_locations;
    n_functions = list_functions(remap, locations, n_locations, functions);
    strings = functions + n_functions;
    n_strings = list_strings(remap, functions, n_functions, strings);
    bring(remap, strings, n_strings, bring_strings);
    bring(remap, functions, n_functions, bring_functions);
    bring(remap, locations, n_locations, bring_locations);
    bring(remap, stacks, n_stacks, bring_stacks);
    kiln_free(stacks);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder_int - the inside of the builder, shared by builder.c (dictionary) and
 * builder_profiles.c (profiles, samples, finish).
 */
#ifndef KILN_CORE_BUILDER_INT_H
#define KILN_CORE_BUILDER_INT_H

#include "base/hash.h"
#include "core/batch_int.h"
#include "core/builder.h"
#include "core/intern.h"

/* How many elements fit into each array of the batch. */
struct kiln_caps {
    uint32_t strings, functions, mappings, locations, lines, stacks, frames, links, attrs, nested,
        lists, sets, members, resources, entities, entity_keys, scopes, profiles, samples,
        observations, owners;
};

struct kiln_builder {
    struct kiln_batch_box *box;
    struct kiln_limits limits;
    struct kiln_caps cap;
    struct kiln_arena scratch; /* gone at finish */
    int error;                 /* sticky */

    struct kiln_intern strings, functions, mappings, locations, stacks, links, attrs, lists, sets;

    /* What followed the one that was found last: senders repeat their tables in one order. */
    uint32_t next_string, next_function, next_location;

    struct kiln_range *list_ranges; /* the ranges of dict.nested that `lists` is an index over */

    /*
     * The profile of each sample, kept only once samples come out of the order of their profiles;
     * until then the profiles' ranges say it.
     */
    uint32_t *owners;
    uint32_t last_owner;

    uint64_t silent; /* samples left out because nothing was observed of them */
};

/* Makes a batch array larger, from wherever it lies; returns 0, -ENOMEM or KILN_E_LIMIT. */
KILN_CHECK int kiln_builder_grow(struct kiln_builder *b, void **array, uint32_t *cap, uint64_t need,
                                 size_t size);

/* Room for `more` elements behind the `n` of a batch array; false (and sticky) on failure. */
#define ROOM(b, array, count, capacity, more)                                                      \
    kiln_builder_fit((b), (void **)&(array), &(b)->cap.capacity, (uint64_t)(count) + (more),       \
                     sizeof(*(array)))

static inline bool kiln_builder_fit(struct kiln_builder *b, void **array, uint32_t *cap,
                                    uint64_t need, size_t size)
{
    int r;

    if (KILN_LIKELY(need <= *cap))
        return b->error == 0;
    r = b->error ? b->error : kiln_builder_grow(b, array, cap, need, size);
    if (r < 0)
        kiln_builder_fail(b, r);
    return r == 0;
}

/* The same for an array beside the batch, which whoever needs it frees with kiln_array_free(). */
#define SIDE_ROOM(b, array, count, capacity, more)                                                 \
    kiln_builder_room((b), (void **)&(array), &(b)->cap.capacity, (uint64_t)(count) + (more),      \
                      sizeof(*(array)))

static inline bool kiln_builder_room(struct kiln_builder *b, void **array, uint32_t *cap,
                                     uint64_t need, size_t size)
{
    int r;

    if (KILN_LIKELY(need <= *cap))
        return b->error == 0;
    r = b->error ? b->error
                 : kiln_grow(&b->box->budget, array, cap, need, size, b->limits.table_count);
    if (r < 0)
        kiln_builder_fail(b, r);
    return r == 0;
}

/* Notes whose the next sample is, once samples come out of order; false (and sticky) on failure. */
bool kiln_builder_own(struct kiln_builder *b, uint32_t profile);

/* ---- hashes of entries ---- */

static inline uint64_t kiln_hash_function(const struct kiln_function *function)
{
    uint64_t hash = kiln_hash_mix(function->name, function->system_name);

    return kiln_hash_mix(hash ^ function->filename, (uint64_t)function->start_line);
}

static inline uint64_t kiln_hash_location(const struct kiln_location *location,
                                          const struct kiln_line *lines, uint32_t n_lines)
{
    uint64_t hash =
        kiln_hash_mix(location->address, (uint64_t)location->mapping << 32 | location->attrs);

    for (uint32_t i = 0; i < n_lines; i++)
        hash = kiln_hash_mix(hash, lines[i].function ^ (uint64_t)lines[i].line << 32 ^
                                       (uint64_t)lines[i].column << 56);
    return hash;
}

/* Most locations have one line, or none. */
static inline bool kiln_lines_are(const struct kiln_line *a, const struct kiln_line *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (a[i].function != b[i].function || a[i].line != b[i].line || a[i].column != b[i].column)
            return false;
    }
    return true;
}

static inline bool kiln_location_is(const struct kiln_dict *d, uint32_t known,
                                    const struct kiln_location *location,
                                    const struct kiln_line *lines, uint32_t n_lines)
{
    const struct kiln_location *l = &d->locations[known];

    return l->address == location->address && l->mapping == location->mapping &&
           l->attrs == location->attrs && l->n == n_lines &&
           kiln_lines_are(&d->lines[l->first], lines, n_lines);
}

static inline bool kiln_function_is(const struct kiln_function *a, const struct kiln_function *b)
{
    return a->name == b->name && a->system_name == b->system_name && a->filename == b->filename &&
           a->start_line == b->start_line;
}

static inline uint64_t kiln_hash_mapping(const struct kiln_mapping *mapping)
{
    uint64_t hash = kiln_hash_mix(mapping->start, mapping->limit);

    hash = kiln_hash_mix(hash ^ mapping->filename, mapping->offset);
    return kiln_hash_mix(hash, mapping->attrs);
}

/* Of the three words of a struct kiln_attr. */
static inline uint64_t kiln_hash_attr(const uint64_t words[3])
{
    return kiln_hash_mix(kiln_hash_mix(words[0], words[1]), words[2]);
}

/* One by one: they were just written, and a wide load behind narrow stores stalls. */
static inline uint64_t kiln_hash_members(const uint32_t *list, uint32_t n)
{
    uint64_t hash = n;

    for (uint32_t i = 0; i < n; i++)
        hash = kiln_hash_mix(hash, list[i]);
    return hash;
}

/* ---- entries that are not in the indexes yet (core/bulk.h) ---- */

/* Whether the index of a table lacks entries; all but entry 0 belong into it. */
static inline bool kiln_builder_behind(const struct kiln_intern *index, uint32_t n_entries)
{
    return KILN_UNLIKELY(index->n + 1 < n_entries);
}

/* Indexes what an index of this builder lacks; false (and sticky) on failure. */
bool kiln_builder_catch_up(struct kiln_builder *b, struct kiln_intern *index);

static inline uint64_t kiln_hash_stack(const struct kiln_dict *d, struct kiln_range stack)
{
    return kiln_hash(d->frames + stack.first, stack.n * sizeof(*d->frames));
}

#endif /* KILN_CORE_BUILDER_INT_H */

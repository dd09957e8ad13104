/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern - a hash index over the entries of some array: which entry equals this one?
 *
 * It stores positions and hashes, never the entries; the caller compares.
 *
 *   for (struct kiln_probe p = kiln_intern_probe(t, hash); kiln_intern_next(t, &p);)
 *       if (entry[p.entry] equals the wanted one) return p.entry;
 *   kiln_intern_add(t, budget, hash, new_entry);
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_CORE_INTERN_H
#define KILN_CORE_INTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

/*
 * Slots come in groups of eight, each with a byte that holds seven bits of its entry's hash, or 0
 * when it is free.  A look-up compares the eight bytes of a group at once, and goes to the next
 * group only when one is full, which is rare: most look-ups decide with one predictable branch.
 */
#define KILN_INTERN_GROUP 8u

struct kiln_intern_slot {
    uint32_t entry;
    uint32_t hash; /* to grow without asking again */
};

struct kiln_intern {
    uint64_t *tags;                 /* a group each; NULL until the first entry */
    struct kiln_intern_slot *slots; /* eight a group */
    uint32_t n_groups;
    uint32_t n;   /* entries */
    uint32_t max; /* entries that fit before it must grow */
};

struct kiln_probe {
    uint64_t matches; /* a high bit for each slot of the group that may be it */
    uint64_t tag;     /* the wanted tag, in every byte */
    uint32_t group;
    uint32_t entry; /* the candidate kiln_intern_next() found */
};

#define KILN_INTERN_LOW  0x0101010101010101u
#define KILN_INTERN_HIGH 0x8080808080808080u

/* Spreads a hash over any number of groups: no power of two, so no memory for rounding up. */
static inline uint32_t kiln_intern_home(const struct kiln_intern *t, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash * t->n_groups >> 32);
}

static inline uint32_t kiln_intern_after(const struct kiln_intern *t, uint32_t group)
{
    return group + 1 == t->n_groups ? 0 : group + 1;
}

static inline uint32_t kiln_intern_fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/* The high bit of each byte of `tags` that equals `tag`, and perhaps of a few that do not. */
static inline uint64_t kiln_intern_match(uint64_t tags, uint64_t tag)
{
    uint64_t x = tags ^ tag;

    return (x - KILN_INTERN_LOW) & ~x & KILN_INTERN_HIGH;
}

static inline struct kiln_probe kiln_intern_probe(const struct kiln_intern *t, uint64_t hash)
{
    uint32_t folded = kiln_intern_fold(hash);
    struct kiln_probe p = {.tag = ((folded & 0x7f) | 0x80) * KILN_INTERN_LOW,
                           .group = kiln_intern_home(t, folded)};

    p.matches = t->tags ? kiln_intern_match(t->tags[p.group], p.tag) : 0;
    return p;
}

/* Goes to the next entry that may have the same hash; false when there is none. */
static inline bool kiln_intern_next(const struct kiln_intern *t, struct kiln_probe *p)
{
    while (p->matches == 0) {
        if (KILN_LIKELY(!t->tags || (~t->tags[p->group] & KILN_INTERN_HIGH)))
            return false; /* a free slot: it would have been put there */
        p->group = kiln_intern_after(t, p->group);
        p->matches = kiln_intern_match(t->tags[p->group], p->tag);
    }
    p->entry =
        t->slots[p->group * KILN_INTERN_GROUP + (unsigned)__builtin_ctzll(p->matches) / 8].entry;
    p->matches &= p->matches - 1;
    return true;
}

/* Room for `more` entries beyond those there are.  Returns 0, -ENOMEM or KILN_E_LIMIT. */
KILN_CHECK int kiln_intern_expect(struct kiln_intern *t, struct kiln_budget *budget, uint64_t more);

/* Puts an entry into the first free slot from its home on; there must be one. */
static inline void kiln_intern_place(struct kiln_intern *t, uint32_t hash, uint32_t entry)
{
    uint32_t group = kiln_intern_home(t, hash);
    uint64_t vacant;
    unsigned slot;

    while (KILN_UNLIKELY(!(vacant = ~t->tags[group] & KILN_INTERN_HIGH)))
        group = kiln_intern_after(t, group);
    slot = (unsigned)__builtin_ctzll(vacant) / 8;
    t->tags[group] |= (uint64_t)((hash & 0x7f) | 0x80) << slot * 8;
    t->slots[group * KILN_INTERN_GROUP + slot] = (struct kiln_intern_slot){entry, hash};
}

/* Adds an entry that is known to be new.  Returns 0, -ENOMEM or KILN_E_LIMIT. */
static inline KILN_CHECK int kiln_intern_add(struct kiln_intern *t, struct kiln_budget *budget,
                                             uint64_t hash, uint32_t entry)
{
    uint32_t folded = kiln_intern_fold(hash);

    if (KILN_UNLIKELY(t->n == t->max)) {
        int r = kiln_intern_expect(t, budget, (uint64_t)t->n + 1);

        if (r < 0)
            return r;
    }
    kiln_intern_place(t, folded, entry);
    t->n++;
    return 0;
}

void kiln_intern_done(struct kiln_intern *t, struct kiln_budget *budget);

#endif /* KILN_CORE_INTERN_H */

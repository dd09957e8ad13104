/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern - a hash index over the entries of some array: which entry equals this one?
 *
 * It stores positions and 32-bit hashes, never the entries; the caller compares.  Open addressing
 * with linear probing, at most two thirds full, nothing is ever removed.
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

#include "base/mem.h"

struct kiln_intern_slot {
    uint32_t hash;
    uint32_t entry; /* 1 + the position, or 0 when free */
};

struct kiln_intern {
    struct kiln_intern_slot *slots; /* NULL until the first entry */
    uint32_t n_slots;               /* 0 or a power of two */
    uint32_t n;                     /* entries */
};

struct kiln_probe {
    uint32_t hash;
    uint32_t at;
    uint32_t entry; /* the candidate kiln_intern_next() found */
};

static inline struct kiln_probe kiln_intern_probe(const struct kiln_intern *t, uint64_t hash)
{
    uint32_t folded = (uint32_t)(hash ^ hash >> 32);

    return (struct kiln_probe){.hash = folded, .at = folded & (t->n_slots - 1)};
}

/* Goes to the next entry with the same hash; false when there is none. */
static inline bool kiln_intern_next(const struct kiln_intern *t, struct kiln_probe *p)
{
    if (KILN_UNLIKELY(!t->slots))
        return false;
    for (;; p->at = (p->at + 1) & (t->n_slots - 1)) {
        struct kiln_intern_slot slot = t->slots[p->at];

        if (slot.entry == 0)
            return false;
        if (slot.hash == p->hash) {
            p->entry = slot.entry - 1;
            p->at = (p->at + 1) & (t->n_slots - 1);
            return true;
        }
    }
}

/* Room for `more` entries beyond those there are.  Returns 0, -ENOMEM or KILN_E_LIMIT. */
KILN_CHECK int kiln_intern_expect(struct kiln_intern *t, struct kiln_budget *budget, uint64_t more);

/* Adds an entry that is known to be new.  Returns 0, -ENOMEM or KILN_E_LIMIT. */
KILN_CHECK int kiln_intern_add(struct kiln_intern *t, struct kiln_budget *budget, uint64_t hash,
                               uint32_t entry);

void kiln_intern_done(struct kiln_intern *t, struct kiln_budget *budget);

#endif /* KILN_CORE_INTERN_H */

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "core/intern.h"

#define SLOTS_MIN 64u
#define SLOTS_MAX (1u << 30)

static void place(struct kiln_intern *t, struct kiln_intern_slot slot)
{
    uint32_t at = slot.hash & (t->n_slots - 1);

    while (t->slots[at].entry)
        at = (at + 1) & (t->n_slots - 1);
    t->slots[at] = slot;
}

static int rebuild(struct kiln_intern *t, struct kiln_budget *budget, uint32_t n_slots)
{
    struct kiln_intern old = *t;
    int r;

    r = kiln_budget_take(budget, (size_t)n_slots * sizeof(*t->slots));
    if (r < 0)
        return r;
    t->slots = kiln_calloc(n_slots, sizeof(*t->slots));
    if (!t->slots) {
        t->slots = old.slots;
        kiln_budget_give(budget, (size_t)n_slots * sizeof(*t->slots));
        return -ENOMEM;
    }
    t->n_slots = n_slots;
    for (uint32_t i = 0; i < old.n_slots; i++) {
        if (old.slots[i].entry)
            place(t, old.slots[i]);
    }
    kiln_free(old.slots);
    kiln_budget_give(budget, (size_t)old.n_slots * sizeof(*t->slots));
    return 0;
}

int kiln_intern_expect(struct kiln_intern *t, struct kiln_budget *budget, uint64_t more)
{
    uint64_t need = (t->n + more) + (t->n + more) / 2;
    uint32_t n_slots = t->n_slots ? t->n_slots : SLOTS_MIN;

    if (need > SLOTS_MAX)
        return KILN_E_LIMIT;
    while (n_slots < need)
        n_slots *= 2;
    return n_slots == t->n_slots ? 0 : rebuild(t, budget, n_slots);
}

int kiln_intern_add(struct kiln_intern *t, struct kiln_budget *budget, uint64_t hash,
                    uint32_t entry)
{
    if (KILN_UNLIKELY((uint64_t)(t->n + 1) * 3 > (uint64_t)t->n_slots * 2)) {
        int r = kiln_intern_expect(t, budget, (uint64_t)t->n + 1);

        if (r < 0)
            return r;
    }
    place(t, (struct kiln_intern_slot){(uint32_t)(hash ^ hash >> 32), entry + 1});
    t->n++;
    return 0;
}

void kiln_intern_done(struct kiln_intern *t, struct kiln_budget *budget)
{
    kiln_free(t->slots);
    kiln_budget_give(budget, (size_t)t->n_slots * sizeof(*t->slots));
    *t = (struct kiln_intern){0};
}

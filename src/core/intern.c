/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "core/intern.h"

#define GROUPS_MIN 4u
#define GROUPS_MAX (1u << 27)
#define FILL       5u /* entries a group on average when it is as full as it gets */

/* Bytes of an index of that many groups: the tags, then the slots. */
static size_t bytes_of(uint32_t n_groups)
{
    return (size_t)n_groups *
           (sizeof(uint64_t) + KILN_INTERN_GROUP * sizeof(struct kiln_intern_slot));
}

static int rebuild(struct kiln_intern *t, struct kiln_budget *budget, uint32_t n_groups)
{
    struct kiln_intern old = *t;
    void *block;
    int r = kiln_budget_take(budget, bytes_of(n_groups));

    if (r < 0)
        return r;
    block = kiln_malloc(bytes_of(n_groups));
    if (!block) {
        kiln_budget_give(budget, bytes_of(n_groups));
        return -ENOMEM;
    }
    memset(block, 0, n_groups * sizeof(uint64_t));
    t->n_groups = n_groups;
    t->max = n_groups * FILL;
    t->tags = block;
    t->slots = (struct kiln_intern_slot *)(t->tags + n_groups);
    for (uint32_t i = 0; i < old.n_groups * KILN_INTERN_GROUP; i++) {
        if (old.tags[i / KILN_INTERN_GROUP] >> i % KILN_INTERN_GROUP * 8 & 0x80)
            kiln_intern_place(t, old.slots[i].hash, old.slots[i].entry);
    }
    kiln_free(old.tags);
    kiln_budget_give(budget, bytes_of(old.n_groups));
    return 0;
}

int kiln_intern_expect(struct kiln_intern *t, struct kiln_budget *budget, uint64_t more)
{
    uint64_t need = (t->n + more + FILL - 1) / FILL;

    if (need > GROUPS_MAX)
        return KILN_E_LIMIT;
    if (need < GROUPS_MIN)
        need = GROUPS_MIN;
    return need <= t->n_groups ? 0 : rebuild(t, budget, (uint32_t)need);
}

void kiln_intern_done(struct kiln_intern *t, struct kiln_budget *budget)
{
    kiln_free(t->tags);
    kiln_budget_give(budget, bytes_of(t->n_groups));
    *t = (struct kiln_intern){0};
}

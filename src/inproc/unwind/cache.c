/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/unwind/cache.h"

enum { ERA_SHIFT = 48 };

struct kiln_in_cache kiln_in_cache;

/* Whether an entry is of this era: its address would be in this set. */
static int is_used(struct kiln_in_cache_entry *set, int i, uint64_t era)
{
    uint64_t rule = atomic_load_explicit(&set[i].rule, memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&set[i].check, memory_order_relaxed);
    uint64_t address = kiln_in_cache_check(check, rule, era);

    return rule && address >> ERA_SHIFT == 0 && kiln_in_cache_set(address) == set;
}

void kiln_in_cache_put(uint64_t address, uint64_t rule, uint64_t era)
{
    struct kiln_in_cache_entry *set = kiln_in_cache_set(address);
    uint64_t puts = atomic_fetch_add_explicit(&kiln_in_cache.puts, 1, memory_order_relaxed);
    int i = 0;

    while (i < KILN_IN_CACHE_WAYS && is_used(set, i, era))
        i++;
    if (i == KILN_IN_CACHE_WAYS)
        i = (int)(puts & (KILN_IN_CACHE_WAYS - 1));
    atomic_store_explicit(&set[i].check, kiln_in_cache_check(address, rule, era),
                          memory_order_relaxed);
    atomic_store_explicit(&set[i].rule, rule, memory_order_relaxed);
}

void kiln_in_cache_forget(void)
{
    atomic_fetch_add_explicit(&kiln_in_cache.era, (uint64_t)1 << ERA_SHIFT, memory_order_acq_rel);
}

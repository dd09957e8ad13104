/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An array in no order under one lock: a program has few mappings compared to blocks, and each
 * comes and goes by a system call.  What was being moved when its thread left by a jump may be
 * wrong until it is unmapped.
 */
#include "inproc/sample/region.h"

#include <stdatomic.h>

#include "inproc/sample/spin.h"
#include "inproc/thread/visit.h"

static struct kiln_in_live regions[KILN_IN_REGIONS_MAX];
static _Atomic uint32_t n_regions;
static _Atomic uintptr_t lock; /* the line of who has it; 0: nobody */

static bool lock_all(struct kiln_in_visit *visit)
{
    kiln_in_visit_begin(visit);
    for (unsigned turn = 0; turn < KILN_IN_SPIN_TURNS; turn++) {
        uintptr_t nobody = 0;

        if (atomic_compare_exchange_strong(&lock, &nobody, (uintptr_t)&kiln_in_line))
            return true;
        kiln_in_spin(turn);
    }
    kiln_in_visit_end(visit);
    return false;
}

static void unlock_all(struct kiln_in_visit *visit)
{
    atomic_store_explicit(&lock, 0, memory_order_release);
    kiln_in_visit_end(visit);
}

static int append(const struct kiln_in_live *region)
{
    uint32_t n = n_regions;

    if (n == KILN_IN_REGIONS_MAX)
        return -1;
    regions[n] = *region;
    n_regions = n + 1;
    return 0;
}

static void drop(uint32_t index)
{
    uint32_t last = n_regions - 1;

    regions[index] = regions[last];
    n_regions = last;
}

int kiln_in_region_add(const struct kiln_in_live *region)
{
    struct kiln_in_visit visit;
    int r;

    if (!lock_all(&visit))
        return -1;
    r = append(region);
    unlock_all(&visit);
    return r;
}

/* What is left on both sides; where there is room for one of them only, that is the lower. */
static void cut_one(uint32_t index, uint64_t from, uint64_t to)
{
    struct kiln_in_live *region = &regions[index];
    struct kiln_in_live upper = *region;
    uint64_t end = region->address + region->size;

    upper.address = to;
    upper.size = end > to ? end - to : 0;
    region->size = from > region->address ? from - region->address : 0;
    if (region->size == 0 && upper.size == 0)
        drop(index);
    else if (region->size == 0)
        *region = upper;
    else if (upper.size != 0)
        append(&upper);
}

void kiln_in_region_cut(uint64_t from, uint64_t to)
{
    struct kiln_in_visit visit;

    if (n_regions == 0 || !lock_all(&visit))
        return;
    for (uint32_t i = n_regions; i-- > 0;) {
        if (regions[i].address < to && from < regions[i].address + regions[i].size)
            cut_one(i, from, to);
    }
    unlock_all(&visit);
}

bool kiln_in_region_take(uint64_t address, struct kiln_in_live *ret)
{
    struct kiln_in_visit visit;
    uint32_t i = 0;
    bool found;

    if (n_regions == 0 || !lock_all(&visit))
        return false;
    while (i < n_regions && regions[i].address != address)
        i++;
    found = i < n_regions;
    if (found) {
        *ret = regions[i];
        drop(i);
    }
    unlock_all(&visit);
    return found;
}

static bool copy_region(uint32_t index, struct kiln_in_live *ret)
{
    struct kiln_in_visit visit;
    bool found;

    if (!lock_all(&visit))
        return false;
    found = index < n_regions;
    if (found)
        *ret = regions[index];
    unlock_all(&visit);
    return found;
}

void kiln_in_region_each(void (*look)(const struct kiln_in_live *region, void *arg), void *arg)
{
    struct kiln_in_live region;

    for (uint32_t i = 0; i < n_regions; i++) {
        if (copy_region(i, &region))
            look(&region, arg);
    }
}

uint32_t kiln_in_region_count(void)
{
    return n_regions;
}

void kiln_in_region_left(void)
{
    uintptr_t own = (uintptr_t)&kiln_in_line;

    atomic_compare_exchange_strong(&lock, &own, 0);
}

void kiln_in_region_forked(void)
{
    atomic_store(&lock, 0);
}

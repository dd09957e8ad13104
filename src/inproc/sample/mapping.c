/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings are few and large: each is sampled or not by a throw of its own, with the chance that an
 * allocation of its size has (sample/alloc.c), and weighs as much.
 */
#include "inproc/sample/mapping.h"

#include <string.h>
#include <sys/mman.h>

#include "inproc/sample/alloc.h"
#include "inproc/sample/poisson.h"
#include "inproc/sample/region.h"
#include "inproc/start.h"
#include "inproc/thread/thread.h"
#include "inproc/unwind/unwind.h"

bool kiln_in_mapping_wanted(void)
{
    return kiln_in_is_on() && kiln_in_wants(KILN_PROFILE_MMAP);
}

static void sample(struct kiln_in_thread *thread, void *address, size_t length, double chance)
{
    struct kiln_in_live region = {.address = (uint64_t)(uintptr_t)address, .size = length};
    struct kiln_in_record record;

    kiln_in_record_begin(&record, KILN_IN_MMAP);
    record.count = 1 / chance;
    record.value = record.count * (double)length;
    record.stack = kiln_in_stack_here(thread);
    if (kiln_in_ring_put(thread, &record) < 0)
        return;
    region.count = record.count;
    region.at_ns = record.at_ns;
    region.stack = record.stack;
    region.labels = record.labels;
    memcpy(region.trace, record.trace, sizeof(region.trace));
    memcpy(region.span, record.span, sizeof(region.span));
    if (kiln_in_region_add(&region) < 0)
        kiln_in_lost(thread, KILN_IN_LOST_LIVE);
}

/* Whatever is known of this place was unmapped behind our back. */
void kiln_in_mapping_made(void *address, size_t length)
{
    struct kiln_in_thread *thread;
    double chance;

    kiln_in_mapping_ends(address, length);
    thread = kiln_in_enter();
    if (!thread)
        return;
    chance = kiln_in_poisson_chance((double)length, (double)kiln_in_alloc_mean());
    if (kiln_in_random_unit(thread) <= chance)
        sample(thread, address, length, chance);
    kiln_in_leave(thread);
}

void kiln_in_mapping_ends(void *address, size_t length)
{
    uint64_t from = (uint64_t)(uintptr_t)address;

    if (from + length > from)
        kiln_in_region_cut(from, from + length);
}

bool kiln_in_mapping_moves(void *address, struct kiln_in_live *ret_old)
{
    return kiln_in_region_take((uint64_t)(uintptr_t)address, ret_old);
}

/* Growth is of the same sample: more bytes of what was mapped already, with the same weight. */
static void tell_growth(const struct kiln_in_live *old, size_t length)
{
    struct kiln_in_thread *thread = kiln_in_enter();
    struct kiln_in_record record;

    if (!thread)
        return;
    kiln_in_record_begin(&record, KILN_IN_MMAP);
    record.value = old->count * (double)(length - old->size);
    record.stack = kiln_in_stack_here(thread);
    kiln_in_ring_put(thread, &record);
    kiln_in_leave(thread);
}

void kiln_in_mapping_moved(const struct kiln_in_live *old, void *to, size_t length)
{
    struct kiln_in_live region = *old;

    if (to != MAP_FAILED) {
        region.address = (uint64_t)(uintptr_t)to;
        region.size = length;
        if (length > old->size)
            tell_growth(old, length);
    }
    kiln_in_region_add(&region);
}

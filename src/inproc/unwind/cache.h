/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache - the rule of an address, shared by all threads, without a lock.  Addresses are those
 * behind an instruction, as return addresses are.
 *
 * Sets of four, each a cache line.  An entry is two words that are read and written on their own:
 * the rule, and the address folded with the rule and the era.  Two halves that do not belong
 * together, and everything of an era that is over, do not match: they are as good as absent.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_UNWIND_CACHE_H
#define KILN_INPROC_UNWIND_CACHE_H

#include <stdatomic.h>
#include <stdint.h>

enum { KILN_IN_CACHE_WAYS = 4, KILN_IN_CACHE_SETS = 4096 };

struct kiln_in_cache_entry {
    _Atomic uint64_t check, rule; /* rule 0: empty */
};

_Static_assert(sizeof(struct kiln_in_cache_entry) * KILN_IN_CACHE_WAYS == 64, "a set is a line");

struct kiln_in_cache {
    _Alignas(64) struct kiln_in_cache_entry entries[KILN_IN_CACHE_SETS][KILN_IN_CACHE_WAYS];
    _Alignas(64) _Atomic uint64_t era; /* in the bits that no address has */
    _Atomic uint64_t puts;
};
extern struct kiln_in_cache kiln_in_cache __attribute__((visibility("hidden")));

static inline struct kiln_in_cache_entry *kiln_in_cache_set(uint64_t address)
{
    uint64_t bytes = (address << 6 ^ address >> 7) & ((KILN_IN_CACHE_SETS - 1) << 6);

    return (struct kiln_in_cache_entry *)((char *)kiln_in_cache.entries + bytes);
}

static inline uint64_t kiln_in_cache_check(uint64_t address, uint64_t rule, uint64_t era)
{
    return address ^ era ^ (rule << 5 | rule >> 59);
}

static inline uint64_t kiln_in_cache_era(void)
{
    return atomic_load_explicit(&kiln_in_cache.era, memory_order_acquire);
}

static inline __attribute__((always_inline)) uint64_t
kiln_in_cache_entry_rule(struct kiln_in_cache_entry *entry, uint64_t address, uint64_t era)
{
    uint64_t rule = atomic_load_explicit(&entry->rule, memory_order_relaxed);
    uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);

    return check == kiln_in_cache_check(address, rule, era) ? rule : 0;
}

/* 0: it is not there. */
static inline __attribute__((always_inline)) uint64_t kiln_in_cache_find(uint64_t address,
                                                                         uint64_t era)
{
    struct kiln_in_cache_entry *set = kiln_in_cache_set(address);
    uint64_t rule = kiln_in_cache_entry_rule(&set[0], address, era);

    if (!rule)
        rule = kiln_in_cache_entry_rule(&set[1], address, era);
    if (!rule)
        rule = kiln_in_cache_entry_rule(&set[2], address, era);
    if (!rule)
        rule = kiln_in_cache_entry_rule(&set[3], address, era);
    return rule;
}

/* `era` is from before the rule was looked up. */
void kiln_in_cache_put(uint64_t address, uint64_t rule, uint64_t era);
/* From now on it is empty. */
void kiln_in_cache_forget(void);

#endif /* KILN_INPROC_UNWIND_CACHE_H */

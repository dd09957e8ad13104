/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in the directory is also in a hash here, which is asked in user space, and tells whose a
 * block of memory is.
 *
 * Making room for a block: a few blocks of that size are drawn at random, and whatever lies in the
 * one that was not used for longest goes.  Small and large ones are treated alike: a large
 * one takes all that lies in it, a small one the slot that it lies in.
 *
 * How a slot changes hands while the kernel reads: its generation becomes 0, then its words are
 * written, then the new generation, then the directory.  A reader that found the old entry sees
 * another generation behind what it read, whenever it came.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/metric.h"
#include "host/tables_int.h"

enum { DRAWS = 8, TRIES = 64 };

static uint32_t tick_now(void)
{
    return (uint32_t)(kiln_clock_mono_ns() >> KILN_TICK_SHIFT);
}

/* A header's halves are written each by itself: the kernel stamps the high one at any time. */
static uint32_t __attribute__((may_alias)) *
    half_of(struct kiln_tables *tables, uint32_t at, int high)
{
    return (uint32_t *)(void *)&tables->memory->words[at] + high;
}

/* In ticks; the kernel may have been there since `now`. */
static uint32_t age_at(struct kiln_tables *tables, uint32_t at, uint32_t now)
{
    uint32_t age = now - __atomic_load_n(half_of(tables, at, 1), __ATOMIC_RELAXED);

    return age > INT32_MAX ? 0 : age;
}

static void stamp(struct kiln_tables *tables, uint32_t at)
{
    __atomic_store_n(half_of(tables, at, 1), tick_now(), __ATOMIC_RELAXED);
}

static void set_generation(struct kiln_tables *tables, uint32_t at, uint32_t generation)
{
    __atomic_store_n(half_of(tables, at, 0), generation, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static uint32_t *chain_of(struct kiln_tables *tables, const struct kiln_dir_key *key)
{
    uint64_t hash = kiln_hash_fold(key->file, key->page);

    return &tables->chains[hash & tables->chain_mask];
}

static bool is_key(const struct kiln_dir_key *a, const struct kiln_dir_key *b)
{
    return a->file == b->file && a->page == b->page;
}

struct kiln_slot *kiln_slot_find(struct kiln_tables *tables, const struct kiln_dir_key *key)
{
    for (uint32_t i = *chain_of(tables, key); i; i = tables->slots[i].next) {
        if (is_key(&tables->slots[i].key, key)) {
            stamp(tables, tables->slots[i].entry.slot);
            return &tables->slots[i];
        }
    }
    return NULL;
}

static void count(struct kiln_tables *tables, const struct kiln_slot *slot, uint64_t n)
{
    tables->n_used += (uint32_t)n;
    if (slot->key.file)
        tables->stats.pages += n;
    else
        tables->stats.processes += n;
}

/* Takes a slot out of the hash and gives its memory back; the directory is the caller's. */
static void release(struct kiln_tables *tables, struct kiln_slot *slot)
{
    uint32_t number = (uint32_t)(slot - tables->slots);
    uint32_t *link = chain_of(tables, &slot->key);

    while (*link != number)
        link = &tables->slots[*link].next;
    *link = slot->next;
    set_generation(tables, slot->entry.slot, 0);
    kiln_buddy_give(&tables->buddy, slot->entry.slot);
    count(tables, slot, UINT64_MAX);
    slot->entry.generation = 0;
    slot->next = tables->unused;
    tables->unused = number;
}

void kiln_slot_drop(struct kiln_tables *tables, struct kiln_slot *slot)
{
    struct kiln_dir_key key = slot->key;

    release(tables, slot);
    (void)tables->memory->drop(tables->memory, &key); /* what stays has a generation of nobody */
}

static void evict(struct kiln_tables *tables, struct kiln_slot *slot)
{
    tables->stats.evicted++;
    kiln_metric_add(tables->evicted, 1);
    kiln_slot_drop(tables, slot);
}

static uint32_t draw(struct kiln_tables *tables, uint32_t below)
{
    tables->random ^= tables->random << 13;
    tables->random ^= tables->random >> 7;
    tables->random ^= tables->random << 17;
    return (uint32_t)((tables->random >> 32) * below >> 32);
}

/* How long ago something in a region was used, in ticks; UINT32_MAX: nothing is in it. */
static uint32_t age_of(struct kiln_tables *tables, uint32_t begin, uint32_t end, uint32_t now)
{
    uint32_t age = UINT32_MAX;

    for (uint32_t at = begin; at < end;) {
        struct kiln_buddy_block block = kiln_buddy_block(&tables->buddy, at);

        if (!block.is_free && block.owner) {
            uint32_t its = age_at(tables, block.at, now);

            if (its < age)
                age = its;
        }
        at = block.at + ((uint32_t)1 << block.order);
    }
    return age;
}

static void clear(struct kiln_tables *tables, uint32_t begin, uint32_t end)
{
    for (uint32_t at = begin; at < end;) {
        struct kiln_buddy_block block = kiln_buddy_block(&tables->buddy, at);
        uint32_t next = block.at + ((uint32_t)1 << block.order);

        if (!block.is_free && block.owner)
            evict(tables, &tables->slots[block.owner]);
        at = next;
    }
}

/* Makes room for a block.  The first one has word 0 in it, which nobody gets. */
static void make_room(struct kiln_tables *tables, uint32_t order)
{
    uint32_t n = tables->buddy.n_words >> order, size = (uint32_t)1 << order, now = tick_now();
    uint32_t best = 0, best_age = 0;

    for (uint32_t i = 0; i < DRAWS && n > 1; i++) {
        uint32_t begin = (n - 1 <= DRAWS ? 1 + i % (n - 1) : 1 + draw(tables, n - 1)) << order;
        uint32_t age = age_of(tables, begin, begin + size, now);

        if (!best || age > best_age) {
            best = begin;
            best_age = age;
        }
    }
    if (best)
        clear(tables, best, best + size);
}

/* Makes room in the directory. */
static void evict_any(struct kiln_tables *tables)
{
    uint32_t best = 0, best_age = 0, now = tick_now();

    for (uint32_t i = 0; i < TRIES && tables->n_slots > 1; i++) {
        uint32_t number = 1 + draw(tables, tables->n_slots - 1);
        const struct kiln_slot *slot = &tables->slots[number];
        uint32_t age;

        if (slot->entry.generation == 0)
            continue;
        age = age_at(tables, slot->entry.slot, now);
        if (!best || age > best_age) {
            best = number;
            best_age = age;
        }
        if (i >= DRAWS)
            break;
    }
    if (best)
        evict(tables, &tables->slots[best]);
}

static int take_number(struct kiln_tables *tables, uint32_t *ret_number)
{
    int r;

    while (tables->n_used >= tables->memory->n_entries && tables->n_used)
        evict_any(tables);
    if (tables->unused) {
        *ret_number = tables->unused;
        tables->unused = tables->slots[tables->unused].next;
        return 0;
    }
    r = kiln_grow(&tables->budget, (void **)&tables->slots, &tables->cap_slots,
                  (uint64_t)(tables->n_slots ? tables->n_slots : 1) + 1, sizeof(*tables->slots),
                  KILN_BUDDY_OWNERS);
    if (r < 0)
        return r;
    if (!tables->n_slots)
        tables->n_slots = 1;
    *ret_number = tables->n_slots++;
    tables->slots[*ret_number] = (struct kiln_slot){0};
    return 0;
}

static uint32_t take_block(struct kiln_tables *tables, uint32_t n_words, uint32_t number)
{
    uint32_t order = kiln_buddy_order(n_words), at = 0;

    for (int i = 0; i < TRIES && !at; i++) {
        at = kiln_buddy_take(&tables->buddy, order, number);
        if (!at)
            make_room(tables, order);
    }
    return at;
}

static void give_number(struct kiln_tables *tables, uint32_t number)
{
    tables->slots[number].entry.generation = 0;
    tables->slots[number].next = tables->unused;
    tables->unused = number;
}

static uint32_t next_generation(struct kiln_tables *tables)
{
    if (++tables->generation == 0)
        tables->generation = 1;
    return tables->generation;
}

/* Into the directory; where that is full although it should not be, others go. */
static int publish(struct kiln_tables *tables, const struct kiln_dir_key *key,
                   const struct kiln_dir_entry *entry)
{
    int r = tables->memory->put(tables->memory, key, entry);

    for (int i = 0; i < TRIES && (r == -E2BIG || r == -ENOSPC || r == -ENOMEM); i++) {
        evict_any(tables);
        r = tables->memory->put(tables->memory, key, entry);
    }
    return r;
}

/* Until this, a number has generation 0, and nobody can evict it. */
static struct kiln_slot *enter(struct kiln_tables *tables, uint32_t number,
                               const struct kiln_slot_new *wanted,
                               const struct kiln_dir_entry *entry)
{
    uint32_t *chain = chain_of(tables, &wanted->key);
    struct kiln_slot *slot = &tables->slots[number];

    *slot = (struct kiln_slot){
        .key = wanted->key,
        .entry = *entry,
        .version = wanted->version,
        .n_source = wanted->n_source,
        .next = *chain,
    };
    *chain = number;
    count(tables, slot, 1);
    return slot;
}

int kiln_slot_put(struct kiln_tables *tables, const struct kiln_slot_new *wanted,
                  void (*write)(void *context, uint64_t *words), void *context,
                  struct kiln_slot **ret_slot)
{
    struct kiln_dir_entry entry = {.n = wanted->n, .era = wanted->era};
    struct kiln_slot *old;
    uint32_t number;
    int r = take_number(tables, &number);

    if (r < 0)
        return r;
    entry.slot = take_block(tables, wanted->n_words + 1, number);
    if (!entry.slot) {
        give_number(tables, number);
        return KILN_E_LIMIT;
    }
    entry.generation = next_generation(tables);
    set_generation(tables, entry.slot, 0);
    write(context, tables->memory->words + entry.slot + 1);
    stamp(tables, entry.slot);
    set_generation(tables, entry.slot, entry.generation);
    r = publish(tables, &wanted->key, &entry);
    old = kiln_slot_find(tables, &wanted->key);
    if (old)
        release(tables, old);
    if (r < 0) {
        (void)tables->memory->drop(tables->memory, &wanted->key);
        set_generation(tables, entry.slot, 0);
        kiln_buddy_give(&tables->buddy, entry.slot);
        give_number(tables, number);
        return r;
    }
    tables->stats.loaded++;
    kiln_metric_add(tables->loaded, 1);
    *ret_slot = enter(tables, number, wanted, &entry);
    return 0;
}

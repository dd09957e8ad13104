/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks lie in one array, the most recently freed place is used again first, so that as many pages
 * are touched as there are blocks.  They are found through buckets: a word each, with the first
 * block of a chain and, in the topmost bit, the lock of that chain.
 *
 *   heads[hash] ──▶ index + 1 ──▶ nexts[index] ──▶ ... 0        blocks[index]
 *
 * A lock is held for some ten nanoseconds and tried for a while only: its holder may have lost the
 * processor.  A thread that has one is `inside`, so that handlers on it do not sample.  Chains are
 * whole at any moment of it, and what is not in one has no address: where a thread has left by a
 * jump, its lock can be opened.
 *
 * The filter grows with the blocks: whoever adds one too many makes a larger one and counts all
 * blocks into it, bucket by bucket.  Meanwhile buckets it has passed (`walked`) are counted in
 * both, others in the old one; a bucket's lock decides which.  If a lock cannot be had the walk
 * goes on with a later block.
 */
#include "inproc/sample/live.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "inproc/sample/filter.h"
#include "inproc/sample/spin.h"
#include "inproc/thread/map.h"
#include "inproc/thread/visit.h"

enum { BUCKET_BITS = 15, BUCKETS = 1 << BUCKET_BITS };

static const uint32_t LOCKED = 1U << 31;
static const uint32_t NO_LOCK = UINT32_MAX; /* no head: an index has 20 bits */

struct table {
    _Atomic uint32_t heads[BUCKETS];
    uint32_t nexts[KILN_IN_LIVE_MAX];
    struct kiln_in_live blocks[KILN_IN_LIVE_MAX];
};

static struct table *table;
static _Atomic uint64_t free_top; /* count of changes << 32 | index + 1 */
static _Atomic uint32_t used;     /* places that were ever in use */
static _Atomic uint32_t live;

static _Atomic uintptr_t growing; /* the line of who makes a larger filter; 0: nobody does */
static _Atomic uintptr_t larger;  /* filter to be; 0: none */
static _Atomic uint32_t walked;   /* buckets that are counted in it */

_Static_assert(sizeof(struct kiln_in_live) == 64, "a block is a cache line");

int kiln_in_live_init(void)
{
    if (!table)
        table = kiln_in_map(sizeof(*table));
    return table ? 0 : -ENOMEM;
}

/* ---- places ---- */

/* An atomic load, because kiln_in_live_each() looks before it has the lock. */
static uint64_t address_at(uint32_t index)
{
    return __atomic_load_n(&table->blocks[index].address, __ATOMIC_RELAXED);
}

static uint32_t take_place(void)
{
    uint64_t top = atomic_load(&free_top);
    uint32_t fresh;

    while ((uint32_t)top != 0) {
        uint64_t rest = ((top >> 32) + 1) << 32 |
                        __atomic_load_n(&table->nexts[(uint32_t)top - 1], __ATOMIC_RELAXED);

        if (atomic_compare_exchange_weak(&free_top, &top, rest))
            return (uint32_t)top;
    }
    fresh = atomic_load(&used);
    do {
        if (fresh >= KILN_IN_LIVE_MAX)
            return 0;
    } while (!atomic_compare_exchange_weak(&used, &fresh, fresh + 1));
    return fresh + 1;
}

static void give_place(uint32_t place)
{
    uint64_t top = atomic_load(&free_top);

    do
        __atomic_store_n(&table->nexts[place - 1], (uint32_t)top, __ATOMIC_RELAXED);
    while (!atomic_compare_exchange_weak(&free_top, &top, ((top >> 32) + 1) << 32 | place));
}

/* ---- buckets ---- */

static uint32_t bucket_of(uint64_t address)
{
    return (uint32_t)(address * 0xff51afd7ed558ccd >> (64 - BUCKET_BITS));
}

/* In a handler that has interrupted one who has a lock, it is that one's that is known. */
static void note_lock(uint32_t bucket)
{
    if (kiln_in_line.live_locked == 0)
        kiln_in_line.live_locked = (uint16_t)(bucket + 1);
}

/*
 * Whoever asks for a block has it from whoever added it: what is not in the chain by now is none.
 * Most of what only looks like a block to the filter is told here, without a lock.
 */
static bool is_empty(uint32_t bucket)
{
    return atomic_load_explicit(&table->heads[bucket], memory_order_relaxed) == 0;
}

/* The first place of the chain, which is the caller's now; NO_LOCK: it was not to be had. */
static uint32_t lock_bucket_within(unsigned turns, uint32_t bucket, struct kiln_in_visit *visit)
{
    _Atomic uint32_t *at = &table->heads[bucket];

    kiln_in_visit_begin(visit);
    for (unsigned turn = 0; turn < turns; turn++) {
        uint32_t head = atomic_load_explicit(at, memory_order_relaxed);

        if (!(head & LOCKED) &&
            atomic_compare_exchange_weak_explicit(at, &head, head | LOCKED, memory_order_acquire,
                                                  memory_order_relaxed)) {
            note_lock(bucket);
            return head;
        }
        kiln_in_spin(turn);
    }
    kiln_in_visit_end(visit);
    return NO_LOCK;
}

static uint32_t lock_bucket(uint32_t bucket, struct kiln_in_visit *visit)
{
    return lock_bucket_within(KILN_IN_SPIN_TURNS, bucket, visit);
}

static void unlock_bucket(uint32_t bucket, uint32_t head, struct kiln_in_visit *visit)
{
    if (kiln_in_line.live_locked == bucket + 1)
        kiln_in_line.live_locked = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    atomic_store_explicit(&table->heads[bucket], head, memory_order_release);
    kiln_in_visit_end(visit);
}

static uint32_t next_of(uint32_t place)
{
    return __atomic_load_n(&table->nexts[place - 1], __ATOMIC_RELAXED);
}

static uint32_t find(uint32_t head, uint64_t address)
{
    uint32_t place = head;

    while (place && address_at(place - 1) != address)
        place = next_of(place);
    return place;
}

/* The head without the place, which is in the chain. */
static uint32_t unlink_place(uint32_t head, uint32_t place)
{
    uint32_t before = head;

    if (head == place)
        return next_of(place);
    while (next_of(before) != place)
        before = next_of(before);
    __atomic_store_n(&table->nexts[before - 1], next_of(place), __ATOMIC_RELAXED);
    return head;
}

/* ---- the filter; with the bucket's lock ---- */

/*
 * `larger` is read first: it is withdrawn after it has become the filter.  That may happen here,
 * where it has passed this bucket before, and `walked` may be the next one's by then: so the filter
 * is looked at once more.
 */
static void count_in_filters(uint32_t bucket, uint64_t address,
                             void (*count)(uintptr_t filter, const void *address))
{
    uintptr_t second = atomic_load_explicit(&larger, memory_order_acquire);
    uintptr_t filter = __atomic_load_n(&kiln_in_filter, __ATOMIC_ACQUIRE);

    bool both =
        second && second != filter && bucket < atomic_load_explicit(&walked, memory_order_acquire);
    uintptr_t now;

    count(filter, (const void *)(uintptr_t)address);
    if (both)
        count(second, (const void *)(uintptr_t)address);
    now = __atomic_load_n(&kiln_in_filter, __ATOMIC_ACQUIRE);
    if (now != filter && !(both && now == second))
        count(now, (const void *)(uintptr_t)address);
}

/*
 * A lock that is not to be had at once is tried again with the next block.  One that a jump has
 * left behind never is: then this one try is all that it costs.
 */
static bool walk_on(uintptr_t filter)
{
    uint32_t bucket = atomic_load_explicit(&walked, memory_order_relaxed);

    for (; bucket < BUCKETS; bucket++) {
        struct kiln_in_visit visit;
        uint32_t head = lock_bucket_within(1, bucket, &visit);

        if (head == NO_LOCK)
            return false;
        for (uint32_t place = head; place; place = next_of(place))
            kiln_in_filter_add(filter, (const void *)(uintptr_t)address_at(place - 1));
        atomic_store_explicit(&walked, bucket + 1, memory_order_relaxed);
        unlock_bucket(bucket, head, &visit);
    }
    return true;
}

static void grow_filter(void)
{
    uintptr_t filter, nobody = 0;

    if (!atomic_compare_exchange_strong(&growing, &nobody, (uintptr_t)&kiln_in_line))
        return;
    filter = atomic_load(&larger);
    if (!filter) {
        filter = kiln_in_filter_larger();
        atomic_store(&walked, 0);
        atomic_store(&larger, filter);
    }
    if (filter && walk_on(filter)) {
        __atomic_store_n(&kiln_in_filter, filter, __ATOMIC_RELEASE);
        atomic_store_explicit(&larger, 0, memory_order_release);
    }
    atomic_store_explicit(&growing, 0, memory_order_release);
}

/* ---- blocks ---- */

static void set_address(uint32_t place, uint64_t address)
{
    __atomic_store_n(&table->blocks[place - 1].address, address, __ATOMIC_RELAXED);
}

/* All but the address, which is what makes it a block. */
static void fill(uint32_t place, const struct kiln_in_live *block)
{
    struct kiln_in_live *to = &table->blocks[place - 1];
    enum { AFTER = offsetof(struct kiln_in_live, size) };

    memcpy((char *)to + AFTER, (const char *)block + AFTER, sizeof(*to) - AFTER);
}

/* Without a place of its own it can still take that of a stale block. */
static int add_locked(uint32_t bucket, uint32_t *head, uint32_t place,
                      const struct kiln_in_live *block)
{
    uint32_t stale = find(*head, block->address);

    if (stale) {
        fill(stale, block);
        if (place)
            give_place(place);
        return 0;
    }
    if (!place)
        return -1;
    fill(place, block);
    __atomic_store_n(&table->nexts[place - 1], *head, __ATOMIC_RELAXED);
    *head = place;
    count_in_filters(bucket, block->address, kiln_in_filter_add);
    set_address(place, block->address);
    return 1;
}

int kiln_in_live_add(const struct kiln_in_live *block)
{
    uint32_t bucket = bucket_of(block->address);
    struct kiln_in_visit visit;
    uint32_t place, head;
    int r;

    if (!table)
        return -1;
    place = take_place();
    head = lock_bucket(bucket, &visit);
    if (head == NO_LOCK) {
        if (place)
            give_place(place);
        return -1;
    }
    r = add_locked(bucket, &head, place, block);
    unlock_bucket(bucket, head, &visit);
    if (r == 1 &&
        atomic_fetch_add_explicit(&live, 1, memory_order_relaxed) >= kiln_in_filter_room())
        grow_filter();
    return r < 0 ? -1 : 0;
}

/* With mark 0: whichever block has the address. */
static bool remove_block(uint64_t address, uint64_t mark)
{
    uint32_t bucket = bucket_of(address);
    struct kiln_in_visit visit;
    uint32_t head, place;

    if (!table || is_empty(bucket))
        return false;
    head = lock_bucket(bucket, &visit);
    if (head == NO_LOCK)
        return false;
    place = find(head, address);
    if (place && mark && table->blocks[place - 1].at_ns != mark)
        place = 0;
    if (place) {
        set_address(place, 0);
        head = unlink_place(head, place);
        count_in_filters(bucket, address, kiln_in_filter_remove);
    }
    unlock_bucket(bucket, head, &visit);
    if (place) {
        give_place(place);
        atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    }
    return place != 0;
}

bool kiln_in_live_remove(const void *address)
{
    return address && remove_block((uint64_t)(uintptr_t)address, 0);
}

bool kiln_in_live_remove_marked(const void *address, uint64_t mark)
{
    return mark && remove_block((uint64_t)(uintptr_t)address, mark);
}

/* The time serves as the mark: an address is not sampled twice within a nanosecond. */
uint64_t kiln_in_live_mark(const void *address)
{
    uint32_t bucket = bucket_of((uint64_t)(uintptr_t)address);
    struct kiln_in_visit visit;
    uint64_t mark = 0;
    uint32_t head, place;

    if (!table || !address || is_empty(bucket))
        return 0;
    head = lock_bucket(bucket, &visit);
    if (head == NO_LOCK)
        return 0;
    place = find(head, (uint64_t)(uintptr_t)address);
    if (place)
        mark = table->blocks[place - 1].at_ns;
    unlock_bucket(bucket, head, &visit);
    return mark;
}

/* ---- all of them ---- */

static bool copy_block(uint32_t index, struct kiln_in_live *ret)
{
    uint64_t address = address_at(index);
    uint32_t bucket = bucket_of(address);
    struct kiln_in_visit visit;
    uint32_t head;
    bool same;

    if (!address)
        return false;
    head = lock_bucket(bucket, &visit);
    if (head == NO_LOCK)
        return false;
    same = address_at(index) == address;
    if (same)
        *ret = table->blocks[index];
    unlock_bucket(bucket, head, &visit);
    return same;
}

void kiln_in_live_each(void (*look)(const struct kiln_in_live *block, void *arg), void *arg)
{
    uint32_t n = table ? atomic_load(&used) : 0;
    struct kiln_in_live block;

    for (uint32_t i = 0; i < n; i++) {
        if (copy_block(i, &block))
            look(&block, arg);
    }
}

uint32_t kiln_in_live_count(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

uint64_t kiln_in_live_bytes(void)
{
    uint64_t per_block = sizeof(struct kiln_in_live) + sizeof(table->nexts[0]);

    return sizeof(table->heads) + atomic_load(&used) * per_block +
           (uint64_t)kiln_in_filter_room() * 16;
}

void kiln_in_live_left(void)
{
    uint32_t locked = kiln_in_line.live_locked;
    uintptr_t own = (uintptr_t)&kiln_in_line;

    kiln_in_line.live_locked = 0;
    if (locked)
        atomic_fetch_and_explicit(&table->heads[locked - 1], ~LOCKED, memory_order_release);
    atomic_compare_exchange_strong(&growing, &own, 0);
}

void kiln_in_live_forked(void)
{
    kiln_in_line.live_locked = 0;
    for (uint32_t i = 0; table && i < BUCKETS; i++) {
        uint32_t head = atomic_load_explicit(&table->heads[i], memory_order_relaxed);

        if (head & LOCKED)
            atomic_store(&table->heads[i], head & ~LOCKED);
    }
    atomic_store(&growing, 0);
}

static void forget_one(const struct kiln_in_live *block, void *arg)
{
    (void)arg;
    kiln_in_live_remove((const void *)(uintptr_t)block->address);
}

void kiln_in_live_forget(void)
{
    kiln_in_live_each(forget_one, NULL);
}

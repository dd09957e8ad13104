/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mark says of the block that begins there whether it is free, its order and its owner; where
 * none begins it is 0, so that the block of a word is found by looking at ever rounder numbers.
 * Free blocks of an order are a list through their second words: the next in the low half, the one
 * before in the high half; 0 is the end, as block 0 is never given out.
 */
#include "host/buddy.h"

#include <errno.h>

#include "base/mem.h"

enum { SMALLEST = 1 << KILN_BUDDY_MIN, MARK_HERE = 1, MARK_USED = 2 };

static uint32_t *mark_of(const struct kiln_buddy *buddy, uint32_t at)
{
    return &buddy->marks[at >> KILN_BUDDY_MIN];
}

static uint32_t mark(uint32_t order, uint32_t owner, bool is_used)
{
    return owner << 8 | order << 2 | (is_used ? MARK_USED : 0) | MARK_HERE;
}

static uint32_t order_of(uint32_t mark)
{
    return mark >> 2 & 31;
}

static bool is_free(uint32_t mark)
{
    return (mark & (MARK_HERE | MARK_USED)) == MARK_HERE;
}

static uint32_t next_of(const struct kiln_buddy *buddy, uint32_t at)
{
    return (uint32_t)buddy->words[at + 1];
}

/* Atomic, as others may still be reading what was here. */
static void link_up(struct kiln_buddy *buddy, uint32_t at, uint32_t before, uint32_t next)
{
    __atomic_store_n(&buddy->words[at + 1], (uint64_t)before << 32 | next, __ATOMIC_RELAXED);
}

static void add(struct kiln_buddy *buddy, uint32_t at, uint32_t order)
{
    uint32_t next = buddy->free[order];

    link_up(buddy, at, 0, next);
    if (next)
        link_up(buddy, next, at, next_of(buddy, next));
    buddy->free[order] = at;
    *mark_of(buddy, at) = mark(order, 0, false);
}

static void remove_free(struct kiln_buddy *buddy, uint32_t at, uint32_t order)
{
    uint32_t next = next_of(buddy, at), before = (uint32_t)(buddy->words[at + 1] >> 32);

    if (before)
        link_up(buddy, before, (uint32_t)(buddy->words[before + 1] >> 32), next);
    else
        buddy->free[order] = next;
    if (next)
        link_up(buddy, next, before, next_of(buddy, next));
    *mark_of(buddy, at) = 0;
}

uint32_t kiln_buddy_order(uint32_t n_words)
{
    uint32_t order = KILN_BUDDY_MIN;

    while (order < KILN_BUDDY_ORDERS - 1 && (uint64_t)1 << order < n_words)
        order++;
    return order;
}

int kiln_buddy_init(struct kiln_buddy *buddy, uint64_t *words, uint32_t n_words)
{
    uint32_t at = SMALLEST;

    n_words &= ~(uint32_t)(SMALLEST - 1);
    *buddy = (struct kiln_buddy){.words = words, .n_words = n_words};
    if (n_words < 2 * SMALLEST)
        return -EINVAL;
    buddy->marks = kiln_calloc(n_words >> KILN_BUDDY_MIN, sizeof(*buddy->marks));
    if (!buddy->marks)
        return -ENOMEM;
    *mark_of(buddy, 0) = mark(KILN_BUDDY_MIN, 0, true);
    while (at < n_words) {
        uint32_t order = (uint32_t)__builtin_ctz(at);

        while ((uint64_t)at + ((uint64_t)1 << order) > n_words)
            order--;
        add(buddy, at, order);
        at += (uint32_t)1 << order;
    }
    return 0;
}

void kiln_buddy_done(struct kiln_buddy *buddy)
{
    kiln_free(buddy->marks);
    buddy->marks = NULL;
}

uint32_t kiln_buddy_take(struct kiln_buddy *buddy, uint32_t order, uint32_t owner)
{
    uint32_t from = order, at;

    while (from < KILN_BUDDY_ORDERS && !buddy->free[from])
        from++;
    if (from >= KILN_BUDDY_ORDERS)
        return 0;
    at = buddy->free[from];
    remove_free(buddy, at, from);
    while (from > order) {
        from--;
        add(buddy, at + ((uint32_t)1 << from), from);
    }
    *mark_of(buddy, at) = mark(order, owner, true);
    buddy->used_words += (uint32_t)1 << order;
    return at;
}

void kiln_buddy_give(struct kiln_buddy *buddy, uint32_t at)
{
    uint32_t order = order_of(*mark_of(buddy, at));

    buddy->used_words -= (uint32_t)1 << order;
    *mark_of(buddy, at) = 0;
    for (;; order++) {
        uint32_t other = at ^ ((uint32_t)1 << order);

        if (other >= buddy->n_words || !is_free(*mark_of(buddy, other)) ||
            order_of(*mark_of(buddy, other)) != order)
            break;
        remove_free(buddy, other, order);
        at &= ~((uint32_t)1 << order);
    }
    add(buddy, at, order);
}

struct kiln_buddy_block kiln_buddy_block(const struct kiln_buddy *buddy, uint32_t word)
{
    uint32_t at = word & ~(uint32_t)(SMALLEST - 1), m = *mark_of(buddy, at);

    while (!m) {
        at &= at - 1; /* the next rounder number */
        m = *mark_of(buddy, at);
    }
    return (struct kiln_buddy_block){at, order_of(m), m >> 8, is_free(m)};
}

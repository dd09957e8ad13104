/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buddy - cuts an array of words into blocks of powers of two, and joins them again.
 *
 * Each block begins at a multiple of its size.  The first word of a block belongs to whoever has
 * it, also after it was freed: others may still look at it (host/bpf/record.h).  Word 0 is never
 * given out.
 *
 * Threads: one owner.
 */
#ifndef KILN_HOST_BUDDY_H
#define KILN_HOST_BUDDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum {
    KILN_BUDDY_MIN = 4, /* order of the smallest block: 16 words */
    KILN_BUDDY_ORDERS = 32,
    KILN_BUDDY_OWNERS = 1 << 24,
};

struct kiln_buddy {
    uint64_t *words; /* borrowed */
    uint32_t n_words;
    uint32_t *marks; /* one for each smallest block: what begins there */
    uint32_t free[KILN_BUDDY_ORDERS];
    uint32_t used_words;
};

KILN_CHECK int kiln_buddy_init(struct kiln_buddy *buddy, uint64_t *words, uint32_t n_words);
void kiln_buddy_done(struct kiln_buddy *buddy);

/* The order of a block for so many words. */
uint32_t kiln_buddy_order(uint32_t n_words);
/* A block for `owner`, a number below KILN_BUDDY_OWNERS; 0: there is none free. */
uint32_t kiln_buddy_take(struct kiln_buddy *buddy, uint32_t order, uint32_t owner);
void kiln_buddy_give(struct kiln_buddy *buddy, uint32_t at);

/* The block that a word is in. */
struct kiln_buddy_block {
    uint32_t at, order, owner;
    bool is_free;
};
struct kiln_buddy_block kiln_buddy_block(const struct kiln_buddy *buddy, uint32_t word);

#endif /* KILN_HOST_BUDDY_H */

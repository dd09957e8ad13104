/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/mem.h"
#include "host/buddy.h"
#include "test.h"

enum { WORDS = 7 << 10, BLOCKS = 1000 };

static uint64_t words[WORDS];

/* Every word is in one block, blocks are aligned, no two free buddies lie side by side. */
static void check_whole(const struct kiln_buddy *buddy, uint32_t used)
{
    uint32_t sum = 0, at = 0;

    while (at < buddy->n_words) {
        struct kiln_buddy_block block = kiln_buddy_block(buddy, at), other;
        uint32_t size = (uint32_t)1 << block.order;

        CHECK_EQ(block.at, at);
        CHECK_EQ(at % size, 0);
        CHECK_EQ(kiln_buddy_block(buddy, at + size - 1).at, at);
        sum += block.is_free || at == 0 ? 0 : size;
        if (block.is_free && (at ^ size) < buddy->n_words) {
            other = kiln_buddy_block(buddy, at ^ size);
            CHECK(!other.is_free || other.order != block.order || other.at != (at ^ size));
        }
        at += size;
    }
    CHECK_EQ(sum, used);
    CHECK_EQ(buddy->used_words, used);
}

TEST(buddy, blocks_hold_what_was_asked_for)
{
    CHECK_EQ(kiln_buddy_order(1), KILN_BUDDY_MIN);
    CHECK_EQ(kiln_buddy_order(16), 4);
    CHECK_EQ(kiln_buddy_order(17), 5);
    CHECK_EQ(kiln_buddy_order(16385), 15);
}

TEST(buddy, word_0_is_never_given_out_and_all_else_is)
{
    struct kiln_buddy buddy;
    uint32_t n = 0;

    CHECK_OK(kiln_buddy_init(&buddy, words, WORDS));
    while (kiln_buddy_take(&buddy, KILN_BUDDY_MIN, 7))
        n++;
    CHECK_EQ(n, WORDS / 16 - 1);
    CHECK_EQ(kiln_buddy_block(&buddy, 100).owner, 7);
    check_whole(&buddy, WORDS - 16);
    kiln_buddy_done(&buddy);
}

TEST(buddy, whatever_is_taken_and_given_back_in_any_order_the_pieces_fit)
{
    uint32_t taken[BLOCKS], n = 0, used = 0, seed = 1;
    struct kiln_buddy buddy;

    CHECK_OK(kiln_buddy_init(&buddy, words, WORDS));
    check_whole(&buddy, 0);
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        if (n < BLOCKS && seed >> 31) {
            uint32_t order = KILN_BUDDY_MIN + (seed >> 8) % 6;
            uint32_t at = kiln_buddy_take(&buddy, order, n);

            if (!at)
                continue;
            words[at] = i;
            used += (uint32_t)1 << order;
            taken[n++] = at;
        } else if (n) {
            uint32_t which = (seed >> 8) % n;

            used -= (uint32_t)1 << kiln_buddy_block(&buddy, taken[which]).order;
            kiln_buddy_give(&buddy, taken[which]);
            taken[which] = taken[--n];
        }
        if (i % 100 == 0)
            check_whole(&buddy, used);
    }
    while (n)
        kiln_buddy_give(&buddy, taken[--n]);
    check_whole(&buddy, 0);
    CHECK(kiln_buddy_take(&buddy, 11, 1));
    kiln_buddy_done(&buddy);
}

TEST(buddy, the_first_word_of_a_block_stays_as_it_was_left)
{
    struct kiln_buddy buddy;
    uint32_t a, b;

    CHECK_OK(kiln_buddy_init(&buddy, words, WORDS));
    a = kiln_buddy_take(&buddy, 5, 1);
    b = kiln_buddy_take(&buddy, 5, 2);
    words[a] = 0x1111;
    words[b] = 0x2222;
    kiln_buddy_give(&buddy, b);
    kiln_buddy_give(&buddy, a);
    CHECK_EQ(words[a], 0x1111);
    CHECK_EQ(words[b], 0x2222);
    kiln_buddy_done(&buddy);
}

TEST(buddy, memory_that_is_too_small_is_refused)
{
    struct kiln_buddy buddy;

    CHECK(kiln_buddy_init(&buddy, words, 31) < 0);
}

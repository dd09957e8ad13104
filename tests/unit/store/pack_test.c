/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pack.h"

#include <stdlib.h>

#include "random_batch.h"
#include "test.h"

#define MAX 1000u

/* Numbers of at most `bits` bits, some of them the largest. */
static void draw(struct dice *dice, uint64_t *numbers, uint32_t n, unsigned bits)
{
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t high = dice_roll(dice, UINT64_C(1) << 32);

        numbers[i] = (high << 32 | dice_roll(dice, UINT64_C(1) << 32)) & mask;
        if (dice_roll(dice, 20) == 0)
            numbers[i] = mask;
    }
}

static void check_round_trip(enum kiln_pack how, const uint64_t *numbers, uint32_t n)
{
    uint64_t back[MAX];
    struct kiln_buf out;
    char *exact;

    kiln_buf_init(&out, 1 << 20);
    kiln_pack_encode(how, numbers, n, &out);
    CHECK_OK(out.error);
    exact = malloc(out.len); /* so that a read past the end is seen */
    memcpy(exact, out.ptr, out.len);
    CHECK_OK(kiln_pack_decode(how, (struct kiln_str){exact, out.len}, n, back));
    assert_memory_equal(back, numbers, n * sizeof(*numbers));
    for (size_t cut = 0; cut < out.len; cut++)
        CHECK_EQ(kiln_pack_decode(how, (struct kiln_str){exact, cut}, n, back), KILN_E_CORRUPT);
    free(exact);
    kiln_buf_putc(&out, 0);
    CHECK_EQ(kiln_pack_decode(how, kiln_buf_str(&out), n, back), KILN_E_CORRUPT);
    kiln_buf_done(&out);
}

TEST(pack, every_packing_gives_back_numbers_of_every_width)
{
    static const uint32_t counts[] = {1, 2, 127, 128, 129, 300};
    struct dice dice = {1};
    uint64_t numbers[MAX];

    for (unsigned bits = 0; bits <= 64; bits++) {
        for (size_t i = 0; i < KILN_ARRAY_LEN(counts); i++) {
            draw(&dice, numbers, counts[i], bits);
            for (enum kiln_pack how = KILN_PACK_VARINT; how < KILN_N_PACKS; how++)
                check_round_trip(how, numbers, counts[i]);
        }
    }
}

TEST(pack, equal_numbers_take_one)
{
    uint64_t numbers[MAX];
    struct kiln_buf out;

    for (uint32_t i = 0; i < MAX; i++)
        numbers[i] = UINT64_MAX;
    check_round_trip(KILN_PACK_SAME, numbers, MAX);
    kiln_buf_init(&out, 1 << 16);
    kiln_pack_encode(KILN_PACK_SAME, numbers, MAX, &out);
    CHECK_EQ(out.len, 10);
    kiln_buf_done(&out);
}

TEST(pack, bits_are_counted_from_the_smallest_of_the_group)
{
    uint64_t numbers[128];
    struct kiln_buf out;

    for (uint32_t i = 0; i < 128; i++)
        numbers[i] = 1000000 + i % 2;
    kiln_buf_init(&out, 1 << 16);
    kiln_pack_encode(KILN_PACK_BITS, numbers, 128, &out);
    CHECK_EQ(out.len, 3 + 1 + 16);
    kiln_buf_done(&out);
}

TEST(pack, no_bytes_are_no_numbers)
{
    uint64_t numbers[4];

    for (enum kiln_pack how = KILN_PACK_BYTES; how < KILN_N_PACKS; how++) {
        CHECK_EQ(kiln_pack_decode(how, KILN_STR(""), 1, numbers), KILN_E_CORRUPT);
        CHECK_EQ(kiln_pack_decode(how, KILN_STR_NONE, 4, numbers), KILN_E_CORRUPT);
    }
}

TEST(pack, a_varint_of_more_than_64_bits_is_refused)
{
    uint64_t number;

    CHECK_EQ(kiln_pack_decode(KILN_PACK_VARINT,
                              KILN_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), 1, &number),
             KILN_E_CORRUPT);
    CHECK_EQ(kiln_pack_decode(KILN_PACK_VARINT,
                              KILN_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1, &number),
             KILN_E_CORRUPT);
}

TEST(pack, zigzag_keeps_the_ends)
{
    static const int64_t ends[] = {0, -1, 1, INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < KILN_ARRAY_LEN(ends); i++)
        CHECK(kiln_unzigzag(kiln_zigzag(ends[i])) == ends[i]);
    CHECK_EQ(kiln_zigzag(-1), 1);
    CHECK(kiln_zigzag_add(UINT64_MAX, kiln_zigzag_diff(5, UINT64_MAX)) == 5);
}

TEST(pack, sizes_of_varints_are_known_beforehand)
{
    CHECK_EQ(kiln_varint_size(0), 1);
    CHECK_EQ(kiln_varint_size(127), 1);
    CHECK_EQ(kiln_varint_size(128), 2);
    CHECK_EQ(kiln_varint_size(UINT64_MAX), 10);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/pb.h"
#include "test.h"

static const uint64_t numbers[] = {1,        0x7f,       0x80,      0x3fff,     0x4000,
                                   1u << 21, 1ull << 35, INT64_MAX, 1ull << 63, UINT64_MAX};

TEST(pb, varints_of_every_length_come_back)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(numbers); i++) {
        struct kiln_pb_out w;
        struct kiln_buf out;
        struct kiln_pb r;
        uint64_t n = 0;

        kiln_pb_out_init(&w, 0, 1000);
        kiln_buf_init(&out, 1000);
        kiln_pb_raw_varint(&w, numbers[i]);
        CHECK_OK(kiln_pb_out_flush(&w, &out));
        CHECK_EQ(out.len, kiln_pb_varint_size(numbers[i]));
        r = kiln_pb_of(kiln_buf_str(&out));
        CHECK_EQ(kiln_pb_varint(&r, &n), 1);
        CHECK(n == numbers[i]);
        CHECK_EQ(kiln_pb_varint(&r, &n), 0);
        kiln_buf_done(&out);
        kiln_pb_out_done(&w);
    }
}

TEST(pb, a_row_of_varints_is_what_they_are_one_by_one)
{
    const uint32_t row[] = {0,       127,     128,     16383,      16384,     1,
                            2097151, 2097152, 1 << 28, UINT32_MAX, UINT32_MAX};
    const uint32_t n = KILN_ARRAY_LEN(row);

    for (size_t hint = 1; hint < 100; hint++) { /* little room, and enough */
        struct kiln_pb_out w;
        struct kiln_buf out;
        struct kiln_pb r;
        uint64_t number;

        kiln_pb_out_init(&w, hint, 1000);
        kiln_buf_init(&out, 1000);
        kiln_pb_raw_varints(&w, row, n);
        kiln_pb_raw_varints(&w, row, 0);
        CHECK_OK(kiln_pb_out_flush(&w, &out));
        r = kiln_pb_of(kiln_buf_str(&out));
        for (uint32_t i = 0; i < n; i++) {
            CHECK_EQ(kiln_pb_varint(&r, &number), 1);
            CHECK_EQ(number, row[i]);
        }
        CHECK_EQ(kiln_pb_varint(&r, &number), 0);
        kiln_buf_done(&out);
        kiln_pb_out_done(&w);
    }
}

TEST(pb, written_backwards_it_reads_forwards)
{
    struct kiln_pb_out w;
    struct kiln_buf out;
    size_t end;

    kiln_pb_out_init(&w, 0, 1000);
    kiln_buf_init(&out, 1000);
    end = kiln_pb_mark(&w);
    kiln_pb_put_number(&w, 2, 150);
    kiln_pb_put_bytes(&w, 1, KILN_STR("ab"));
    kiln_pb_put_message(&w, 3, end);
    kiln_pb_put_number(&w, 1, 0);
    CHECK_OK(kiln_pb_out_flush(&w, &out));
    CHECK_STR(kiln_buf_str(&out), "\x1a\x07\x0a\x02"
                                  "ab\x10\x96\x01");
    kiln_buf_done(&out);
    kiln_pb_out_done(&w);
}

/* The result of reading the first field of some bytes. */
static int first_field(struct kiln_str bytes, struct kiln_pb_field *f)
{
    struct kiln_pb r = kiln_pb_of(bytes);

    return kiln_pb_next(&r, f);
}

TEST(pb, fields_of_every_wire_type_are_read)
{
    struct kiln_pb_field f;

    CHECK_EQ(first_field(KILN_STR("\x08\x96\x01"), &f), 1);
    CHECK(f.tag == KILN_PB_VARINT(1) && f.number == 150);
    CHECK_EQ(first_field(KILN_STR("\x11\1\0\0\0\0\0\0\0"), &f), 1);
    CHECK(f.tag == KILN_PB_FIXED64(2) && f.number == 1);
    CHECK_EQ(first_field(KILN_STR("\x1d\2\0\0\0"), &f), 1);
    CHECK(f.tag == KILN_PB_FIXED32(3) && f.number == 2);
    CHECK_EQ(first_field(KILN_STR("\x22\x02hi"), &f), 1);
    CHECK(f.tag == KILN_PB_BYTES(4));
    CHECK_STR(f.bytes, "hi");
    CHECK_EQ(first_field(KILN_STR_NONE, &f), 0);
}

TEST(pb, what_breaks_the_rules_is_refused)
{
    struct kiln_pb_field f;

    CHECK_EQ(first_field(KILN_STR("\x08"), &f), KILN_E_TRUNCATED);
    CHECK_EQ(first_field(KILN_STR("\x08\x80"), &f), KILN_E_TRUNCATED);
    CHECK_EQ(first_field(KILN_STR("\x11\1\0\0"), &f), KILN_E_TRUNCATED);
    CHECK_EQ(first_field(KILN_STR("\x1d\1\0"), &f), KILN_E_TRUNCATED);
    CHECK_EQ(first_field(KILN_STR("\x22\x03hi"), &f), KILN_E_TRUNCATED);
    CHECK_EQ(first_field(KILN_STR("\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &f),
             KILN_E_TRUNCATED);
    CHECK_EQ(first_field(KILN_STR("\x00\x01"), &f), KILN_E_MALFORMED); /* field number 0 */
    CHECK_EQ(first_field(KILN_STR("\x0b"), &f), KILN_E_MALFORMED);     /* a group */
    CHECK_EQ(first_field(KILN_STR("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), &f),
             KILN_E_MALFORMED); /* more than 64 bits */
}

TEST(pb, packed_varints_are_counted_without_reading_them)
{
    CHECK_EQ(kiln_pb_count_varints(KILN_STR_NONE), 0);
    CHECK_EQ(kiln_pb_count_varints(KILN_STR("\x01\x96\x01\x02")), 3);
    CHECK_EQ(kiln_pb_count_varints(KILN_STR("\x96\x96\x96\x96\x96\x96\x96\x96\x01\x01")), 2);
}

TEST(pb, a_writer_keeps_its_maximum)
{
    struct kiln_pb_out w;
    struct kiln_buf out;
    char block[300] = {0};

    kiln_pb_out_init(&w, 0, 500);
    kiln_buf_init(&out, 1000);
    kiln_pb_put_bytes(&w, 1, (struct kiln_str){block, sizeof(block)});
    CHECK_EQ(w.error, 0);
    kiln_pb_put_bytes(&w, 1, (struct kiln_str){block, sizeof(block)});
    CHECK_EQ(kiln_pb_out_flush(&w, &out), KILN_E_LIMIT);
    CHECK_EQ(out.len, 0);
    kiln_buf_done(&out);
    kiln_pb_out_done(&w);
}

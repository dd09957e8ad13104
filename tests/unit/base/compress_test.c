/* SPDX-License-Identifier: Apache-2.0 */
#include "base/compress.h"
#include "base/mem.h"
#include "test.h"

static const enum kiln_compression kinds[] = {KILN_GZIP, KILN_ZSTD};

/* Compresses `text` behind what `packed` holds. */
static void pack(enum kiln_compression kind, struct kiln_str text, struct kiln_buf *packed)
{
    kiln_buf_init(packed, 1u << 20);
    CHECK_OK(kiln_compress(kind, 0, text, packed));
}

TEST(compress, what_was_packed_comes_back_and_names_itself)
{
    for (size_t i = 0; i < 2; i++) {
        struct kiln_buf packed, out;

        pack(kinds[i], KILN_STR("main;parse;read 3\n"), &packed);
        CHECK_EQ(kiln_compression_of(kiln_buf_str(&packed)), kinds[i]);
        kiln_buf_init(&out, 1000);
        CHECK_OK(kiln_decompress(kinds[i], kiln_buf_str(&packed), &out, NULL));
        CHECK_STR(kiln_buf_str(&out), "main;parse;read 3\n");
        kiln_buf_done(&out);
        kiln_buf_done(&packed);
    }
    CHECK_EQ(kiln_compression_of(KILN_STR("main 3")), KILN_PLAIN);
    CHECK_TEXT(kiln_compression_name(KILN_ZSTD), "zstd");
}

/* As tables of profiles are: short entries that count up. */
TEST(compress, what_is_dense_is_smaller_and_comes_back)
{
    struct kiln_buf table;

    kiln_buf_init(&table, 1u << 20);
    for (unsigned i = 0; i < 20000; i++)
        kiln_buf_printf(&table, "fn%u+0x%x\n", i / 3, i * 2654435761u >> 12);
    for (size_t i = 0; i < 2; i++) {
        struct kiln_buf packed, dense, out;

        pack(kinds[i], kiln_buf_str(&table), &packed);
        kiln_buf_init(&dense, 1u << 20);
        CHECK_OK(kiln_compress(kinds[i], KILN_DENSE, kiln_buf_str(&table), &dense));
        CHECK(dense.len < packed.len);
        kiln_buf_init(&out, 1u << 20);
        CHECK_OK(kiln_decompress(kinds[i], kiln_buf_str(&dense), &out, NULL));
        CHECK(kiln_str_eq(kiln_buf_str(&out), kiln_buf_str(&table)));
        kiln_buf_done(&out);
        kiln_buf_done(&dense);
        kiln_buf_done(&packed);
    }
    kiln_buf_done(&table);
}

/* Digits, and bytes that are none: what codes of their own are for. */
TEST(compress, parts_of_different_kinds_are_smaller_with_joints)
{
    struct kiln_joints joints = {.n = 1};
    struct kiln_buf both;

    kiln_buf_init(&both, 1u << 20);
    for (unsigned i = 0; i < 8000; i++)
        kiln_buf_printf(&both, "%u", i * 2654435761u);
    joints.at[0] = both.len;
    for (unsigned i = 0; i < 40000; i++)
        kiln_buf_putc(&both, (char)(0x80 | i * 2654435761u >> 28));
    for (size_t i = 0; i < 2; i++) {
        struct kiln_buf packed, joined, out;

        pack(kinds[i], kiln_buf_str(&both), &packed);
        kiln_buf_init(&joined, 1u << 20);
        CHECK_OK(kiln_compress_joined(kinds[i], 0, kiln_buf_str(&both), &joints, &joined));
        CHECK(kinds[i] == KILN_ZSTD ? joined.len < packed.len : joined.len == packed.len);
        kiln_buf_init(&out, 1u << 20);
        CHECK_OK(kiln_decompress(kinds[i], kiln_buf_str(&joined), &out, NULL));
        CHECK(kiln_str_eq(kiln_buf_str(&out), kiln_buf_str(&both)));
        kiln_buf_done(&out);
        kiln_buf_done(&joined);
        kiln_buf_done(&packed);
    }
    kiln_buf_done(&both);
}

TEST(compress, members_and_frames_in_a_row_are_one_content)
{
    for (size_t i = 0; i < 2; i++) {
        struct kiln_buf packed, out;

        pack(kinds[i], KILN_STR("one "), &packed);
        CHECK_OK(kiln_compress(kinds[i], 0, KILN_STR("two"), &packed));
        kiln_buf_init(&out, 1000);
        CHECK_OK(kiln_decompress(kinds[i], kiln_buf_str(&packed), &out, NULL));
        CHECK_STR(kiln_buf_str(&out), "one two");
        kiln_buf_done(&out);
        kiln_buf_done(&packed);
    }
}

TEST(compress, a_bomb_ends_at_the_limit_with_little_memory)
{
    struct kiln_str zeros = {kiln_calloc(1, 900000), 900000};

    for (size_t i = 0; i < 2; i++) {
        struct kiln_buf packed, out;
        struct kiln_err err = {0};

        pack(kinds[i], zeros, &packed);
        CHECK(packed.len < 5000);
        kiln_buf_init(&out, 100000);
        CHECK_EQ(kiln_decompress(kinds[i], kiln_buf_str(&packed), &out, &err), KILN_E_LIMIT);
        CHECK(out.cap <= 100000);
        CHECK(err.code == KILN_E_LIMIT && err.text[0]);
        kiln_buf_done(&out);
        kiln_buf_done(&packed);
    }
    kiln_free((void *)(uintptr_t)zeros.ptr);
}

/* A frame of one stored block that asks for a window of 2^`log` bytes. */
static struct kiln_str framed(struct kiln_buf *frame, uint32_t log, const char *content)
{
    uint32_t n = (uint32_t)strlen(content), head = 1u | n << 3;

    kiln_buf_add(frame, "\x28\xb5\x2f\xfd", 5); /* no flags: the window follows */
    kiln_buf_putc(frame, (char)((log - 10) << 3));
    kiln_buf_add(frame, &head, 3);
    kiln_buf_puts(frame, content);
    return kiln_buf_str(frame);
}

TEST(compress, a_window_is_known_before_it_is_taken)
{
    struct kiln_buf frame, packed;

    kiln_buf_init(&frame, 1000);
    CHECK_EQ(kiln_decompress_window(KILN_ZSTD, framed(&frame, 27, "small")), 128u << 20);
    CHECK_EQ(kiln_decompress_window(KILN_ZSTD, framed(&frame, 30, "more")), 1u << 30);
    CHECK_EQ(kiln_decompress_window(KILN_GZIP, kiln_buf_str(&frame)), 0);
    CHECK_EQ(kiln_decompress_window(KILN_ZSTD, KILN_STR("\x28\xb5\x2f\xfd")), 0);
    pack(KILN_ZSTD, KILN_STR("main 3\n"), &packed);
    CHECK_EQ(kiln_decompress_window(KILN_ZSTD, kiln_buf_str(&packed)), 7); /* all of it */
    kiln_buf_done(&packed);
    kiln_buf_done(&frame);
}

TEST(compress, a_window_is_paid_for_while_it_is_needed)
{
    struct kiln_buf frame, out;
    struct kiln_err err = {0};
    struct kiln_pool pool;

    kiln_pool_init(&pool, "test", 20u << 20, NULL);
    kiln_buf_init(&frame, 1000);
    kiln_buf_init(&out, 1000);
    out.pool = &pool;
    CHECK_OK(kiln_decompress(KILN_ZSTD, framed(&frame, 24, "main 3\n"), &out, NULL));
    CHECK_STR(kiln_buf_str(&out), "main 3\n");
    CHECK_EQ(pool.peak, 16u << 20);
    CHECK_EQ(pool.used, 0);
    kiln_buf_clear(&frame);
    CHECK_EQ(kiln_decompress(KILN_ZSTD, framed(&frame, 25, "x"), &out, &err), KILN_E_LIMIT);
    CHECK_TEXT(err.text, "there is no memory for the zstd window of 32 MiB");
    kiln_buf_clear(&frame);
    err = (struct kiln_err){0};
    CHECK_EQ(kiln_decompress(KILN_ZSTD, framed(&frame, 30, "x"), &out, &err), KILN_E_LIMIT);
    CHECK_TEXT(err.text,
               "the zstd window is 1024 MiB, and may be 128 MiB: compress without --long");
    kiln_buf_done(&out);
    kiln_buf_done(&frame);
}

TEST(compress, every_cut_is_an_error)
{
    for (size_t i = 0; i < 2; i++) {
        struct kiln_buf packed;

        pack(kinds[i], KILN_STR("main;parse;read 3\nmain;parse;read 3\n"), &packed);
        for (size_t len = 0; len < packed.len; len++) {
            struct kiln_buf out;
            struct kiln_err err = {0};

            kiln_buf_init(&out, 1000);
            CHECK(kiln_decompress(kinds[i], (struct kiln_str){packed.ptr, len}, &out, &err) < 0);
            CHECK(err.text[0]);
            kiln_buf_done(&out);
        }
        kiln_buf_done(&packed);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "store/symbols.h"
#include "support/drawn.h"
#include "test.h"

#define FRAME(function, in, at)                                                                    \
    (const struct kiln_symbol_frame[])                                                             \
    {                                                                                              \
        {                                                                                          \
            .name = {function, sizeof(function) - 1}, .file = {in, sizeof(in) - 1}, .line = at     \
        }                                                                                          \
    }

static const struct kiln_symbol three[] = {
    {0x2000, 0x100, FRAME("parse", "json.c", 40), 1},
    {0x1000, 0, FRAME("main", "main.c", 7), 1},
    {0x3000, 0x10, FRAME("read", "json.c", -1), 1},
};

static const struct kiln_symbol_frame inlined[] = {
    {.name = {"get", 3}, .system_name = {"_get", 4}, .file = {"buf.h", 5}, .line = 3},
    {.name = {"skip", 4}, .file = {"json.c", 6}, .line = 12, .start_line = 10},
    {.name = {"parse", 5}, .file = {"json.c", 6}, .line = 41},
};
static const struct kiln_symbol deep = {0x2010, 1, inlined, 3};
static const struct kiln_symbol nothing = {0x2020, 1, NULL, 0};

static struct kiln_symbols *add_to(const struct kiln_symbols *before,
                                   const struct kiln_symbol *symbols, uint32_t n)
{
    struct kiln_symbols *ret = NULL;
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_symbols_encode(KILN_STR("abc"), before, symbols, n, &out, NULL));
    CHECK_OK(kiln_symbols_decode(kiln_buf_str(&out), 1 << 20, &ret, NULL));
    kiln_buf_done(&out);
    return ret;
}

static struct kiln_symbols *round_trip(const struct kiln_symbol *symbols, uint32_t n)
{
    return add_to(NULL, symbols, n);
}

/* "name file:line" of each frame, innermost first, "nothing", or "none". */
static const char *found(const struct kiln_symbols *symbols, uint64_t address)
{
    static char text[4096];
    struct kiln_symbol_found s;
    size_t at = 0;

    if (!kiln_symbols_find(symbols, address, &s))
        return "none";
    for (uint32_t i = 0; i < s.n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s %.*s:%d", i ? "; " : "",
                               KILN_STR_ARG(s.frames[i].name), KILN_STR_ARG(s.frames[i].file),
                               (int)s.frames[i].line);
    return s.n ? text : "nothing";
}

TEST(symbols, an_address_lies_in_the_symbol_before_it_up_to_its_size)
{
    struct kiln_symbols *symbols = round_trip(three, 3);

    CHECK_STR(kiln_symbols_build_id(symbols), "abc");
    CHECK_TEXT(found(symbols, 0xfff), "none");
    CHECK_TEXT(found(symbols, 0x1000), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x1fff), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x2000), "parse json.c:40");
    CHECK_TEXT(found(symbols, 0x20ff), "parse json.c:40");
    CHECK_TEXT(found(symbols, 0x2100), "none");
    CHECK_TEXT(found(symbols, 0x300f), "read json.c:-1");
    CHECK_TEXT(found(symbols, UINT64_MAX), "none");
    kiln_symbols_unref(symbols);
}

TEST(symbols, a_file_of_format_1_is_read_for_ever)
{
    struct kiln_symbols *symbols = NULL;
    size_t n;
    char *bytes = kiln_test_read(KILN_SOURCE_DIR "/tests/fixtures/symbols-v1", &n);

    CHECK(bytes != NULL);
    CHECK_OK(kiln_symbols_decode((struct kiln_str){bytes, n}, 1 << 20, &symbols, NULL));
    free(bytes);
    CHECK_STR(kiln_symbols_build_id(symbols), "abc");
    CHECK_TEXT(found(symbols, 0x1001), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x3001), "read json.c:-1");
    kiln_symbols_unref(symbols);
}

TEST(symbols, a_file_of_format_2_is_read_for_ever)
{
    struct kiln_symbols *symbols = NULL;
    size_t n;
    char *bytes = kiln_test_read(KILN_SOURCE_DIR "/tests/fixtures/symbols-v2", &n);

    CHECK(bytes != NULL);
    CHECK_OK(kiln_symbols_decode((struct kiln_str){bytes, n}, 1 << 20, &symbols, NULL));
    free(bytes);
    CHECK_STR(kiln_symbols_build_id(symbols), "abc");
    CHECK_TEXT(found(symbols, 0x1001), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x1010), "get buf.h:3; main main.c:7");
    CHECK_TEXT(found(symbols, 0x1020), "nothing");
    kiln_symbols_unref(symbols);
}

TEST(symbols, of_two_at_one_address_the_first_counts)
{
    struct kiln_symbol two[] = {{8, 0, FRAME("a", "", 7), 1}, {8, 0, FRAME("b", "", 0), 1}};
    struct kiln_symbols *symbols = round_trip(two, 2);

    CHECK_EQ(kiln_symbols_count(symbols), 1);
    CHECK_TEXT(found(symbols, 9), "a :0");
    kiln_symbols_unref(symbols);
}

TEST(symbols, none_at_all_is_a_file_too)
{
    struct kiln_symbols *symbols = round_trip(NULL, 0);

    CHECK_TEXT(found(symbols, 0), "none");
    kiln_symbols_unref(symbols);
}

TEST(symbols, an_address_has_frames_and_what_is_said_of_it_alone_goes_before_its_range)
{
    struct kiln_symbol all[] = {three[0], three[1], three[2], deep, nothing};
    struct kiln_symbols *symbols = round_trip(all, 5);
    struct kiln_symbol_found s;

    CHECK_TEXT(found(symbols, 0x2010), "get buf.h:3; skip json.c:12; parse json.c:41");
    CHECK_TEXT(found(symbols, 0x2011), "parse json.c:40");
    CHECK_TEXT(found(symbols, 0x2020), "nothing");
    CHECK_TEXT(found(symbols, 0x2021), "parse json.c:40");
    CHECK_TEXT(found(symbols, 0x2100), "none");
    CHECK(kiln_symbols_find(symbols, 0x2010, &s));
    CHECK_STR(s.frames[0].system_name, "_get");
    CHECK_EQ(s.frames[1].start_line, 10);
    kiln_symbols_unref(symbols);
}

TEST(symbols, what_comes_is_added_and_of_one_address_the_new_one_counts)
{
    struct kiln_symbols *old = round_trip(three, 3), *symbols;
    struct kiln_symbol more[] = {{0x3000, 1, inlined + 1, 2},
                                 {0x500, 1, FRAME("_start", "", 0), 1}};

    symbols = add_to(old, &deep, 1);
    kiln_symbols_unref(old);
    CHECK_EQ(kiln_symbols_count(symbols), 4);
    CHECK_TEXT(found(symbols, 0x2010), "get buf.h:3; skip json.c:12; parse json.c:41");
    old = symbols;
    symbols = add_to(old, more, 2);
    kiln_symbols_unref(old);
    CHECK_EQ(kiln_symbols_count(symbols), 5);
    CHECK_TEXT(found(symbols, 0x500), "_start :0");
    CHECK_TEXT(found(symbols, 0x501), "none");
    CHECK_TEXT(found(symbols, 0x1004), "main main.c:7");
    CHECK_TEXT(found(symbols, 0x3000), "skip json.c:12; parse json.c:41");
    CHECK_TEXT(found(symbols, 0x3001), "none");
    kiln_symbols_unref(symbols);
}

TEST(symbols, the_last_address_and_the_largest_size_are_kept)
{
    struct kiln_symbol two[] = {{UINT64_MAX, UINT64_MAX, FRAME("last", "", 0), 1},
                                {2, UINT64_MAX, FRAME("all", "", 0), 1}};
    struct kiln_symbols *symbols = round_trip(two, 1);

    CHECK_TEXT(found(symbols, UINT64_MAX), "last :0");
    kiln_symbols_unref(symbols);
    symbols = round_trip(two, 2);
    CHECK_TEXT(found(symbols, UINT64_MAX), "last :0");
    CHECK_TEXT(found(symbols, UINT64_MAX - 1), "all :0");
    kiln_symbols_unref(symbols);
}

TEST(symbols, of_too_many_frames_the_outermost_and_the_innermost_stay)
{
    struct kiln_symbol_frame frames[100] = {0};
    struct kiln_symbol symbol = {1, 1, frames, 100};
    struct kiln_symbol_found s;
    struct kiln_symbols *symbols;

    for (int i = 0; i < 100; i++)
        frames[i] =
            (struct kiln_symbol_frame){.name = KILN_STR("f"), .file = KILN_STR("f.c"), .line = i};
    frames[3] = (struct kiln_symbol_frame){.line = 9}; /* says nothing */
    symbols = round_trip(&symbol, 1);
    CHECK(kiln_symbols_find(symbols, 1, &s));
    CHECK_EQ(s.n, 63);
    CHECK_EQ(s.frames[0].line, 0);
    CHECK_EQ(s.frames[3].line, 4);
    CHECK_EQ(s.frames[61].line, 62);
    CHECK_EQ(s.frames[62].line, 99);
    kiln_symbols_unref(symbols);
}

TEST(symbols, frames_that_many_addresses_share_are_kept_once)
{
    enum { N = 1000 };
    struct kiln_symbol *many = calloc(N, sizeof(*many));
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    for (uint32_t i = 0; i < N; i++)
        many[i] = (struct kiln_symbol){0x1000 + 16 * i, 1, inlined, 3};
    CHECK_OK(kiln_symbols_encode(KILN_STR("abc"), NULL, many, N, &out, NULL));
    CHECK(out.len < 256);
    kiln_buf_done(&out);
    free(many);
}

TEST(symbols, a_flipped_bit_or_a_missing_end_is_noticed)
{
    struct kiln_symbol all[] = {three[0], three[1], three[2], deep, nothing};
    struct kiln_symbols *symbols = NULL;
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_symbols_encode(KILN_STR("abc"), NULL, all, 5, &out, NULL));
    for (size_t i = 0; i < out.len * 8; i++) {
        out.ptr[i / 8] ^= (char)(1 << i % 8);
        CHECK(kiln_symbols_decode(kiln_buf_str(&out), 1 << 20, &symbols, NULL) < 0);
        out.ptr[i / 8] ^= (char)(1 << i % 8);
    }
    for (size_t i = 0; i < out.len; i++)
        CHECK(kiln_symbols_decode((struct kiln_str){out.ptr, i}, 1 << 20, &symbols, NULL) < 0);
    kiln_buf_done(&out);
}

TEST(symbols, what_does_not_fit_into_memory_is_refused)
{
    struct kiln_symbol all[] = {three[0], three[1], three[2], deep, nothing};
    struct kiln_symbols *symbols = NULL;
    struct kiln_buf out;

    kiln_buf_init(&out, 1 << 20);
    CHECK_OK(kiln_symbols_encode(KILN_STR("abc"), NULL, all, 5, &out, NULL));
    for (size_t limit = 0; kiln_symbols_decode(kiln_buf_str(&out), limit, &symbols, NULL) < 0;
         limit++)
        CHECK(limit < 2048);
    CHECK_EQ(kiln_symbols_count(symbols), 5);
    kiln_symbols_unref(symbols);
    kiln_buf_done(&out);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "base/str.h"
#include "test.h"

TEST(str, comparing_goes_by_bytes_and_then_by_length)
{
    CHECK(kiln_str_cmp(KILN_STR("a"), KILN_STR("b")) < 0);
    CHECK(kiln_str_cmp(KILN_STR("ab"), KILN_STR("a")) > 0);
    CHECK(kiln_str_cmp(KILN_STR("\xff"), KILN_STR("a")) > 0);
    CHECK_EQ(kiln_str_cmp(KILN_STR_NONE, KILN_STR("")), 0);
    CHECK(kiln_str_eq(KILN_STR("a\0b"), KILN_STR("a\0b")));
    CHECK(!kiln_str_eq(KILN_STR("a\0b"), KILN_STR("a\0c")));
}

TEST(str, prefix_suffix_and_middle)
{
    CHECK(kiln_str_starts(KILN_STR("main.c"), KILN_STR("main")));
    CHECK(!kiln_str_starts(KILN_STR("m"), KILN_STR("main")));
    CHECK(kiln_str_ends(KILN_STR("main.c"), KILN_STR(".c")));
    CHECK(!kiln_str_ends(KILN_STR("c"), KILN_STR(".c")));
    CHECK(kiln_str_contains(KILN_STR("main.c"), KILN_STR("n.")));
    CHECK(kiln_str_contains(KILN_STR_NONE, KILN_STR("")));
    CHECK(!kiln_str_contains(KILN_STR_NONE, KILN_STR("x")));
}

TEST(str, trim_takes_white_space_from_both_ends_only)
{
    CHECK_STR(kiln_str_trim(KILN_STR(" \t a b\r\n")), "a b");
    CHECK_STR(kiln_str_trim(KILN_STR(" \n ")), "");
}

TEST(str, cut_walks_through_the_parts)
{
    struct kiln_str rest = KILN_STR("main;;read");

    CHECK_STR(kiln_str_cut(&rest, ';'), "main");
    CHECK_STR(kiln_str_cut(&rest, ';'), "");
    CHECK_STR(kiln_str_cut(&rest, ';'), "read");
    CHECK(rest.ptr == NULL);
}

TEST(str, the_part_after_a_last_separator_is_empty_but_there)
{
    struct kiln_str rest = KILN_STR("a;");

    CHECK_STR(kiln_str_cut(&rest, ';'), "a");
    CHECK(rest.ptr != NULL);
    CHECK_STR(kiln_str_cut(&rest, ';'), "");
    CHECK(rest.ptr == NULL);
}

static int i64(const char *text, int64_t *ret)
{
    return kiln_str_parse_i64(kiln_str_of(text), ret);
}

TEST(str, whole_numbers_to_their_limits_and_nothing_else)
{
    int64_t i = 5;
    uint64_t u = 5;

    CHECK_OK(i64("-9223372036854775808", &i));
    CHECK(i == INT64_MIN);
    CHECK_OK(i64("+9223372036854775807", &i));
    CHECK(i == INT64_MAX);
    CHECK_EQ(i64("9223372036854775808", &i), -ERANGE);
    CHECK_EQ(i64("-9223372036854775809", &i), -ERANGE);
    CHECK_EQ(i64("", &i), KILN_E_MALFORMED);
    CHECK_EQ(i64("-", &i), KILN_E_MALFORMED);
    CHECK_EQ(i64(" 1", &i), KILN_E_MALFORMED);
    CHECK_EQ(i64("1.5", &i), KILN_E_MALFORMED);
    CHECK(i == INT64_MAX);
    CHECK_OK(kiln_str_parse_u64(KILN_STR("18446744073709551615"), &u));
    CHECK(u == UINT64_MAX);
    CHECK_EQ(kiln_str_parse_u64(KILN_STR("18446744073709551616"), &u), -ERANGE);
    CHECK_EQ(kiln_str_parse_u64(KILN_STR("-1"), &u), KILN_E_MALFORMED);
}

TEST(str, hexadecimal_with_and_without_0x)
{
    uint64_t u = 0;

    CHECK_OK(kiln_str_parse_hex(KILN_STR("0xfFfFfFfFfFfFfFfF"), &u));
    CHECK(u == UINT64_MAX);
    CHECK_OK(kiln_str_parse_hex(KILN_STR("7f"), &u));
    CHECK_EQ(u, 0x7f);
    CHECK_EQ(kiln_str_parse_hex(KILN_STR("0x"), &u), KILN_E_MALFORMED);
    CHECK_EQ(kiln_str_parse_hex(KILN_STR("10000000000000000"), &u), -ERANGE);
}

TEST(utf8, well_formed_texts_of_every_length)
{
    CHECK(kiln_utf8_valid(KILN_STR_NONE));
    CHECK(kiln_utf8_valid(KILN_STR("plain ascii, longer than eight bytes")));
    CHECK(kiln_utf8_valid(KILN_STR("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5")));
    CHECK(kiln_utf8_valid(KILN_STR("\xf4\x8f\xbf\xbf")));
}

TEST(utf8, over_long_forms_surrogates_and_halves_are_refused)
{
    CHECK(!kiln_utf8_valid(KILN_STR("\xc0\x80")));
    CHECK(!kiln_utf8_valid(KILN_STR("\xe0\x9f\xbf")));
    CHECK(!kiln_utf8_valid(KILN_STR("\xed\xa0\x80")));
    CHECK(!kiln_utf8_valid(KILN_STR("\xf4\x90\x80\x80")));
    CHECK(!kiln_utf8_valid(KILN_STR("\xff")));
    CHECK(!kiln_utf8_valid(KILN_STR("\x80")));
    CHECK(!kiln_utf8_valid(KILN_STR("eight by\xe2\x82")));
}

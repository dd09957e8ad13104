/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/clean.h"
#include "random_batch.h"
#include "test.h"

/* What is written of `s`, in a buffer that lives until the next call. */
static const char *cleaned(struct kiln_str s, size_t chars_max, enum kiln_quote quote)
{
    static char text[4096];
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text) - 1);
    kiln_clean_add(&out, s, chars_max, quote);
    CHECK_EQ(out.error, 0);
    memcpy(text, out.ptr ? out.ptr : "", out.len);
    text[out.len] = '\0';
    kiln_buf_done(&out);
    return text;
}

TEST(clean, markup_becomes_text)
{
    CHECK_TEXT(cleaned(KILN_STR("a<b>&\"'"), 99, KILN_QUOTE_XML), "a&lt;b&gt;&amp;&quot;&#39;");
    CHECK_TEXT(cleaned(KILN_STR("]]>"), 99, KILN_QUOTE_XML), "]]&gt;");
    CHECK_TEXT(cleaned(KILN_STR("a\"\\n"), 99, KILN_QUOTE_DOT), "a\\\"\\\\n");
    CHECK_TEXT(cleaned(KILN_STR("a<\"b\">"), 99, KILN_QUOTE_NONE), "a<\"b\">");
}

TEST(clean, what_cannot_be_shown_is_replaced)
{
    CHECK_TEXT(cleaned(KILN_STR("a\0b\033[2Jc"), 99, KILN_QUOTE_NONE), "a\ufffdb\ufffd[2Jc");
    CHECK_TEXT(cleaned(KILN_STR("a\nb\tc\rd"), 99, KILN_QUOTE_NONE), "a b c d");
    CHECK_TEXT(cleaned(KILN_STR("x\u202eevil\u202c"), 99, KILN_QUOTE_NONE), "x\ufffdevil\ufffd");
    CHECK_TEXT(cleaned(KILN_STR("\xef\xbf\xbf\xc2\x85"), 99, KILN_QUOTE_NONE), "\ufffd\ufffd");
}

TEST(clean, half_characters_are_replaced_byte_by_byte)
{
    CHECK_TEXT(cleaned(KILN_STR("a\xff\xc3"), 99, KILN_QUOTE_NONE), "a\ufffd\ufffd");
    CHECK_TEXT(cleaned(KILN_STR("\xc0\xaf"), 99, KILN_QUOTE_NONE), "\ufffd\ufffd");
    CHECK_TEXT(cleaned(KILN_STR("\xed\xa0\x80"), 99, KILN_QUOTE_NONE), "\ufffd\ufffd\ufffd");
    CHECK_TEXT(cleaned(KILN_STR("\xf4\x90\x80\x80"), 99, KILN_QUOTE_NONE),
               "\ufffd\ufffd\ufffd\ufffd");
    CHECK_TEXT(cleaned(KILN_STR("größe ∀ 😀"), 99, KILN_QUOTE_NONE), "größe ∀ 😀");
}

TEST(clean, a_long_text_ends_in_an_ellipsis)
{
    CHECK_TEXT(cleaned(KILN_STR("abcdef"), 6, KILN_QUOTE_NONE), "abcdef");
    CHECK_TEXT(cleaned(KILN_STR("abcdef"), 5, KILN_QUOTE_NONE), "abcd…");
    CHECK_TEXT(cleaned(KILN_STR("äöüß"), 3, KILN_QUOTE_NONE), "äö…");
    CHECK_TEXT(cleaned(KILN_STR("abc"), 0, KILN_QUOTE_NONE), "");
}

TEST(clean, any_bytes_become_valid_text_of_the_asked_length)
{
    struct dice dice = {7};
    char bytes[64];

    for (int round = 0; round < 20000; round++) {
        size_t len = dice_roll(&dice, sizeof(bytes) + 1), max = dice_roll(&dice, 70);
        struct kiln_str text;

        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)dice_roll(&dice, 256);
        text = kiln_str_of(cleaned((struct kiln_str){bytes, len}, max, KILN_QUOTE_NONE));
        CHECK(kiln_utf8_valid(text));
        for (size_t i = 0; i < text.len; i++)
            CHECK((unsigned char)text.ptr[i] >= ' ' && text.ptr[i] != 0x7f);
        CHECK(text.len <= 4 * max);
    }
}

TEST(clean, a_name_is_cut_to_the_room_there_is)
{
    CHECK(kiln_clean_fit(KILN_STR("main"), 12, 100) == SIZE_MAX);
    CHECK_EQ(kiln_clean_fit(KILN_STR("main"), 12, 5), 0);
    CHECK_EQ(kiln_clean_fit(KILN_STR("mmmmmmmmmm"), 10, 8.33 * 4 + 10), 5);
}

TEST(clean, a_short_name_has_no_package_path)
{
    CHECK_STR(kiln_clean_short(KILN_STR("encoding/json.Marshal")), "json.Marshal");
    CHECK_STR(kiln_clean_short(KILN_STR("a/b.(*T).f")), "b.(*T).f");
    CHECK_STR(kiln_clean_short(KILN_STR("sort[go/x.T]")), "sort[go/x.T]");
    CHECK_STR(kiln_clean_short(KILN_STR("main")), "main");
    CHECK_STR(kiln_clean_short(KILN_STR("src/")), "src/");
    CHECK_STR(kiln_clean_short(KILN_STR("")), "");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytetext.h"
#include "base/err.h"
#include "test.h"

TEST(bytetext, hexadecimal_of_any_case_and_the_right_length)
{
    uint8_t bytes[2] = {0};

    CHECK_OK(kiln_hex_decode(KILN_STR("aF09"), bytes, 2));
    CHECK_EQ(bytes[0], 0xaf);
    CHECK_EQ(bytes[1], 0x09);
    CHECK_EQ(kiln_hex_decode(KILN_STR("aF0"), bytes, 2), KILN_E_MALFORMED);
    CHECK_EQ(kiln_hex_decode(KILN_STR("00:0"), bytes, 2), KILN_E_MALFORMED);
    CHECK_EQ(kiln_hex_decode(KILN_STR("00\x10\x19"), bytes, 2), KILN_E_MALFORMED);
    CHECK_EQ(bytes[0], 0xaf);
}

TEST(bytetext, bytes_become_digits_of_lower_case)
{
    char text[] = "....!";

    kiln_hex_encode("\xaf\x09", 2, text);
    CHECK_TEXT(text, "af09!");
    CHECK_EQ(kiln_hex_digit('F'), 15);
    CHECK_EQ(kiln_hex_digit('g'), -1);
    CHECK_EQ(kiln_hex_digit('\x19'), -1);
}

TEST(bytetext, base64_goes_both_ways)
{
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe?", "//4/"}};
    struct kiln_buf buf;
    char bytes[16];
    size_t len;

    kiln_buf_init(&buf, 64);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        kiln_buf_clear(&buf);
        kiln_buf_add_base64(&buf, cases[i].bytes, strlen(cases[i].bytes));
        CHECK_STR(kiln_buf_str(&buf), cases[i].text);
        CHECK_OK(kiln_base64_decode(kiln_str_of(cases[i].text), bytes, &len));
        CHECK_STR(((struct kiln_str){bytes, len}), cases[i].bytes);
    }
    kiln_buf_done(&buf);
}

TEST(bytetext, base64_may_lack_padding_and_use_the_url_alphabet)
{
    char bytes[16];
    size_t len;

    CHECK_OK(kiln_base64_decode(KILN_STR("__4_Zg"), bytes, &len));
    CHECK_STR(((struct kiln_str){bytes, len}), "\xff\xfe?f");
    CHECK_EQ(kiln_base64_decode(KILN_STR("Zg="), bytes, &len), KILN_E_MALFORMED);
    CHECK_EQ(kiln_base64_decode(KILN_STR("Z"), bytes, &len), KILN_E_MALFORMED);
    CHECK_EQ(kiln_base64_decode(KILN_STR("Z==="), bytes, &len), KILN_E_MALFORMED);
    CHECK_EQ(kiln_base64_decode(KILN_STR("Zg==Zg=="), bytes, &len), KILN_E_MALFORMED);
    CHECK_EQ(kiln_base64_decode(KILN_STR("Zm 8"), bytes, &len), KILN_E_MALFORMED);
}

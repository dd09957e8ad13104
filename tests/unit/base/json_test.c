/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "test.h"

/* The code that reading `text` as one document gives. */
static int verdict(struct kiln_str text)
{
    struct kiln_json r;
    int n;

    kiln_json_init(&r, text, NULL);
    n = kiln_json_skip(&r);
    if (n == 0)
        n = kiln_json_more(&r);
    if (n == 1)
        n = KILN_E_MALFORMED; /* something stands behind the value */
    kiln_json_done(&r);
    return n;
}

TEST(json, valid_documents_are_accepted)
{
    static const char *const good[] = {
        "{}",
        "[]",
        " [ ] ",
        "0",
        "-0",
        "1.5e+3",
        "0e1",
        "1E-2",
        "[1,2,3]",
        "{\"a\":{\"a\":{\"a\":[[[]]]}}}",
        "{\"\":0}",
        "{\"a\":1,\"a\":2}",
        "\"\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u0000\"",
        "\"\\ud834\\udd1e\"",
        "\"\x7f\"",
        "\"\xf4\x8f\xbf\xbf\"",
        "\"\xe2\x80\xa8\"",
        "true",
        "false",
        "null",
        "\t\r\n1 \n",
        "\xef\xbb\xbf{}",
        "123456789012345678901234567890",
        "1e999",
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(good); i++) {
        if (verdict(kiln_str_of(good[i])))
            fail_msg("refused: %s", good[i]);
    }
}

TEST(json, broken_documents_are_refused)
{
    static const struct {
        const char *text;
        int code;
    } bad[] = {
        {"", KILN_E_TRUNCATED},
        {" ", KILN_E_TRUNCATED},
        {"{", KILN_E_TRUNCATED},
        {"[", KILN_E_TRUNCATED},
        {"[1", KILN_E_TRUNCATED},
        {"[1,", KILN_E_TRUNCATED},
        {"{\"a\"", KILN_E_TRUNCATED},
        {"{\"a\":", KILN_E_TRUNCATED},
        {"\"", KILN_E_TRUNCATED},
        {"\"\\", KILN_E_TRUNCATED},
        {"\"\\u12", KILN_E_TRUNCATED},
        {"-", KILN_E_TRUNCATED},
        {"1.", KILN_E_TRUNCATED},
        {"1e", KILN_E_TRUNCATED},
        {"1e+", KILN_E_TRUNCATED},
        {"[1,]", KILN_E_MALFORMED},
        {"[,1]", KILN_E_MALFORMED},
        {"[1 2]", KILN_E_MALFORMED},
        {"[1}", KILN_E_MALFORMED},
        {"{]", KILN_E_MALFORMED},
        {"[1]]", KILN_E_MALFORMED},
        {"{\"a\":1,}", KILN_E_MALFORMED},
        {"{,}", KILN_E_MALFORMED},
        {"{a:1}", KILN_E_MALFORMED},
        {"{1:1}", KILN_E_MALFORMED},
        {"{'a':1}", KILN_E_MALFORMED},
        {"{\"a\" 1}", KILN_E_MALFORMED},
        {"{\"a\":}", KILN_E_MALFORMED},
        {"{\"a\":1 \"b\":2}", KILN_E_MALFORMED},
        {"01", KILN_E_MALFORMED},
        {"-01", KILN_E_MALFORMED},
        {"+1", KILN_E_MALFORMED},
        {".5", KILN_E_MALFORMED},
        {"1.e1", KILN_E_MALFORMED},
        {"0x1", KILN_E_MALFORMED},
        {"1e1.5", KILN_E_MALFORMED},
        {"NaN", KILN_E_MALFORMED},
        {"Infinity", KILN_E_MALFORMED},
        {"-Infinity", KILN_E_MALFORMED},
        {"tru", KILN_E_MALFORMED},
        {"truE", KILN_E_MALFORMED},
        {"nul", KILN_E_MALFORMED},
        {"truefalse", KILN_E_MALFORMED},
        {"[1]x", KILN_E_MALFORMED},
        {"/**/1", KILN_E_MALFORMED},
        {"1//", KILN_E_MALFORMED},
        {"\"\n\"", KILN_E_MALFORMED},
        {"\"12345678\t\"", KILN_E_MALFORMED},
        {"\"\\x41\"", KILN_E_MALFORMED},
        {"\"\\u00g0\"", KILN_E_MALFORMED},
        {"\"\\u0x12\"", KILN_E_MALFORMED},
        {"\"\\U0041\"", KILN_E_MALFORMED},
        {"\"\\n\x01\"", KILN_E_MALFORMED},
        {"\"\\ud800\"", KILN_E_UTF8},
        {"\"\\udc00\"", KILN_E_UTF8},
        {"\"\\ud800\\u0041\"", KILN_E_UTF8},
        {"\"\\ud800\\ud800\"", KILN_E_UTF8},
        {"\"\xff\"", KILN_E_UTF8},
        {"\"\xc0\x80\"", KILN_E_UTF8},
        {"\"\xed\xa0\x80\"", KILN_E_UTF8},
        {"\"\xf4\x90\x80\x80\"", KILN_E_UTF8},
        {"\"\xe2\x82\"", KILN_E_UTF8},
        {"\"\\n\xff\"", KILN_E_UTF8},
        {"\xff\xfe{", KILN_E_MALFORMED},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        int code = verdict(kiln_str_of(bad[i].text));

        if (code != bad[i].code)
            fail_msg("%s: %d instead of %d", bad[i].text, code, bad[i].code);
    }
    CHECK_EQ(verdict(KILN_STR("[\0]")), KILN_E_MALFORMED);
    CHECK_EQ(verdict(KILN_STR("\"\0\"")), KILN_E_MALFORMED);
}

TEST(json, every_prefix_of_a_document_is_refused)
{
    static const char text[] = "{\"a\":[1,-2.5e-3,true,null,\"x\\ud834\\udd1e\xc3\xa9\"],\"b\":{}}";

    for (size_t n = 0; n < sizeof(text) - 1; n++)
        CHECK(verdict((struct kiln_str){text, n}) < 0);
    CHECK_EQ(verdict(KILN_STR(text)), 0);
}

TEST(json, depth_has_a_limit)
{
    char text[2 * KILN_JSON_DEPTH_MAX + 2];

    memset(text, '[', KILN_JSON_DEPTH_MAX);
    memset(text + KILN_JSON_DEPTH_MAX, ']', KILN_JSON_DEPTH_MAX);
    CHECK_EQ(verdict((struct kiln_str){text, 2 * KILN_JSON_DEPTH_MAX}), 0);
    memset(text, '[', sizeof(text));
    CHECK_EQ(verdict((struct kiln_str){text, sizeof(text)}), KILN_E_LIMIT);
}

TEST(json, an_error_names_line_and_column)
{
    struct kiln_err err = {0};
    struct kiln_json r;

    kiln_json_init(&r, KILN_STR("{\n  \"\xc3\xa9\": [1, x]\n}"), &err);
    CHECK_EQ(kiln_json_skip(&r), KILN_E_MALFORMED);
    CHECK_TEXT(err.text, "expected a value, found 'x' at line 2, column 12");
    CHECK_EQ(kiln_json_skip(&r), KILN_E_MALFORMED); /* the error sticks */
    CHECK_EQ(kiln_json_more(&r), KILN_E_MALFORMED);
    kiln_json_done(&r);
}

static int read_i64(const char *text, int64_t *ret)
{
    struct kiln_json r;
    int n;

    kiln_json_init(&r, kiln_str_of(text), NULL);
    n = kiln_json_i64(&r, ret);
    kiln_json_done(&r);
    return n;
}

static int read_u64(const char *text, uint64_t *ret)
{
    struct kiln_json r;
    int n;

    kiln_json_init(&r, kiln_str_of(text), NULL);
    n = kiln_json_u64(&r, ret);
    kiln_json_done(&r);
    return n;
}

TEST(json, integers_of_64_bits_are_exact)
{
    int64_t i = 0;
    uint64_t u = 0;

    CHECK_OK(read_i64("9223372036854775807", &i));
    CHECK(i == INT64_MAX);
    CHECK_OK(read_i64("-9223372036854775808", &i));
    CHECK(i == INT64_MIN);
    CHECK_OK(read_u64("18446744073709551615", &u));
    CHECK(u == UINT64_MAX);
    CHECK_OK(read_i64("9007199254740993", &i)); /* 2^53 + 1: not a double */
    CHECK(i == 9007199254740993);
    CHECK_OK(read_i64("-0", &i));
    CHECK(i == 0);
    CHECK_OK(read_u64("-0", &u));
    CHECK_OK(read_i64("1.7000000000000000010e18", &i));
    CHECK(i == 1700000000000000001);
    CHECK_OK(read_i64("12300e-2", &i));
    CHECK(i == 123);
    CHECK_OK(read_i64("0e999999999999999999999", &i));
    CHECK(i == 0);
}

TEST(json, what_is_no_integer_in_range_is_refused)
{
    int64_t i = 7;
    uint64_t u = 7;

    CHECK_EQ(read_i64("9223372036854775808", &i), -ERANGE);
    CHECK_EQ(read_i64("-9223372036854775809", &i), -ERANGE);
    CHECK_EQ(read_u64("18446744073709551616", &u), -ERANGE);
    CHECK_EQ(read_u64("-1", &u), -ERANGE);
    CHECK_EQ(read_i64("1e30", &i), -ERANGE);
    CHECK_EQ(read_i64("1e99999999999999999999", &i), -ERANGE);
    CHECK_EQ(read_i64("1.5", &i), KILN_E_MALFORMED);
    CHECK_EQ(read_i64("1e-1", &i), KILN_E_MALFORMED);
    CHECK_EQ(read_i64("\"1\"", &i), KILN_E_MALFORMED);
    CHECK_EQ(i, 7);
    CHECK_EQ(u, 7);
}

static double read_double(const char *text)
{
    double d = NAN;
    struct kiln_json r;

    kiln_json_init(&r, kiln_str_of(text), NULL);
    CHECK_OK(kiln_json_double(&r, &d));
    kiln_json_done(&r);
    return d;
}

TEST(json, doubles_are_rounded_to_the_nearest)
{
    double d;

    CHECK(read_double("0.1") == 0.1);
    CHECK(read_double("-1.5e3") == -1500);
    CHECK(signbit(read_double("-0")));
    CHECK(read_double("2.2250738585072011e-308") == 2.2250738585072011e-308);
    CHECK(read_double("1.7976931348623157e308") == 1.7976931348623157e308);
    CHECK(read_double("9007199254740993") == 9007199254740992);
    CHECK(read_double("0.1000000000000000055511151231257827021181583404541015625000000000000000"
                      "00000000000000000000000000000001") > 0.1 - 1e-17);
    CHECK(read_double("1e-400") == 0);
    CHECK_EQ(kiln_json_parse_double(KILN_STR("1e400"), &d), -ERANGE);
    CHECK_EQ(kiln_json_parse_double(KILN_STR("1 "), &d), KILN_E_MALFORMED);
    CHECK_EQ(kiln_json_parse_double(KILN_STR(""), &d), KILN_E_MALFORMED);
}

TEST(json, a_string_without_escapes_points_into_the_text)
{
    struct kiln_str text = KILN_STR("[\"plain\",\"a\\nb\\u00e9\\ud834\\udd1e\",\"\"]"), s;
    struct kiln_json r;

    kiln_json_init(&r, text, NULL);
    CHECK_OK(kiln_json_array(&r));
    CHECK_EQ(kiln_json_element(&r), 1);
    CHECK_OK(kiln_json_string(&r, &s));
    CHECK_STR(s, "plain");
    CHECK(s.ptr == text.ptr + 2);
    CHECK_EQ(kiln_json_element(&r), 1);
    CHECK_OK(kiln_json_string(&r, &s));
    CHECK_STR(s, "a\nb\xc3\xa9\xf0\x9d\x84\x9e");
    CHECK_EQ(kiln_json_element(&r), 1);
    CHECK_OK(kiln_json_string(&r, &s));
    CHECK_EQ(s.len, 0);
    CHECK_EQ(kiln_json_element(&r), 0);
    CHECK_EQ(kiln_json_more(&r), 0);
    kiln_json_done(&r);
}

TEST(json, members_come_with_their_names_and_values_may_be_visited_later)
{
    struct kiln_json r;
    struct kiln_str name, s;
    size_t later = 0;
    int64_t i = 0;

    kiln_json_init(&r, KILN_STR(" {\"late\" : [\"x\"], \"n\":5 , \"none\":null} "), NULL);
    CHECK_OK(kiln_json_object(&r));
    CHECK_EQ(kiln_json_member(&r, &name), 1);
    CHECK_STR(name, "late");
    later = kiln_json_tell(&r);
    CHECK_OK(kiln_json_skip(&r));
    CHECK_EQ(kiln_json_member(&r, &name), 1);
    CHECK_EQ(kiln_json_null(&r), 0);
    CHECK_OK(kiln_json_i64(&r, &i));
    CHECK_EQ(i, 5);
    CHECK_EQ(kiln_json_member(&r, &name), 1);
    CHECK_EQ(kiln_json_null(&r), 1);
    CHECK_EQ(kiln_json_member(&r, &name), 0);
    kiln_json_seek(&r, later);
    CHECK_OK(kiln_json_array(&r));
    CHECK_EQ(kiln_json_element(&r), 1);
    CHECK_OK(kiln_json_string(&r, &s));
    CHECK_STR(s, "x");
    kiln_json_done(&r);
}

TEST(json, documents_may_follow_each_other)
{
    struct kiln_json r;
    int documents = 0;

    kiln_json_init(&r, KILN_STR("{}\n{\"a\":1}\n\n[]\n"), NULL);
    while (kiln_json_more(&r) == 1) {
        CHECK_OK(kiln_json_skip(&r));
        documents++;
    }
    CHECK_EQ(documents, 3);
    kiln_json_done(&r);
}

TEST(json, running_out_of_memory_is_an_error)
{
    struct kiln_json r;
    struct kiln_str s = KILN_STR_NONE;
    int64_t before = kiln_mem_live();

    kiln_json_init(&r, KILN_STR("\"a\\n\""), NULL);
    kiln_mem_fail_at(1);
    CHECK_EQ(kiln_json_string(&r, &s), -ENOMEM);
    kiln_mem_fail_at(0);
    kiln_json_done(&r);
    CHECK_EQ(kiln_mem_live(), before);
}

/* ---- writing ---- */

static void write_sample(struct kiln_json_out *w)
{
    kiln_json_put_object(w);
    kiln_json_put_name(w, "list");
    kiln_json_put_array(w);
    kiln_json_put_i64(w, INT64_MIN);
    kiln_json_put_u64_text(w, UINT64_MAX);
    kiln_json_put_array(w);
    kiln_json_end_array(w);
    kiln_json_end_array(w);
    kiln_json_put_name(w, "none");
    kiln_json_put_null(w);
    kiln_json_put_name(w, "sub");
    kiln_json_put_object(w);
    kiln_json_put_name(w, "yes");
    kiln_json_put_bool(w, true);
    kiln_json_end_object(w);
    kiln_json_end_object(w);
}

TEST(json, the_writer_is_compact_or_indented)
{
    struct kiln_buf buf;
    struct kiln_json_out w;

    kiln_buf_init(&buf, 4096);
    kiln_json_out_init(&w, &buf, 0);
    write_sample(&w);
    CHECK_STR(kiln_buf_str(&buf), "{\"list\":[-9223372036854775808,\"18446744073709551615\",[]],"
                                  "\"none\":null,\"sub\":{\"yes\":true}}");
    kiln_buf_clear(&buf);
    kiln_json_out_init(&w, &buf, 2);
    write_sample(&w);
    CHECK_STR(kiln_buf_str(&buf), "{\n"
                                  "  \"list\": [\n"
                                  "    -9223372036854775808,\n"
                                  "    \"18446744073709551615\",\n"
                                  "    []\n"
                                  "  ],\n"
                                  "  \"none\": null,\n"
                                  "  \"sub\": {\n"
                                  "    \"yes\": true\n"
                                  "  }\n"
                                  "}");
    kiln_buf_done(&buf);
}

TEST(json, the_writer_escapes_what_must_be_and_repairs_what_is_not_utf8)
{
    struct kiln_buf buf;
    struct kiln_json_out w;

    kiln_buf_init(&buf, 4096);
    kiln_json_out_init(&w, &buf, 0);
    kiln_json_put_str(&w, KILN_STR("a\"\\/\n\x01\x1f\x7f\0z\xc3\xa9\xff\xe2\x82"));
    CHECK_STR(kiln_buf_str(&buf), "\"a\\\"\\\\/\\n\\u0001\\u001f\\u007f\\u0000z\xc3\xa9\xef\xbf\xbd"
                                  "\xef\xbf\xbd\xef\xbf\xbd\"");
    CHECK_EQ(verdict(kiln_buf_str(&buf)), 0);
    kiln_buf_done(&buf);
}

/* C1 controls, line separators and marks of direction: a terminal would obey them. */
TEST(json, the_writer_escapes_what_a_terminal_would_obey)
{
    static const char text[] =
        "\xc2\x80\xc2\x9b\xc2\xa0\xd8\x9c\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\xa8"
        "\xe2\x80\xae\xe2\x80\xaf\xe2\x81\xa6\xe2\x81\xa9\xe2\x82\xac\xe2\x80\xc2";
    struct kiln_json_out w;
    struct kiln_buf buf;

    kiln_buf_init(&buf, 4096);
    kiln_json_out_init(&w, &buf, 0);
    kiln_json_put_str(&w, KILN_STR(text));
    CHECK_STR(kiln_buf_str(&buf), "\"\\u0080\\u009b\xc2\xa0\\u061c\xe2\x80\x8d\\u200e\\u2028\\u202e"
                                  "\xe2\x80\xaf\\u2066\\u2069\xe2\x82\xac\xef\xbf\xbd\xef\xbf\xbd"
                                  "\xef\xbf\xbd\"");
    CHECK_EQ(verdict(kiln_buf_str(&buf)), 0);
    kiln_buf_done(&buf);
}

TEST(json, a_double_is_written_short_and_reads_back_the_same)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},
        {5, "5"},
        {-0.0, "-0.0"},
        {1e300, "1e+300"},
        {1.0 / 3, "0.3333333333333333"},
        {5e-324, "4.94065645841247e-324"},
        {NAN, "\"NaN\""},
        {INFINITY, "\"Infinity\""},
        {-INFINITY, "\"-Infinity\""},
    };
    struct kiln_buf buf;
    struct kiln_json_out w;

    kiln_buf_init(&buf, 4096);
    for (size_t i = 0; i < KILN_ARRAY_LEN(cases); i++) {
        kiln_buf_clear(&buf);
        kiln_json_out_init(&w, &buf, 0);
        kiln_json_put_double(&w, cases[i].value);
        CHECK_STR(kiln_buf_str(&buf), cases[i].text);
        if (isfinite(cases[i].value)) {
            kiln_buf_putc(&buf, '\0');
            CHECK(read_double(buf.ptr) == cases[i].value);
        }
    }
    kiln_buf_done(&buf);
}

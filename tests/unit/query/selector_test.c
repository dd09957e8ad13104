/* SPDX-License-Identifier: Apache-2.0 */
#include "query/selector.h"

#include "base/mem.h"
#include "base/regex.h"
#include "test.h"

/* A selector as "type name=value name!~value ..."; an error as its sentence.  Until the next call.
 */
static const char *parsed(const char *text)
{
    static char out[1024];
    static const char *const ops[] = {"=", "!=", "=~", "!~"};
    struct kiln_selector s = {0};
    struct kiln_err err = {0};
    size_t len = 0;
    int r = kiln_selector_add(&s, kiln_str_of(text), &err);

    if (r < 0) {
        snprintf(out, sizeof(out), "%s", err.text);
        CHECK_EQ(err.code, r);
    } else {
        len += (size_t)snprintf(out, sizeof(out), "%.*s", KILN_STR_ARG(s.type));
        for (uint32_t i = 0; i < s.n_matchers; i++)
            len += (size_t)snprintf(out + len, sizeof(out) - len, " %.*s%s%.*s",
                                    KILN_STR_ARG(s.matchers[i].name), ops[s.matchers[i].op],
                                    KILN_STR_ARG(s.matchers[i].value));
    }
    kiln_selector_done(&s);
    return out;
}

/* Whether `{a=~"PATTERN"}` matches a value. */
static bool chooses(const char *text, const char *value)
{
    struct kiln_selector s = {0};
    int r;

    CHECK_OK(kiln_selector_add(&s, kiln_str_of(text), NULL));
    CHECK_EQ(s.n_matchers, 1);
    r = kiln_regex_matches(s.matchers[0].regex, kiln_str_of(value));
    kiln_selector_done(&s);
    CHECK(r >= 0);
    return r == 1;
}

TEST(selector, a_type_and_matchers_of_every_kind_are_read)
{
    CHECK_TEXT(parsed("process_cpu:cpu:nanoseconds{service_name=\"shop/cart\", pod=~\"a|b\", "
                      "env!=\"test\",x!~\"y.*\"}"),
               "process_cpu:cpu:nanoseconds service_name=shop/cart pod=~a|b env!=test x!~y.*");
}

TEST(selector, nothing_braces_and_a_last_comma_are_fine)
{
    CHECK_TEXT(parsed(""), "");
    CHECK_TEXT(parsed("  "), "");
    CHECK_TEXT(parsed("{}"), "");
    CHECK_TEXT(parsed("{ a = \"b\" , }"), " a=b");
    CHECK_TEXT(parsed("off_cpu:off_cpu:nanoseconds::"), "off_cpu:off_cpu:nanoseconds::");
}

TEST(selector, names_that_are_no_words_stand_in_quotes)
{
    CHECK_TEXT(parsed("{\"k8s.pod.name\"=\"x\", 'a b'!=\"y\"}"), " k8s.pod.name=x a b!=y");
    CHECK_TEXT(parsed("{service.version=\"1.2\"}"), " service.version=1.2");
    CHECK_TEXT(parsed("{\"memory:inuse_space:bytes:space:bytes\", a=\"b\"}"),
               "memory:inuse_space:bytes:space:bytes a=b");
}

TEST(selector, strings_have_the_escapes_of_go)
{
    CHECK_TEXT(parsed("{a=\"x\\\"y\\n\\x41\\101\\u00e9\\U0001F525\"}"),
               " a=x\"y\nAA\xc3\xa9\xf0\x9f\x94\xa5");
    CHECK_TEXT(parsed("{a='it\\'s'}"), " a=it's");
    CHECK_TEXT(parsed("{a=`\\d\"'`}"), " a=\\d\"'");
    CHECK_TEXT(parsed("{a=\"\\'\"}"), "1:5: parse error: unknown escape sequence in a string");
    CHECK_TEXT(parsed("{a=\"\\ud800\"}"), "1:5: parse error: unknown escape sequence in a string");
    CHECK_TEXT(parsed("{a=\"\\400\"}"), "1:5: parse error: unknown escape sequence in a string");
    CHECK_TEXT(parsed("{a=\"\\x4\"}"), "1:5: parse error: unknown escape sequence in a string");
}

TEST(selector, comments_and_line_breaks_are_passed_over)
{
    CHECK_TEXT(parsed("{ # the shop\n  a=\"b\", # and\n c=\"d\"\n}"), " a=b c=d");
}

TEST(selector, errors_name_line_and_column)
{
    CHECK_TEXT(parsed("{service_name="),
               "1:15: parse error: unexpected end of input inside braces");
    CHECK_TEXT(parsed("{a=\"b\""), "1:7: parse error: unexpected end of input inside braces");
    CHECK_TEXT(parsed("{a=\"b}"), "1:4: parse error: unterminated quoted string");
    CHECK_TEXT(parsed("{a=\"b\nc\"}"), "1:4: parse error: unterminated quoted string");
    CHECK_TEXT(parsed("{a=b}"), "1:4: parse error: in label matching a string is expected, not b");
    CHECK_TEXT(parsed("{a\n\"b\"}"),
               "2:1: parse error: in label matching =, !=, =~ or !~ is expected, not \"");
    CHECK_TEXT(parsed("{a=\"b\" c=\"d\"}"),
               "1:8: parse error: in label matching \",\" or \"}\" is expected, not c");
    CHECK_TEXT(parsed("{,}"), "1:2: parse error: in label matching a name or \"}\" is expected, "
                              "not ,");
    CHECK_TEXT(parsed("{} + {}"), "1:4: parse error: unexpected text: + {}");
    CHECK_TEXT(parsed("a{\"b\"}"), "1:3: parse error: the type is said twice: b");
    CHECK_TEXT(parsed("{\"\"=\"b\"}"), "1:2: parse error: the name of a label is empty");
}

TEST(selector, expressions_match_the_whole_value_as_re2_would)
{
    CHECK(chooses("{a=~\"b|cd\"}", "cd"));
    CHECK(!chooses("{a=~\"b|cd\"}", "cde"));
    CHECK(!chooses("{a=~\"b|cd\"}", "bd"));
    CHECK(chooses("{a=~\"x.y\"}", "x\ny"));
    CHECK(!chooses("{a=~\"x$\"}", "x\n"));
    CHECK(chooses("{a=~\"\"}", ""));
    CHECK(chooses("{a=~\"(?i)PAY.*\"}", "payments"));
}

TEST(selector, a_bad_expression_is_named_with_its_place)
{
    struct kiln_selector s = {0};
    struct kiln_err err = {0};

    CHECK_EQ(kiln_selector_add(&s, KILN_STR("{a=\"b\", c=~\"x)(y\"}"), &err), KILN_E_PATTERN);
    CHECK(strstr(err.text, "1:9: parse error: bad pattern \"x)(y\""));
    kiln_selector_done(&s);
}

TEST(selector, an_expression_that_takes_too_many_steps_gives_up_for_good)
{
    struct kiln_selector s = {0};
    char evil[64];

    memset(evil, 'a', sizeof(evil));
    memcpy(evil + 60, "!b!b", 4);
    CHECK_OK(kiln_selector_add(&s, KILN_STR("{a=~\"(a*)*(a*)*(a*)*b\"}"), NULL));
    CHECK(!kiln_selector_gave_up(&s));
    CHECK_EQ(kiln_regex_matches(s.matchers[0].regex, (struct kiln_str){evil, sizeof(evil)}),
             KILN_E_LIMIT);
    CHECK(kiln_selector_gave_up(&s) == &s.matchers[0]);
    CHECK_EQ(kiln_regex_matches(s.matchers[0].regex, KILN_STR("ab")), KILN_E_LIMIT);
    kiln_selector_done(&s);
}

TEST(selector, several_texts_add_up_but_say_one_type)
{
    struct kiln_selector s = {0};

    CHECK_OK(kiln_selector_add(&s, KILN_STR("{a=\"b\"}"), NULL));
    CHECK_OK(kiln_selector_add(&s, KILN_STR("cpu{c=\"d\"}"), NULL));
    CHECK_EQ(s.n_matchers, 2);
    CHECK_STR(s.type, "cpu");
    CHECK_EQ(kiln_selector_add(&s, KILN_STR("wall"), NULL), KILN_E_MALFORMED);
    kiln_selector_done(&s);
}

TEST(selector, more_than_it_may_have_is_refused)
{
    struct kiln_selector s = {0};
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 20);
    kiln_buf_putc(&text, '{');
    for (int i = 0; i <= KILN_SELECTOR_MATCHERS_MAX; i++)
        kiln_buf_puts(&text, "a=\"b\",");
    kiln_buf_putc(&text, '}');
    CHECK_EQ(kiln_selector_add(&s, kiln_buf_str(&text), NULL), KILN_E_LIMIT);
    CHECK_EQ(s.n_matchers, KILN_SELECTOR_MATCHERS_MAX);
    kiln_selector_done(&s);
    while (text.len <= KILN_SELECTOR_BYTES_MAX)
        kiln_buf_puts(&text, "                ");
    CHECK_EQ(kiln_selector_add(&s, kiln_buf_str(&text), NULL), KILN_E_LIMIT);
    kiln_selector_done(&s);
    kiln_buf_done(&text);
}

TEST(selector, no_memory_is_an_ordinary_error)
{
    const struct kiln_str text = KILN_STR("cpu{a=~\"b\", c=\"d\"}");
    int64_t live = kiln_mem_live();
    int r = -1;

    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_selector s = {0};

        kiln_mem_fail_at(n);
        r = kiln_selector_add(&s, text, NULL);
        kiln_mem_fail_at(0);
        kiln_selector_done(&s);
        CHECK_EQ(kiln_mem_live(), live);
        CHECK(n < 1000);
    }
}

TEST(selector, what_is_quoted_is_read_back_as_it_was)
{
    const struct kiln_str odd = KILN_STR("a\"b\\c\n\0`'\xc3\xa9");
    struct kiln_selector s = {0};
    struct kiln_buf text;

    kiln_buf_init(&text, 256);
    kiln_buf_putc(&text, '{');
    kiln_selector_quote(odd, &text);
    kiln_buf_putc(&text, '=');
    kiln_selector_quote(odd, &text);
    kiln_buf_putc(&text, '}');
    CHECK_OK(kiln_selector_add(&s, kiln_buf_str(&text), NULL));
    CHECK(kiln_str_eq(s.matchers[0].name, odd));
    CHECK(kiln_str_eq(s.matchers[0].value, odd));
    kiln_selector_done(&s);
    kiln_buf_done(&text);
}

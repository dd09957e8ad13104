/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "base/regex.h"
#include "test.h"

static bool matches(const char *pattern, unsigned flags, const char *text)
{
    struct kiln_regex *regex;
    int r;

    CHECK_OK(kiln_regex_new(kiln_str_of(pattern), flags, &regex, NULL));
    r = kiln_regex_matches(regex, kiln_str_of(text));
    kiln_regex_free(regex);
    CHECK(r >= 0);
    return r == 1;
}

TEST(regex, a_part_of_the_text_is_enough_unless_the_whole_is_asked_for)
{
    CHECK(matches("par.e", 0, "json.parse"));
    CHECK(!matches("par.e", 0, "json.print"));
    CHECK(!matches("par.e", KILN_REGEX_WHOLE, "json.parse"));
    CHECK(matches("json|json\\.parse", KILN_REGEX_WHOLE, "json.parse"));
    CHECK(matches("", 0, "anything"));
    CHECK(matches("", KILN_REGEX_WHOLE, ""));
    CHECK(!matches("", KILN_REGEX_WHOLE, "x"));
}

TEST(regex, case_matters_unless_the_pattern_says_otherwise)
{
    CHECK(!matches("Parse", 0, "parse"));
    CHECK(matches("(?i)Parse", 0, "parse"));
}

TEST(regex, a_text_that_is_not_utf8_can_be_searched)
{
    CHECK(matches("parse", 0, "\xff\xfe parse \xc3"));
    CHECK(matches("^gr..n$", 0, "gr\xc3\xbc\xc3\xbcn"));
}

TEST(regex, an_error_names_the_pattern_and_the_offset)
{
    struct kiln_err err = {0};
    struct kiln_regex *regex = NULL;

    CHECK_EQ(kiln_regex_new(KILN_STR("main.(read"), 0, &regex, &err), KILN_E_PATTERN);
    CHECK(regex == NULL);
    CHECK(strstr(err.text, "\"main.(read\" at offset 10: ") != NULL);
}

TEST(regex, a_pattern_that_runs_away_is_an_error)
{
    struct kiln_regex *regex;
    char text[64];
    int r;

    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = 'b';
    CHECK_OK(kiln_regex_new(KILN_STR("^(a+|a|aa)+$"), 0, &regex, NULL));
    r = kiln_regex_matches(regex, (struct kiln_str){text, sizeof(text)});
    CHECK_EQ(r, KILN_E_LIMIT);
    kiln_regex_free(regex);
}

TEST(regex, running_out_of_memory_leaks_nothing)
{
    int64_t live = kiln_mem_live();
    struct kiln_regex *regex = NULL;
    uint64_t n = 0;
    int r;

    do {
        kiln_mem_fail_at(++n);
        r = kiln_regex_new(KILN_STR("(main|run)\\.[a-z]+"), 0, &regex, NULL);
        kiln_mem_fail_at(0);
        if (r < 0) {
            CHECK_EQ(r, -ENOMEM);
            CHECK_EQ(kiln_mem_live(), live);
        }
    } while (r < 0);
    CHECK(n > 3);
    kiln_regex_free(regex);
    CHECK_EQ(kiln_mem_live(), live);
}

/* The text with every match replaced, in a static buffer. */
static const char *replaced(const char *pattern, const char *text, const char *with)
{
    static char result[256];
    struct kiln_regex *regex;
    struct kiln_buf out;
    int r;

    CHECK_OK(kiln_regex_new(kiln_str_of(pattern), 0, &regex, NULL));
    CHECK_OK(kiln_regex_check_replacement(regex, kiln_str_of(with), NULL));
    kiln_buf_init(&out, sizeof(result) - 1);
    r = kiln_regex_replace(regex, kiln_str_of(text), kiln_str_of(with), &out);
    CHECK(r >= 0);
    snprintf(result, sizeof(result), "%d %.*s", r, KILN_STR_ARG(kiln_buf_str(&out)));
    kiln_buf_done(&out);
    kiln_regex_free(regex);
    return result;
}

TEST(regex, every_match_is_replaced)
{
    CHECK_TEXT(replaced("o", "foo boot", "0"), "4 f00 b00t");
    CHECK_TEXT(replaced("x", "foo", "0"), "0 foo");
    CHECK_TEXT(replaced("^/home/[^/]+", "/home/ann/home/bob", "~"), "1 ~/home/bob");
    CHECK_TEXT(replaced(".*", "all", ""), "2 ");
}

TEST(regex, groups_may_come_again)
{
    CHECK_TEXT(replaced("(\\w+)@(\\w+)", "ann@host", "$2 of ${1}!"), "1 host of ann!");
    CHECK_TEXT(replaced("(a)|(b)", "ab", "<$1$2>"), "2 <a><b>");
    CHECK_TEXT(replaced("(?P<user>\\w+)@(?<at>\\w+)", "ann@host", "${at}/${user}$$"),
               "1 host/ann$");
    CHECK_TEXT(replaced("b", "abc", "$0$0$$"), "1 abb$c");
}

TEST(regex, empty_matches_are_found_between_characters)
{
    CHECK_TEXT(replaced("", "a\xc3\xbc", "-"), "3 -a-\xc3\xbc-");
    CHECK_TEXT(replaced("x*", "axb", "-"), "4 -a--b-");
}

TEST(regex, a_replacement_that_makes_no_sense_is_an_error)
{
    struct kiln_err err = {0};
    struct kiln_regex *regex;

    CHECK_OK(kiln_regex_new(KILN_STR("(a)"), 0, &regex, NULL));
    CHECK_OK(kiln_regex_check_replacement(regex, KILN_STR(""), NULL));
    CHECK_EQ(kiln_regex_check_replacement(regex, KILN_STR("$2"), &err), KILN_E_PATTERN);
    CHECK_TEXT(err.text, "the replacement asks for group 2 of 1");
    CHECK_EQ(kiln_regex_check_replacement(regex, KILN_STR("cost: $"), NULL), KILN_E_PATTERN);
    CHECK_EQ(kiln_regex_check_replacement(regex, KILN_STR("${1"), NULL), KILN_E_PATTERN);
    CHECK_EQ(kiln_regex_check_replacement(regex, KILN_STR("$x"), NULL), KILN_E_PATTERN);
    CHECK_EQ(kiln_regex_check_replacement(regex, KILN_STR("${x}"), NULL), KILN_E_PATTERN);
    CHECK_EQ(kiln_regex_check_replacement(regex, KILN_STR("${}"), NULL), KILN_E_PATTERN);
    kiln_regex_free(regex);
}

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

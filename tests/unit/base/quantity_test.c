/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quantity.h"

#include <errno.h>

#include "base/err.h"
#include "test.h"

static void check_size(const char *text, uint64_t expected)
{
    uint64_t bytes = 1;

    if (kiln_size_parse(kiln_str_of(text), &bytes) < 0 || bytes != expected)
        fail_msg("\"%s\" is %llu", text, (unsigned long long)bytes);
}

static void check_span(const char *text, uint64_t expected)
{
    uint64_t ns = 1;

    if (kiln_duration_parse(kiln_str_of(text), &ns) < 0 || ns != expected)
        fail_msg("\"%s\" is %llu", text, (unsigned long long)ns);
}

TEST(quantity, sizes_have_binary_units)
{
    check_size("0", 0);
    check_size("512", 512);
    check_size("12B", 12);
    check_size("64K", 65536);
    check_size("64k", 65536);
    check_size("64KB", 65536);
    check_size("64KiB", 65536);
    check_size("64MiB", UINT64_C(64) << 20);
    check_size("2G", UINT64_C(2) << 30);
    check_size("1T", UINT64_C(1) << 40);
}

TEST(quantity, what_is_no_size_is_refused)
{
    static const char *const bad[] = {"",     "M",    "-1",     "1.5G", "64X",
                                      "64Ki", "64 M", "64MiBs", "0x1"};
    uint64_t bytes = 7;

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++)
        CHECK_EQ(kiln_size_parse(kiln_str_of(bad[i]), &bytes), KILN_E_MALFORMED);
    CHECK_EQ(kiln_size_parse(KILN_STR("99999999T"), &bytes), -ERANGE);
    CHECK_EQ(bytes, 7);
}

TEST(quantity, durations_add_up)
{
    check_span("0", 0);
    check_span("10s", UINT64_C(10000000000));
    check_span("1h30m", UINT64_C(5400000000000));
    check_span("14d", UINT64_C(1209600000000000));
    check_span("1w", UINT64_C(604800000000000));
    check_span("1.5s", 1500000000);
    check_span("0.25ms", 250000);
    check_span("7us3ns", 7003);
    check_span(".5s", 500000000);
    check_span("1m.25s", UINT64_C(60250000000));
    check_span("500\xc2\xb5s", 500000);
    check_span("500\xce\xbcs1ns", 500001);
}

TEST(quantity, what_is_no_duration_is_refused)
{
    static const char *const bad[] = {"",    "10",     "s",    "-1s",           "1.s",
                                      "1 s", "1x",     "1s ",  "1.1234567890s", ".",
                                      ".s",  "5\xb5s", "1..5s"};
    uint64_t ns = 7;

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++)
        CHECK_EQ(kiln_duration_parse(kiln_str_of(bad[i]), &ns), KILN_E_MALFORMED);
    CHECK_EQ(kiln_duration_parse(KILN_STR("99999999999d"), &ns), -ERANGE);
    CHECK_EQ(kiln_duration_parse(KILN_STR("30000w30000w"), &ns), -ERANGE);
    CHECK_EQ(ns, 7);
}

TEST(quantity, a_mistyped_word_finds_the_one_that_was_meant)
{
    static const char *const words[] = {"server", "store", "scrape"};

    CHECK_TEXT(kiln_nearest("sevrer", words, 3), "server");
    CHECK_TEXT(kiln_nearest("stroe", words, 3), "store");
    CHECK(kiln_nearest("redaction", words, 3) == NULL);
    CHECK(kiln_nearest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", words, 3) == NULL);
}

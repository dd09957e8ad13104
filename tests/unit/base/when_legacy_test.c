/* SPDX-License-Identifier: Apache-2.0 */
#include "base/when.h"

#include "test.h"

#define NOW UINT64_C(1800000000000000000)
#define S   UINT64_C(1000000000)

static uint64_t at(const char *text)
{
    uint64_t ns = 1;

    CHECK_OK(kiln_when_parse_legacy(kiln_str_of(text), NOW, &ns));
    return ns;
}

TEST(when_legacy, digits_say_their_unit_by_their_number)
{
    CHECK_EQ(at("1794734700"), 1794734700 * S);
    CHECK_EQ(at("1794734700123"), UINT64_C(1794734700123000000));
    CHECK_EQ(at("1794734700123456"), UINT64_C(1794734700123456000));
    CHECK_EQ(at("1794734700123456789"), UINT64_C(1794734700123456789));
    CHECK_EQ(at("12"), 12 * S);
}

TEST(when_legacy, eight_digits_are_a_day_if_they_can_be_one)
{
    CHECK_EQ(at("20260301"), 1772323200 * S);
    CHECK_EQ(at("99999999"), 99999999 * S);
}

TEST(when_legacy, offsets_are_chains_from_now)
{
    CHECK_EQ(at("now"), NOW);
    CHECK_EQ(at("now-1h"), NOW - 3600 * S);
    CHECK_EQ(at("now-1h30m"), NOW - 5400 * S);
    CHECK_EQ(at("now - 2min"), NOW - 120 * S);
    CHECK_EQ(at("now+1d"), NOW + 86400 * S);
    CHECK_EQ(at("now-1M"), NOW - 30 * 86400 * S);
    CHECK_EQ(at("now-2mon"), NOW - 60 * 86400 * S);
    CHECK_EQ(at("now-1w1y"), NOW - 372 * 86400 * S);
}

TEST(when_legacy, what_makes_no_sense_is_now)
{
    CHECK_EQ(at(""), NOW);
    CHECK_EQ(at("yesterday"), NOW);
    CHECK_EQ(at("now-3x"), NOW);
    CHECK_EQ(at("now-h"), NOW);
    CHECK_EQ(at("17_947,347 00"), 1794734700 * S);
}

TEST(when_legacy, dates_with_dashes_are_ours)
{
    CHECK_EQ(at("2026-03-01T00:00:00Z"), 1772323200 * S);
}

TEST(when_legacy, what_does_not_fit_is_an_error)
{
    uint64_t ns;

    CHECK(kiln_when_parse_legacy(KILN_STR("99999999999999999999"), NOW, &ns) < 0);
    CHECK(kiln_when_parse_legacy(KILN_STR("now-999999999y"), NOW, &ns) < 0);
    CHECK(kiln_when_parse_legacy(KILN_STR("now-99y"), NOW, &ns) < 0);
}

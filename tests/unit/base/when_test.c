/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/when.h"
#include "test.h"

#define NOON UINT64_C(1772366400000000000) /* 2026-03-01T12:00:00Z */

static const char *written(uint64_t ns)
{
    static char text[64];
    struct kiln_buf out;

    kiln_buf_init(&out, sizeof(text));
    kiln_when_format(ns, &out);
    snprintf(text, sizeof(text), "%.*s", (int)out.len, out.ptr);
    kiln_buf_done(&out);
    return text;
}

/* What a text means, written back; "bad" for none. */
static const char *when(const char *text)
{
    uint64_t ns;

    return kiln_when_parse(kiln_str_of(text), NOON, &ns) < 0 ? "bad" : written(ns);
}

/* The same of a file name. */
static const char *in_name(const char *name)
{
    uint64_t ns;

    return kiln_when_in_name(kiln_str_of(name), &ns) < 0 ? "none" : written(ns);
}

TEST(when, dates_are_read_with_and_without_their_parts)
{
    CHECK_TEXT(when("2026-03-01T12:00:00Z"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(when("2026-03-01 12:00:00.25"), "2026-03-01T12:00:00.250Z");
    CHECK_TEXT(when("2026-03-01T12:00"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(when("2026-03-01"), "2026-03-01T00:00:00Z");
    CHECK_TEXT(when("2026-03-01T12:00:00+01:30"), "2026-03-01T10:30:00Z");
    CHECK_TEXT(when("2026-03-01T12:00:00-0130"), "2026-03-01T13:30:00Z");
    CHECK_TEXT(when("2024-02-29"), "2024-02-29T00:00:00Z");
}

TEST(when, unix_times_are_told_apart_by_their_size)
{
    CHECK_TEXT(when("1772366400"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(when("1772366400.5"), "2026-03-01T12:00:00.500Z");
    CHECK_TEXT(when("1772366400500"), "2026-03-01T12:00:00.500Z");
    CHECK_TEXT(when("1772366400500000"), "2026-03-01T12:00:00.500Z");
    CHECK_TEXT(when("1772366400500000001"), "2026-03-01T12:00:00.500000001Z");
    CHECK_TEXT(when("0"), "1970-01-01T00:00:00Z");
}

TEST(when, spans_count_from_now)
{
    CHECK_TEXT(when("now"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(when("now-1h30m"), "2026-03-01T10:30:00Z");
    CHECK_TEXT(when("-1d"), "2026-02-28T12:00:00Z");
    CHECK_TEXT(when("now+1m"), "2026-03-01T12:01:00Z");
}

TEST(when, what_is_no_time_is_refused)
{
    static const char *const bad[] = {"",
                                      "soon",
                                      "2026-02-31",
                                      "2026-13-01",
                                      "2026-03-01T",
                                      "2026-03-01T25:00",
                                      "2026-03-01T12:00:00X",
                                      "2026-03-01T12:00:00+1",
                                      "12:00",
                                      "now-",
                                      "now-x",
                                      "1.x",
                                      "99999999999999999999",
                                      "-99999d",
                                      "1772366400.",
                                      "2026-03-01T12:00:00."};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_TEXT(when(bad[i]), "bad");
}

TEST(when, file_names_tell_the_time)
{
    CHECK_TEXT(in_name("cpu-20260301T120000Z.pb.gz"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(in_name("heap_2026-03-01_12-00-00.pb"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(in_name("web-7.20260301120000"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(in_name("cpu-1772366400.pb.gz"), "2026-03-01T12:00:00Z");
    CHECK_TEXT(in_name("cpu-1772366400123.pb.gz"), "2026-03-01T12:00:00.123Z");
}

TEST(when, numbers_that_are_no_time_are_passed_over)
{
    CHECK_TEXT(in_name("cpu.pb.gz"), "none");
    CHECK_TEXT(in_name("build-12345678901.pb"), "none");
    CHECK_TEXT(in_name("20269901T120000"), "none");
    CHECK_TEXT(in_name("20260301T1200001"), "none");
    CHECK_TEXT(in_name("pid-4711-1772366400"), "2026-03-01T12:00:00Z");
}

TEST(when, every_day_has_the_date_of_the_c_library)
{
    for (uint64_t day = 0; day <= UINT64_MAX / KILN_NS_PER_S / 86400 - 1; day++) {
        time_t seconds = (time_t)(day * 86400 + day * day % 86400);
        struct kiln_utc utc = kiln_when_utc((uint64_t)seconds * KILN_NS_PER_S);
        struct tm tm;

        CHECK(gmtime_r(&seconds, &tm));
        CHECK(utc.year == (uint32_t)tm.tm_year + 1900 && utc.month == (uint32_t)tm.tm_mon + 1 &&
              utc.day == (uint32_t)tm.tm_mday);
        CHECK(utc.hour == (uint32_t)tm.tm_hour && utc.minute == (uint32_t)tm.tm_min &&
              utc.second == (uint32_t)tm.tm_sec);
    }
}

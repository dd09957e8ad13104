/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/calendar.h"

#include <stdint.h>

#include "test.h"

static void check_as_libc(time_t when)
{
    struct tm theirs, ours;

    CHECK(gmtime_r(&when, &theirs));
    CHECK(kiln_in_calendar_date(when, &ours));
    CHECK_EQ(ours.tm_sec, theirs.tm_sec);
    CHECK_EQ(ours.tm_min, theirs.tm_min);
    CHECK_EQ(ours.tm_hour, theirs.tm_hour);
    CHECK_EQ(ours.tm_mday, theirs.tm_mday);
    CHECK_EQ(ours.tm_mon, theirs.tm_mon);
    CHECK_EQ(ours.tm_year, theirs.tm_year);
    CHECK_EQ(ours.tm_wday, theirs.tm_wday);
    CHECK_EQ(ours.tm_yday, theirs.tm_yday);
}

/* Four hundred years and a bit, on either side of 1970, at any time of the day. */
TEST(calendar, every_day_is_the_c_library_s)
{
    for (int64_t day = -150000; day <= 150000; day++)
        check_as_libc((time_t)(day * 86400 + (day * day) % 86400));
}

TEST(calendar, far_away)
{
    struct tm tm;

    for (int64_t when = 1; when < INT64_C(50000000000000000); when *= 3) {
        check_as_libc((time_t)when);
        check_as_libc((time_t)-when);
    }
    CHECK(!kiln_in_calendar_date((time_t)INT64_MAX, &tm));
    CHECK(!kiln_in_calendar_date((time_t)INT64_MIN, &tm));
}

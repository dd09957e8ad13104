/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Years that begin in March end with the day that leaps, and 400 of them are always as long.
 */
#include "inproc/thread/calendar.h"

#include <stdint.h>

enum {
    DAY_S = 24 * 60 * 60,
    ERA = 146097,      /* days of 400 years */
    TO_MARCH = 719468, /* days from the 1st of March of the year 0 to 1970 */
    ERAS_MAX = 5000000
};

static int64_t floor_of(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

bool kiln_in_calendar_date(time_t when, struct tm *ret_tm)
{
    int64_t day = floor_of(when, DAY_S), second = ((int64_t)when % DAY_S + DAY_S) % DAY_S;
    int64_t era = floor_of(day + TO_MARCH, ERA), of_era = day + TO_MARCH - era * ERA;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA - 1)) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* 0: March */

    if (era < -ERAS_MAX || era > ERAS_MAX)
        return false;
    year += era * 400 + (month >= 10);
    *ret_tm = (struct tm){
        .tm_sec = (int)(second % 60),
        .tm_min = (int)(second / 60 % 60),
        .tm_hour = (int)(second / 3600),
        .tm_mday = (int)(of_year - (153 * month + 2) / 5 + 1),
        .tm_mon = (int)(month < 10 ? month + 2 : month - 10),
        .tm_year = (int)(year - 1900),
        .tm_wday = (int)(day + 4 - 7 * floor_of(day + 4, 7)),
        .tm_yday = (int)(month < 10 ? of_year + 59 + is_leap(year) : of_year - 306),
    };
    return true;
}

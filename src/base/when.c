/* SPDX-License-Identifier: Apache-2.0 */
#include "base/when.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/quantity.h"

#define NS          KILN_NS_PER_S
#define CENTURY_MIN UINT64_C(946684800) /* 2000-01-01, in seconds */
#define CENTURY_MAX UINT64_C(4102444800)

enum { DAY_S = 24 * 60 * 60, DAYS_400 = 146097 /* of 400 years */, TO_MARCH = 135080 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Exactly `n` digits, which are cut off. */
static bool take_digits(struct kiln_str *text, size_t n, uint32_t *ret)
{
    uint32_t value = 0;

    if (text->len < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(text->ptr[i]))
            return false;
        value = value * 10 + (uint32_t)(text->ptr[i] - '0');
    }
    text->ptr += n;
    text->len -= n;
    *ret = value;
    return true;
}

static bool take_char(struct kiln_str *text, const char *any_of)
{
    if (text->len == 0 || !strchr(any_of, text->ptr[0]) || !text->ptr[0])
        return false;
    text->ptr++;
    text->len--;
    return true;
}

/* ".25" as nanoseconds; 0 where there is none.  Digits below a nanosecond are passed over. */
static bool take_fraction(struct kiln_str *text, uint64_t *ret)
{
    uint64_t ns = 0, unit = NS;

    *ret = 0;
    if (!take_char(text, "."))
        return true;
    if (text->len == 0 || !is_digit(text->ptr[0]))
        return false;
    for (; text->len && is_digit(text->ptr[0]); text->ptr++, text->len--) {
        unit /= 10;
        ns += unit * (uint64_t)(text->ptr[0] - '0');
    }
    *ret = ns;
    return true;
}

/* "Z", "+01:00", "-0130", or nothing: seconds to take away. */
static bool take_zone(struct kiln_str *text, int64_t *ret)
{
    bool west;
    uint32_t hours, minutes = 0;

    *ret = 0;
    if (text->len == 0 || (text->len == 1 && take_char(text, "Zz")))
        return true;
    west = text->ptr[0] == '-';
    if (!take_char(text, "+-") || !take_digits(text, 2, &hours))
        return false;
    if (text->len) {
        (void)take_char(text, ":");
        if (!take_digits(text, 2, &minutes))
            return false;
    }
    *ret = (int64_t)(hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return hours < 24 && minutes < 60;
}

static bool take_time_of_day(struct kiln_str *text, struct tm *tm, uint64_t *fraction)
{
    uint32_t hour, minute, second = 0;

    *fraction = 0;
    if (!take_digits(text, 2, &hour) || !take_char(text, ":") || !take_digits(text, 2, &minute))
        return false;
    if (take_char(text, ":") && (!take_digits(text, 2, &second) || !take_fraction(text, fraction)))
        return false;
    tm->tm_hour = (int)hour;
    tm->tm_min = (int)minute;
    tm->tm_sec = (int)second;
    return hour < 24 && minute < 60 && second < 61;
}

static int parse_date(struct kiln_str text, uint64_t *ret)
{
    struct tm tm = {0}, back;
    uint32_t year, month, day;
    uint64_t fraction = 0;
    int64_t zone = 0, seconds;

    if (!take_digits(&text, 4, &year) || !take_char(&text, "-") || !take_digits(&text, 2, &month) ||
        !take_char(&text, "-") || !take_digits(&text, 2, &day) || month < 1)
        return KILN_E_MALFORMED;
    tm.tm_year = (int)year - 1900;
    tm.tm_mon = (int)month - 1;
    tm.tm_mday = (int)day;
    if (text.len && (!take_char(&text, "Tt ") || !take_time_of_day(&text, &tm, &fraction) ||
                     !take_zone(&text, &zone) || text.len))
        return KILN_E_MALFORMED;
    back = tm;
    seconds = timegm(&back) - zone;
    if (back.tm_mon != tm.tm_mon || back.tm_mday != tm.tm_mday)
        return KILN_E_MALFORMED; /* the 31st of February */
    if (seconds < 0 || (uint64_t)seconds > UINT64_MAX / NS - 1)
        return -ERANGE;
    *ret = (uint64_t)seconds * NS + fraction;
    return 0;
}

/* Seconds below 10^11 (the year 5138), then milliseconds, microseconds, nanoseconds. */
static int parse_unix(struct kiln_str text, uint64_t *ret)
{
    struct kiln_str fraction_text = text;
    struct kiln_str whole = kiln_str_cut(&fraction_text, '.');
    uint64_t value, fraction = 0, unit = NS;
    int r = kiln_str_parse_u64(whole, &value);

    if (r < 0)
        return r;
    for (uint64_t limit = UINT64_C(100000000000); value >= limit && unit > 1; limit *= 1000)
        unit /= 1000;
    if (fraction_text.ptr) {
        struct kiln_str rest = {text.ptr + whole.len, text.len - whole.len};

        if (!take_fraction(&rest, &fraction) || rest.len)
            return KILN_E_MALFORMED;
    }
    if (value > (UINT64_MAX - NS) / unit)
        return -ERANGE;
    *ret = value * unit + fraction / (NS / unit);
    return 0;
}

static int parse_relative(struct kiln_str text, uint64_t now_ns, uint64_t *ret)
{
    uint64_t span;
    bool later = text.len && text.ptr[0] == '+';
    int r;

    if (!take_char(&text, "+-"))
        return KILN_E_MALFORMED;
    r = kiln_duration_parse(text, &span);
    if (r < 0)
        return r;
    if (later ? span > UINT64_MAX - now_ns : span > now_ns)
        return -ERANGE;
    *ret = later ? now_ns + span : now_ns - span;
    return 0;
}

int kiln_when_parse(struct kiln_str text, uint64_t now_ns, uint64_t *ret_ns)
{
    text = kiln_str_trim(text);
    if (kiln_str_eq(text, KILN_STR("now"))) {
        *ret_ns = now_ns;
        return 0;
    }
    if (kiln_str_starts(text, KILN_STR("now")))
        return parse_relative((struct kiln_str){text.ptr + 3, text.len - 3}, now_ns, ret_ns);
    if (text.len && (text.ptr[0] == '-' || text.ptr[0] == '+'))
        return parse_relative(text, now_ns, ret_ns);
    if (text.len >= 10 && text.ptr[4] == '-')
        return parse_date(text, ret_ns);
    return parse_unix(text, ret_ns);
}

/* ---- file names ---- */

/* A date and a time that start here, with any sign between them or none; of this century. */
static bool stamp_at(struct kiln_str text, uint64_t *ret_ns)
{
    struct tm tm = {0};
    uint32_t field[6]; /* year, month, day, hour, minute, second */
    static const char *const signs[6] = {"-", "-", "Tt_-. ", ":-", ":-", ""};

    for (uint32_t i = 0; i < 6; i++) {
        if (!take_digits(&text, i == 0 ? 4 : 2, &field[i]))
            return false;
        (void)take_char(&text, signs[i]);
    }
    if (text.len && is_digit(text.ptr[0]))
        return false;
    if (field[0] < 2000 || field[0] > 2099 || field[1] < 1 || field[1] > 12 || field[2] < 1 ||
        field[2] > 31 || field[3] > 23 || field[4] > 59 || field[5] > 60)
        return false;
    tm.tm_year = (int)field[0] - 1900;
    tm.tm_mon = (int)field[1] - 1;
    tm.tm_mday = (int)field[2];
    tm.tm_hour = (int)field[3];
    tm.tm_min = (int)field[4];
    tm.tm_sec = (int)field[5];
    *ret_ns = (uint64_t)timegm(&tm) * NS;
    return true;
}

/* Unix time of this century, in whatever unit. */
static bool number_at(struct kiln_str digits, uint64_t *ret_ns)
{
    uint64_t ns;

    if (digits.len < 10 || parse_unix(digits, &ns) < 0 || ns / NS < CENTURY_MIN ||
        ns / NS >= CENTURY_MAX)
        return false;
    *ret_ns = ns;
    return true;
}

int kiln_when_in_name(struct kiln_str name, uint64_t *ret_ns)
{
    while (name.len) {
        size_t n = 0;

        while (n < name.len && is_digit(name.ptr[n]))
            n++;
        if (n && (stamp_at(name, ret_ns) || number_at((struct kiln_str){name.ptr, n}, ret_ns)))
            return 0;
        name.ptr += n ? n : 1;
        name.len -= n ? n : 1;
    }
    return KILN_E_NOMATCH;
}

/* ---- writing ---- */

/* Years that begin in March have the leap day as their last. */
struct kiln_utc kiln_when_utc(uint64_t ns)
{
    uint32_t second = (uint32_t)(ns / NS % DAY_S);
    uint32_t day = (uint32_t)(ns / NS / DAY_S) + TO_MARCH; /* since the 1st of March 1600 */
    uint32_t of_era = day % DAYS_400;
    uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_400 - 1)) / 365;
    uint32_t of_year = of_era - (365 * year + year / 4 - year / 100);
    uint32_t month = (5 * of_year + 2) / 153; /* 0: March */

    return (struct kiln_utc){
        .year = 1600 + day / DAYS_400 * 400 + year + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = of_year - (153 * month + 2) / 5 + 1,
        .hour = second / 3600,
        .minute = second / 60 % 60,
        .second = second % 60,
    };
}

void kiln_when_format(uint64_t ns, struct kiln_buf *out)
{
    uint32_t fraction = (uint32_t)(ns % NS);
    struct kiln_utc utc = kiln_when_utc(ns);

    kiln_buf_printf(out, "%04u-%02u-%02uT%02u:%02u:%02u", utc.year, utc.month, utc.day, utc.hour,
                    utc.minute, utc.second);
    if (fraction % 1000)
        kiln_buf_printf(out, ".%09u", fraction);
    else if (fraction % 1000000)
        kiln_buf_printf(out, ".%06u", fraction / 1000);
    else if (fraction)
        kiln_buf_printf(out, ".%03u", fraction / 1000000);
    kiln_buf_putc(out, 'Z');
}

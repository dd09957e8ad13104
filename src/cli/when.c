/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "cli/when.h"

/* This century, in seconds. */
#define SECONDS_MIN UINT64_C(946684800)
#define SECONDS_MAX UINT64_C(4102444800)

uint64_t kiln_when_of_number(uint64_t number)
{
    for (uint64_t scale = 1; scale <= KILN_NS_PER_S; scale *= 1000)
        if (number / scale >= SECONDS_MIN && number / scale < SECONDS_MAX)
            return number * (KILN_NS_PER_S / scale);
    return 0;
}

/* ---- dates ---- */

/* Exactly `n` digits; false, and nothing is consumed, where there are fewer. */
static bool digits(struct kiln_str *s, uint32_t n, int *ret)
{
    int value = 0;

    if (s->len < n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)s->ptr[i]))
            return false;
        value = value * 10 + (s->ptr[i] - '0');
    }
    s->ptr += n;
    s->len -= n;
    *ret = value;
    return true;
}

static bool one_of(struct kiln_str *s, const char *signs)
{
    if (s->len == 0 || *s->ptr == '\0' || !strchr(signs, *s->ptr))
        return false;
    s->ptr++;
    s->len--;
    return true;
}

static bool date(struct kiln_str *s, struct tm *tm)
{
    if (!digits(s, 4, &tm->tm_year))
        return false;
    one_of(s, "-");
    if (!digits(s, 2, &tm->tm_mon))
        return false;
    one_of(s, "-");
    if (!digits(s, 2, &tm->tm_mday))
        return false;
    tm->tm_year -= 1900;
    tm->tm_mon -= 1;
    return tm->tm_year >= 100 && tm->tm_year < 200 && tm->tm_mon >= 0 && tm->tm_mon < 12 &&
           tm->tm_mday >= 1 && tm->tm_mday <= 31;
}

static bool clock_time(struct kiln_str *s, struct tm *tm)
{
    if (!digits(s, 2, &tm->tm_hour))
        return false;
    one_of(s, ":-");
    if (!digits(s, 2, &tm->tm_min))
        return false;
    one_of(s, ":-");
    if (!digits(s, 2, &tm->tm_sec))
        return false;
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec <= 60;
}

/* ---- file names ---- */

static size_t digits_at(struct kiln_str s)
{
    size_t n = 0;

    while (n < s.len && isdigit((unsigned char)s.ptr[n]))
        n++;
    return n;
}

/* A date and a time that start here, with any sign between them or none. */
static bool stamp_at(struct kiln_str s, uint64_t *ret_ns)
{
    struct tm tm = {0};

    if (!date(&s, &tm))
        return false;
    one_of(&s, "Tt_-. ");
    if (!clock_time(&s, &tm) || (s.len && isdigit((unsigned char)*s.ptr)))
        return false;
    *ret_ns = (uint64_t)timegm(&tm) * KILN_NS_PER_S;
    return true;
}

int kiln_when_in_name(struct kiln_str name, uint64_t *ret_ns)
{
    while (name.len) {
        size_t n = digits_at(name);
        uint64_t number;

        if (n && stamp_at(name, ret_ns))
            return 0;
        if (n >= 10 && kiln_str_parse_u64((struct kiln_str){name.ptr, n}, &number) == 0 &&
            kiln_when_of_number(number)) {
            *ret_ns = kiln_when_of_number(number);
            return 0;
        }
        name.ptr += n ? n : 1;
        name.len -= n ? n : 1;
    }
    return KILN_E_NOMATCH;
}

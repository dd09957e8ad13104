/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times as Pyroscope's older endpoints have them.  Nothing is an error there but a number that does
 * not fit: what makes no sense is now.
 */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/when.h"

#define TEXT_MAX 128u
#define DAY      (24 * 3600 * KILN_NS_PER_S)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t count_digits(struct kiln_str s)
{
    size_t n = 0;

    while (n < s.len && is_digit(s.ptr[n]))
        n++;
    return n;
}

static bool parse_day(struct kiln_str s, uint64_t *ret_ns)
{
    char dashed[10];
    uint64_t ns;

    memcpy(dashed, s.ptr, 4);
    dashed[4] = dashed[7] = '-';
    memcpy(dashed + 5, s.ptr + 4, 2);
    memcpy(dashed + 8, s.ptr + 6, 2);
    if (kiln_when_parse((struct kiln_str){dashed, sizeof(dashed)}, 0, &ns) < 0)
        return false;
    *ret_ns = ns;
    return true;
}

static int parse_number(struct kiln_str s, uint64_t *ret_ns)
{
    uint64_t value, unit;
    int r = kiln_str_parse_u64(s, &value);

    if (r < 0)
        return r;
    unit = s.len == 19 ? 1 : s.len == 16 ? 1000 : s.len == 13 ? KILN_NS_PER_MS : KILN_NS_PER_S;
    if (value > UINT64_MAX / unit)
        return -ERANGE;
    *ret_ns = value * unit;
    return 0;
}

static uint64_t unit_ns(struct kiln_str unit)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        {"s", KILN_NS_PER_S},
        {"m", 60 * KILN_NS_PER_S},
        {"min", 60 * KILN_NS_PER_S},
        {"h", 3600 * KILN_NS_PER_S},
        {"d", DAY},
        {"w", 7 * DAY},
        {"M", 30 * DAY},
        {"mon", 30 * DAY},
        {"y", 365 * DAY},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(units); i++) {
        if (kiln_str_eq(unit, kiln_str_of(units[i].name)))
            return units[i].ns;
    }
    return 0;
}

/* "1h30m" */
static int parse_chain(struct kiln_str s, uint64_t *ret_ns)
{
    uint64_t sum = 0;

    while (s.len) {
        struct kiln_str number = {s.ptr, count_digits(s)};
        struct kiln_str unit = {s.ptr + number.len, 0};
        uint64_t n = 0, ns;
        int r = number.len ? kiln_str_parse_u64(number, &n) : 0;

        if (r < 0)
            return r;
        while (number.len + unit.len < s.len && !is_digit(unit.ptr[unit.len]))
            unit.len++;
        if (__builtin_mul_overflow(n, unit_ns(unit), &ns) || __builtin_add_overflow(sum, ns, &sum))
            return -ERANGE;
        s = (struct kiln_str){unit.ptr + unit.len, s.len - number.len - unit.len};
    }
    *ret_ns = sum;
    return 0;
}

static int parse_relative(struct kiln_str s, uint64_t now_ns, uint64_t *ret_ns)
{
    size_t at = 0;
    uint64_t span;
    bool later;
    int r;

    while (at < s.len && s.ptr[at] != '+' && s.ptr[at] != '-')
        at++;
    if (at == s.len) {
        *ret_ns = now_ns;
        return 0;
    }
    later = s.ptr[at] == '+';
    r = parse_chain((struct kiln_str){s.ptr + at + 1, s.len - at - 1}, &span);
    if (r < 0)
        return r;
    if (later ? span > UINT64_MAX - now_ns : span > now_ns)
        return -ERANGE;
    *ret_ns = later ? now_ns + span : now_ns - span;
    return 0;
}

int kiln_when_parse_legacy(struct kiln_str text, uint64_t now_ns, uint64_t *ret_ns)
{
    char kept[TEXT_MAX];
    struct kiln_str s = {kept, 0};

    text = kiln_str_trim(text);
    if (text.len >= 10 && text.ptr[4] == '-' && count_digits(text) == 4)
        return kiln_when_parse(text, now_ns, ret_ns);
    for (size_t i = 0; i < text.len; i++) {
        if (strchr("_, ", text.ptr[i]) && text.ptr[i])
            continue;
        if (s.len == sizeof(kept))
            return KILN_E_MALFORMED;
        kept[s.len++] = text.ptr[i];
    }
    if (s.len == 0 || count_digits(s) < s.len)
        return parse_relative(s, now_ns, ret_ns);
    if (s.len == 8 && parse_day(s, ret_ns))
        return 0;
    return parse_number(s, ret_ns);
}

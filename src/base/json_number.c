/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers.  An integer is read digit by digit and stays exact; "1.5e3" is an integer too.  A double
 * with up to 53 bits of digits and a power of ten up to 22 is one exact multiplication or division;
 * the rest goes to strtod(), in the C locale, because a locale may want a decimal comma.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "base/json.h"

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *digits_end(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* The end of the number at `p`, or NULL and *bad where its syntax breaks. */
static const char *number_end(const char *p, const char *end, const char **bad)
{
    const char *from;

    p += p < end && *p == '-';
    from = p;
    p = p < end && *p == '0' ? p + 1 : digits_end(p, end);
    if (p == from)
        goto broken;
    if (p < end && *p == '.') {
        from = ++p;
        p = digits_end(p, end);
        if (p == from)
            goto broken;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        from = p;
        p = digits_end(p, end);
        if (p == from)
            goto broken;
    }
    if (p < end && is_digit(*p)) /* after a leading zero */
        goto broken;
    return p;
broken:
    *bad = p;
    return NULL;
}

/* The end and the value of the common number, up to 18 digits and nothing else; NULL if it is not.
 */
static inline const char *plain_end(const char *p, const char *end, uint64_t *ret)
{
    const char *from = p;
    uint64_t value = 0;

    for (; p < end && is_digit(*p); p++)
        value = value * 10 + (uint64_t)(*p - '0');
    if (p == from || p - from > 18 || (*from == '0' && p - from > 1))
        return NULL;
    if (p < end && (*p == '.' || *p == 'e' || *p == 'E'))
        return NULL;
    *ret = value;
    return p;
}

int kiln_json_number(struct kiln_json *r, struct kiln_str *ret)
{
    const char *start, *end, *bad = NULL;
    uint64_t ignored;

    if (kiln_json_peek(r) != KILN_JSON_NUMBER) {
        r->last = r->at;
        return kiln_json_fail(r, r->at < r->end ? KILN_E_MALFORMED : KILN_E_TRUNCATED,
                              "expected a number");
    }
    start = r->at;
    end = plain_end(start, r->end, &ignored);
    if (!end)
        end = number_end(start, r->end, &bad);
    if (!end) {
        r->last = bad;
        return kiln_json_fail(r, bad < r->end ? KILN_E_MALFORMED : KILN_E_TRUNCATED,
                              "a number breaks off");
    }
    r->last = start;
    r->at = end;
    r->first = false;
    *ret = (struct kiln_str){start, (size_t)(end - start)};
    return 0;
}

/* A number taken apart: (-1)^negative x digits x 10^exponent. */
struct decimal {
    bool negative;
    bool cut; /* more digits than fit; those left out are not all zero */
    uint64_t digits;
    int64_t exponent;
};

static int64_t exponent_of(const char *p, const char *end)
{
    bool negative = p < end && *p == '-';
    int64_t value = 0;

    for (p += p < end && (*p == '-' || *p == '+'); p < end; p++) {
        if (value < 1000000000)
            value = value * 10 + (*p - '0');
    }
    return negative ? -value : value;
}

/* `text` is a number of checked syntax. */
static struct decimal take_apart(struct kiln_str text)
{
    struct decimal d = {.negative = text.ptr[0] == '-'};
    const char *end = text.ptr + text.len;
    bool fraction = false;

    for (const char *p = text.ptr + d.negative; p < end; p++) {
        if (*p == '.') {
            fraction = true;
        } else if (*p == 'e' || *p == 'E') {
            d.exponent += exponent_of(p + 1, end);
            break;
        } else if (d.digits <= (UINT64_MAX - 9) / 10) {
            d.digits = d.digits * 10 + (uint64_t)(*p - '0');
            d.exponent -= fraction;
        } else {
            d.cut |= *p != '0';
            d.exponent += !fraction;
        }
    }
    return d;
}

/* Its magnitude as an integer: 0, or -ERANGE, or KILN_E_MALFORMED for a fraction. */
static int magnitude_of(struct decimal d, uint64_t *ret)
{
    if (d.digits == 0)
        d.exponent = 0;
    if (d.cut)
        return d.exponent < 0 ? KILN_E_MALFORMED : -ERANGE;
    for (; d.exponent < 0; d.exponent++) {
        if (d.digits % 10)
            return KILN_E_MALFORMED;
        d.digits /= 10;
    }
    for (; d.exponent > 0; d.exponent--) {
        if (__builtin_mul_overflow(d.digits, 10, &d.digits))
            return -ERANGE;
    }
    *ret = d.digits;
    return 0;
}

/* Twenty digits may still fit into 64 bits, but take_apart() stops at nineteen or so. */
static int integer_of(struct kiln_str text, bool *negative, uint64_t *ret)
{
    struct kiln_str digits = text;

    *negative = text.ptr[0] == '-';
    digits.ptr += *negative;
    digits.len -= *negative;
    if (kiln_str_parse_u64(digits, ret) == 0)
        return 0;
    return magnitude_of(take_apart(text), ret);
}

static int i64_of(struct kiln_str text, int64_t *ret)
{
    uint64_t magnitude;
    bool negative;
    int n = integer_of(text, &negative, &magnitude);

    if (n < 0)
        return n;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return 0;
}

static int u64_of(struct kiln_str text, uint64_t *ret)
{
    uint64_t magnitude;
    bool negative;
    int n = integer_of(text, &negative, &magnitude);

    if (n < 0)
        return n;
    if (negative && magnitude)
        return -ERANGE;
    *ret = magnitude;
    return 0;
}

static locale_t c_locale;

__attribute__((constructor)) static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

__attribute__((destructor)) static void free_c_locale(void)
{
    if (c_locale)
        freelocale(c_locale);
}

/* By the C library, whatever the locale: numbers that need care. */
static int slow_double(struct kiln_str text, double *ret)
{
    char small[64];
    struct kiln_buf buf;
    const char *c_string = small;
    double value;

    kiln_buf_init(&buf, SIZE_MAX);
    if (text.len < sizeof(small)) {
        memcpy(small, text.ptr, text.len);
        small[text.len] = '\0';
    } else {
        kiln_buf_add_str(&buf, text);
        kiln_buf_putc(&buf, '\0');
        c_string = buf.ptr;
    }
    if (buf.error || !c_locale) {
        kiln_buf_done(&buf);
        return -ENOMEM;
    }
    value = strtod_l(c_string, NULL, c_locale);
    kiln_buf_done(&buf);
    if (isinf(value))
        return -ERANGE;
    *ret = value;
    return 0;
}

static int double_of(struct kiln_str text, double *ret)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct decimal d = take_apart(text);
    double value = (double)d.digits;

    /* Digits and power are exact doubles, so one operation rounds once, which is right. */
    if (d.cut || d.digits > UINT64_C(1) << 53 || d.exponent < -22 || d.exponent > 22)
        return slow_double(text, ret);
    value = d.exponent < 0 ? value / tens[-d.exponent] : value * tens[d.exponent];
    *ret = d.negative ? -value : value;
    return 0;
}

/* Reports what was wrong with the number `text`, which has been read. */
static int bad_number(struct kiln_json *r, struct kiln_str text, int code)
{
    int shown = text.len < 40 ? (int)text.len : 40;

    if (code == -ERANGE)
        return kiln_json_fail(r, code, "%.*s is out of range", shown, text.ptr);
    if (code == KILN_E_MALFORMED)
        return kiln_json_fail(r, code, "%.*s is not an integer", shown, text.ptr);
    return kiln_json_fail(r, code, "%s", kiln_err_text(code));
}

#define READ_NUMBER(name, type, convert)                                                           \
    int kiln_json_##name(struct kiln_json *r, type *ret)                                           \
    {                                                                                              \
        struct kiln_str text = KILN_STR("");                                                       \
        uint64_t plain;                                                                            \
        const char *end = plain_end(r->at, r->end, &plain);                                        \
        int n;                                                                                     \
                                                                                                   \
        if (KILN_LIKELY(end)) {                                                                    \
            r->last = r->at;                                                                       \
            r->at = end;                                                                           \
            r->first = false;                                                                      \
            *ret = (type)plain;                                                                    \
            return 0;                                                                              \
        }                                                                                          \
        n = kiln_json_number(r, &text);                                                            \
        if (n < 0)                                                                                 \
            return n;                                                                              \
        n = convert(text, ret);                                                                    \
        return KILN_LIKELY(n == 0) ? 0 : bad_number(r, text, n);                                   \
    }                                                                                              \
                                                                                                   \
    int kiln_json_parse_##name(struct kiln_str text, type *ret)                                    \
    {                                                                                              \
        const char *end, *bad;                                                                     \
        uint64_t plain;                                                                            \
                                                                                                   \
        if (text.len == 0)                                                                         \
            return KILN_E_MALFORMED;                                                               \
        end = text.ptr + text.len;                                                                 \
        if (KILN_LIKELY(plain_end(text.ptr, end, &plain) == end)) {                                \
            *ret = (type)plain;                                                                    \
            return 0;                                                                              \
        }                                                                                          \
        return number_end(text.ptr, end, &bad) == end ? convert(text, ret) : KILN_E_MALFORMED;     \
    }

READ_NUMBER(i64, int64_t, i64_of)
READ_NUMBER(u64, uint64_t, u64_of)
READ_NUMBER(double, double, double_of)

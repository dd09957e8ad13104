/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/bytetext.h"
#include "base/err.h"
#include "base/str.h"

int kiln_str_cmp(struct kiln_str a, struct kiln_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;

    if (order)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

bool kiln_str_starts(struct kiln_str s, struct kiln_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool kiln_str_ends(struct kiln_str s, struct kiln_str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

bool kiln_str_contains(struct kiln_str s, struct kiln_str needle)
{
    return needle.len == 0 || (s.len && memmem(s.ptr, s.len, needle.ptr, needle.len) != NULL);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct kiln_str kiln_str_trim(struct kiln_str s)
{
    while (s.len && is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_space(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

struct kiln_str kiln_str_cut(struct kiln_str *rest, char separator)
{
    struct kiln_str head = *rest;
    const char *at = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;

    if (!at) {
        *rest = KILN_STR_NONE;
        return head;
    }
    head.len = (size_t)(at - rest->ptr);
    rest->ptr = at + 1;
    rest->len -= head.len + 1;
    return head;
}

static int parse_digits(struct kiln_str s, unsigned base, uint64_t *ret)
{
    uint64_t value = 0;

    if (s.len == 0)
        return KILN_E_MALFORMED;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)kiln_hex_digit(s.ptr[i]); /* none: more than any base */

        if (digit >= base)
            return KILN_E_MALFORMED;
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return -ERANGE;
    }
    *ret = value;
    return 0;
}

int kiln_str_parse_u64(struct kiln_str s, uint64_t *ret)
{
    return parse_digits(s, 10, ret);
}

int kiln_str_parse_i64(struct kiln_str s, int64_t *ret)
{
    bool negative = s.len && s.ptr[0] == '-';
    uint64_t magnitude;
    int r;

    if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+')) {
        s.ptr++;
        s.len--;
    }
    r = parse_digits(s, 10, &magnitude);
    if (r < 0)
        return r;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return 0;
}

int kiln_str_parse_hex(struct kiln_str s, uint64_t *ret)
{
    if (kiln_str_starts(s, KILN_STR("0x")) || kiln_str_starts(s, KILN_STR("0X"))) {
        s.ptr += 2;
        s.len -= 2;
    }
    return parse_digits(s, 16, ret);
}

/* The length of the well-formed sequence at `p`, which starts with a byte >= 0x80; 0 if ill. */
static size_t utf8_sequence(const unsigned char *p, size_t left)
{
    static const struct {
        unsigned char lead_from, lead_to, second_from, second_to, len;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(forms); i++) {
        if (p[0] < forms[i].lead_from || p[0] > forms[i].lead_to)
            continue;
        if (left < forms[i].len || p[1] < forms[i].second_from || p[1] > forms[i].second_to)
            return 0;
        for (size_t k = 2; k < forms[i].len; k++) {
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        }
        return forms[i].len;
    }
    return 0;
}

bool kiln_utf8_valid(struct kiln_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    const unsigned char *end = s.len ? p + s.len : p;

    for (; end - p >= 16; p += 16) {
        uint64_t both[2];

        memcpy(both, p, 16);
        if (KILN_UNLIKELY((both[0] | both[1]) & 0x8080808080808080u))
            break;
    }
    while (p < end) {
        uint64_t eight;
        size_t n;

        if (end - p >= 8) {
            memcpy(&eight, p, 8);
            if (KILN_LIKELY((eight & 0x8080808080808080u) == 0)) {
                p += 8;
                continue;
            }
        } else if (s.len >= 8) { /* the rest, together with what is known to be good */
            memcpy(&eight, end - 8, 8);
            if (KILN_LIKELY((eight & 0x8080808080808080u) == 0))
                return true;
        }
        if (*p < 0x80) {
            p++;
            continue;
        }
        n = utf8_sequence(p, (size_t)(end - p));
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

size_t kiln_utf8_len(struct kiln_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;

    if (s.len == 0)
        return 0;
    return *p < 0x80 ? 1 : utf8_sequence(p, s.len);
}

uint32_t kiln_utf8_code(const char *p, size_t len)
{
    const unsigned char *u = (const unsigned char *)p;
    uint32_t c = len == 1 ? u[0] : u[0] & (0x7fu >> len);

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (u[i] & 0x3fu);
    return c;
}

bool kiln_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

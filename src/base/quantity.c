/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quantity.h"

#include <errno.h>

#include "base/clock.h"
#include "base/err.h"

/* ---- sizes ---- */

static bool is_size_suffix(struct kiln_str s)
{
    return s.len == 0 || kiln_str_eq(s, KILN_STR("B")) || kiln_str_eq(s, KILN_STR("iB"));
}

static size_t digits(struct kiln_str s)
{
    size_t n = 0;

    while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
        n++;
    return n;
}

int kiln_size_parse(struct kiln_str text, uint64_t *ret_bytes)
{
    static const char units[] = "KMGT";
    size_t n = digits(text);
    struct kiln_str rest = {text.ptr + n, text.len - n};
    const char *unit = rest.len ? strchr(units, rest.ptr[0] & ~0x20) : NULL;
    uint32_t shift = unit && *unit ? 10 * (uint32_t)(unit - units + 1) : 0;
    uint64_t number;
    int r = kiln_str_parse_u64((struct kiln_str){text.ptr, n}, &number);

    if (r < 0)
        return r;
    rest.ptr += shift != 0;
    rest.len -= shift != 0;
    if (!is_size_suffix(rest))
        return KILN_E_MALFORMED;
    if (number > UINT64_MAX >> shift)
        return -ERANGE;
    *ret_bytes = number << shift;
    return 0;
}

/* ---- durations ---- */

static const struct {
    const char *name;
    uint64_t ns;
} spans[] = {
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000}, /* the micro sign, and the Greek letter */
    {"\xce\xbcs", 1000},
    {"ms", KILN_NS_PER_MS},
    {"s", KILN_NS_PER_S},
    {"m", 60 * KILN_NS_PER_S},
    {"h", 3600 * KILN_NS_PER_S},
    {"d", 86400 * KILN_NS_PER_S},
    {"w", 604800 * KILN_NS_PER_S},
};

/* Cuts the unit off the front of `*rest`: all until the next number. */
static uint64_t cut_unit(struct kiln_str *rest)
{
    struct kiln_str word = {rest->ptr, 0};

    while (word.len < rest->len && !strchr(".0123456789", rest->ptr[word.len]))
        word.len++;
    rest->ptr += word.len;
    rest->len -= word.len;
    for (size_t i = 0; i < KILN_ARRAY_LEN(spans); i++) {
        if (kiln_str_eq(word, kiln_str_of(spans[i].name)))
            return spans[i].ns;
    }
    return 0;
}

/* Cuts one number with its unit off the front. */
static int cut_span(struct kiln_str *rest, uint64_t *ret_ns)
{
    size_t n = digits(*rest), decimals = 0;
    struct kiln_str whole = {rest->ptr, n}, part;
    uint64_t number = 0, unit, ns, fraction = 0;
    int r = n || !rest->len || rest->ptr[0] != '.' ? kiln_str_parse_u64(whole, &number) : 0;

    if (r < 0)
        return r;
    part = (struct kiln_str){rest->ptr + n, rest->len - n};
    if (part.len && part.ptr[0] == '.') {
        part = (struct kiln_str){part.ptr + 1, part.len - 1};
        decimals = digits(part);
        if (decimals == 0 || decimals > 9)
            return KILN_E_MALFORMED;
        r = kiln_str_parse_u64((struct kiln_str){part.ptr, decimals}, &fraction);
        if (r < 0)
            return r;
    }
    *rest = (struct kiln_str){part.ptr + decimals, part.len - decimals};
    unit = cut_unit(rest);
    if (unit == 0)
        return KILN_E_MALFORMED;
    if (__builtin_mul_overflow(number, unit, &ns))
        return -ERANGE;
    for (size_t i = 0; i < decimals; i++)
        unit /= 10; /* exact down to where a nanosecond ends */
    return __builtin_add_overflow(ns, fraction * unit, ret_ns) ? -ERANGE : 0;
}

int kiln_duration_parse(struct kiln_str text, uint64_t *ret_ns)
{
    uint64_t sum = 0, ns;
    int r;

    if (kiln_str_eq(text, KILN_STR("0"))) {
        *ret_ns = 0;
        return 0;
    }
    if (text.len == 0)
        return KILN_E_MALFORMED;
    while (text.len > 0) {
        r = cut_span(&text, &ns);
        if (r < 0)
            return r;
        if (__builtin_add_overflow(sum, ns, &sum))
            return -ERANGE;
    }
    *ret_ns = sum;
    return 0;
}

/* ---- near misses ---- */

enum { WORD_MAX = 32 };

/* Edits (insert, delete, change, swap neighbours) between two short words. */
static uint32_t distance(const char *a, const char *b)
{
    uint32_t rows[3][WORD_MAX + 1]; /* of the last but one letter of a, the last, this one */
    size_t n = strlen(b);

    if (strlen(a) > WORD_MAX || n > WORD_MAX)
        return WORD_MAX;
    for (uint32_t j = 0; j <= n; j++)
        rows[1][j] = j;
    for (uint32_t i = 1; a[i - 1]; i++) {
        rows[2][0] = i;
        for (uint32_t j = 1; j <= n; j++) {
            uint32_t change = rows[1][j - 1] + (a[i - 1] != b[j - 1]);
            uint32_t shift = (rows[1][j] < rows[2][j - 1] ? rows[1][j] : rows[2][j - 1]) + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];

            rows[2][j] = change < shift ? change : shift;
            if (swapped && rows[0][j - 2] + 1 < rows[2][j])
                rows[2][j] = rows[0][j - 2] + 1;
        }
        memmove(rows[0], rows[1], 2 * sizeof(rows[0]));
    }
    return rows[1][n];
}

const char *kiln_nearest(const char *word, const char *const *candidates, uint32_t n)
{
    const char *best = NULL;
    uint32_t least = strlen(word) > 4 ? 3 : 2;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = distance(word, candidates[i]);

        if (d < least) {
            least = d;
            best = candidates[i];
        }
    }
    return best;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <time.h>

#include "base/clock.h"
#include "pipeline/receivers/ingest_name.h"

#define DIGITS_MAX 20u

/* ---- names ---- */

static bool is_word(struct kiln_str s, const char *also)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (!isascii(c) || !(isalnum(c) || (c && strchr(also, c))))
            return false;
    }
    return s.len > 0;
}

static int read_label(struct kiln_str pair, struct kiln_tags *tags, struct kiln_err *err)
{
    struct kiln_str name = kiln_str_trim(kiln_str_cut(&pair, '='));
    struct kiln_str value = kiln_str_trim(pair);

    if (name.len == 0 && value.len == 0)
        return 0;
    if (!is_word(name, "_."))
        return kiln_err_set(err, KILN_E_MALFORMED, "name",
                            "a label's name is made of letters, digits, '_' and '.'");
    return kiln_tags_add(tags, name, value, err);
}

int kiln_ingest_name_parse(struct kiln_str text, struct kiln_str *ret_app, struct kiln_tags *tags,
                           struct kiln_err *err)
{
    struct kiln_str app = kiln_str_trim(kiln_str_cut(&text, '{'));
    struct kiln_str labels = kiln_str_cut(&text, '}');
    int r = 0;

    if (app.len == 0)
        return kiln_err_set(err, KILN_E_MALFORMED, "name",
                            "the name of the application is missing");
    if (app.len > KILN_TAG_VALUE_MAX)
        return kiln_err_set(err, KILN_E_MALFORMED, "name", "longer than %d bytes",
                            KILN_TAG_VALUE_MAX);
    if (!is_word(app, "_.-/"))
        return kiln_err_set(err, KILN_E_MALFORMED, "name",
                            "an application's name is made of letters, digits and '_.-/'");
    while (r == 0 && labels.ptr)
        r = read_label(kiln_str_cut(&labels, ','), tags, err);
    if (r == 0)
        *ret_app = app;
    return r;
}

/* ---- times ---- */

static bool is_number(struct kiln_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!isdigit((unsigned char)s.ptr[i]))
            return false;
    }
    return s.len > 0;
}

static uint64_t times(uint64_t n, uint64_t factor)
{
    uint64_t product;

    return __builtin_mul_overflow(n, factor, &product) ? UINT64_MAX : product;
}

static bool read_day(uint64_t digits, uint64_t *ret_ns)
{
    struct tm day = {.tm_year = (int)(digits / 10000) - 1900,
                     .tm_mon = (int)(digits / 100 % 100) - 1,
                     .tm_mday = (int)(digits % 100)};
    time_t at = timegm(&day);

    if (at < 0)
        return false;
    *ret_ns = times((uint64_t)at, KILN_NS_PER_S);
    return true;
}

static uint64_t absolute(struct kiln_str s, uint64_t now_ns)
{
    uint64_t n, day;

    if (kiln_str_parse_u64(s, &n) < 0)
        return now_ns;
    if (s.len == 8)
        return read_day(n, &day) ? day : now_ns;
    if (s.len == 19)
        return n;
    return times(n, s.len == 13 ? KILN_NS_PER_MS : s.len == 16 ? 1000 : KILN_NS_PER_S);
}

static uint64_t unit_seconds(struct kiln_str unit)
{
    static const struct {
        const char *name;
        uint64_t seconds;
    } units[] = {{"s", 1},          {"m", 60},           {"min", 60},
                 {"h", 3600},       {"d", 86400},        {"w", 7 * 86400},
                 {"M", 30 * 86400}, {"mon", 30 * 86400}, {"y", 365 * 86400}};

    for (size_t i = 0; i < KILN_ARRAY_LEN(units); i++) {
        if (kiln_str_eq(unit, kiln_str_of(units[i].name)))
            return units[i].seconds;
    }
    return 0;
}

/* The bytes at the start of `s` that are digits, or that are letters; cut off. */
static struct kiln_str cut_run(struct kiln_str *s, int (*is)(int))
{
    struct kiln_str run = {s->ptr, 0};

    while (run.len < s->len && is((unsigned char)s->ptr[run.len]))
        run.len++;
    s->ptr += run.len;
    s->len -= run.len;
    return run;
}

/* "1h30m" in nanoseconds. */
static uint64_t offset_ns(struct kiln_str s)
{
    uint64_t sum = 0, n;

    while (s.len) {
        struct kiln_str digits = cut_run(&s, isdigit), unit = cut_run(&s, isalpha);
        uint64_t part;

        if (kiln_str_parse_u64(digits, &n) < 0 || unit.len == 0)
            break;
        part = times(times(n, unit_seconds(unit)), KILN_NS_PER_S);
        sum = sum > UINT64_MAX - part ? UINT64_MAX : sum + part;
    }
    return sum;
}

uint64_t kiln_ingest_time(struct kiln_str text, uint64_t now_ns)
{
    char kept[64];
    struct kiln_str s = {kept, 0};
    uint64_t offset;
    size_t at = 0;

    for (size_t i = 0; i < text.len && s.len < sizeof(kept); i++) {
        if (!strchr("_, ", text.ptr[i]) || !text.ptr[i])
            kept[s.len++] = text.ptr[i];
    }
    if (is_number(s))
        return s.len < DIGITS_MAX ? absolute(s, now_ns) : now_ns;
    while (at < s.len && s.ptr[at] != '-' && s.ptr[at] != '+')
        at++;
    if (at == s.len)
        return now_ns;
    offset = offset_ns((struct kiln_str){s.ptr + at + 1, s.len - at - 1});
    if (s.ptr[at] == '-')
        return offset < now_ns ? now_ns - offset : 0;
    return offset < UINT64_MAX - now_ns ? now_ns + offset : now_ns;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values and rates as people read them.
 *
 * A value is carried up a ladder of units (ns, us, ms, s, min, h, d) to the last step of which it
 * makes at least one, and written with three significant digits: 1.25s, 340ms, 1.5GB.  Rounding
 * comes first, so that 999.9ms is 1s and not 1000ms.
 */
#include <math.h>
#include <stdio.h>

#include "core/type.h"

struct step {
    double factor; /* of the step before */
    const char *suffix;
};

static const struct step time_steps[] = {
    {1, "ns"}, {1000, "us"}, {1000, "ms"}, {1000, "s"}, {60, "min"}, {60, "h"}, {24, "d"},
};
static const struct step byte_steps[] = {
    {1, "B"}, {1024, "kB"}, {1024, "MB"}, {1024, "GB"}, {1024, "TB"}, {1024, "PB"},
};
static const struct step count_steps[] = {
    {1e6, "M"}, {1000, "G"}, {1000, "T"}, {1000, "P"}, {1000, "E"},
};

/* Other spellings of time and bytes, in nanoseconds and bytes. */
static const struct {
    const char *unit;
    double factor;
    enum kiln_unit_kind kind;
} spellings[] = {
    {"nanoseconds", 1, KILN_UNIT_NANOSECONDS},
    {"ns", 1, KILN_UNIT_NANOSECONDS},
    {"microseconds", 1e3, KILN_UNIT_NANOSECONDS},
    {"us", 1e3, KILN_UNIT_NANOSECONDS},
    {"milliseconds", 1e6, KILN_UNIT_NANOSECONDS},
    {"ms", 1e6, KILN_UNIT_NANOSECONDS},
    {"seconds", 1e9, KILN_UNIT_NANOSECONDS},
    {"s", 1e9, KILN_UNIT_NANOSECONDS},
    {"bytes", 1, KILN_UNIT_BYTES},
    {"By", 1, KILN_UNIT_BYTES},
    {"kilobytes", 1024, KILN_UNIT_BYTES},
    {"megabytes", 1048576, KILN_UNIT_BYTES},
    {"count", 1, KILN_UNIT_COUNT},
    {"1", 1, KILN_UNIT_COUNT},
    {"", 1, KILN_UNIT_COUNT},
};

/* What a unit is in our terms; *value is carried over into ns or bytes. */
static enum kiln_unit_kind normalize(struct kiln_str unit, double *value)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(spellings); i++) {
        if (kiln_str_eq(unit, kiln_str_of(spellings[i].unit))) {
            *value *= spellings[i].factor;
            return spellings[i].kind;
        }
    }
    return KILN_UNIT_OTHER;
}

/* To three significant digits; whole numbers stay whole. */
static double round3(double x)
{
    double grain;

    if (x == 0 || fabs(x) >= 100)
        return round(x);
    grain = pow(10, floor(log10(fabs(x))) - 2);
    return round(x / grain) * grain;
}

/* Without an exponent and without zeros at the end. */
static void add_number(struct kiln_buf *out, double x)
{
    int decimals = x == 0 || fabs(x) >= 100 ? 0 : 2 - (int)floor(log10(fabs(x)));
    char text[400];
    int n;

    n = snprintf(text, sizeof(text), "%.*f", decimals > 12 ? 12 : decimals, x);
    if (memchr(text, '.', (size_t)n)) {
        while (text[n - 1] == '0')
            n--;
        if (text[n - 1] == '.')
            n--;
    }
    if (n == 2 && memcmp(text, "-0", 2) == 0)
        kiln_buf_putc(out, '0');
    else
        kiln_buf_add(out, text, (size_t)n);
}

static void add_stepped(struct kiln_buf *out, double x, const struct step *steps, size_t n_steps,
                        const char *gap)
{
    size_t at = 0;

    x /= steps[0].factor;
    while (at + 1 < n_steps && fabs(round3(x)) >= steps[at + 1].factor)
        x = round3(x) / steps[++at].factor;
    add_number(out, round3(x));
    kiln_buf_puts(out, gap);
    kiln_buf_puts(out, steps[at].suffix);
}

#define STEPPED(out, x, steps, gap) add_stepped(out, x, steps, KILN_ARRAY_LEN(steps), gap)

/* 12,345,678 */
static void add_grouped(struct kiln_buf *out, double whole)
{
    char digits[32];
    int n = snprintf(digits, sizeof(digits), "%.0f", fabs(whole));

    if (whole < 0)
        kiln_buf_putc(out, '-');
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            kiln_buf_putc(out, ',');
        kiln_buf_putc(out, digits[i]);
    }
}

static void add_count(struct kiln_buf *out, double x)
{
    if (fabs(x) >= 1e7)
        STEPPED(out, x, count_steps, "");
    else if (fabs(x) >= 1000 || x == round(x))
        add_grouped(out, round(x));
    else
        add_number(out, round3(x));
}

void kiln_format_value(struct kiln_buf *out, double value, struct kiln_str unit)
{
    enum kiln_unit_kind kind;

    if (!isfinite(value)) {
        kiln_buf_puts(out, "?");
        return;
    }
    kind = normalize(unit, &value);
    if (value == 0 && kind != KILN_UNIT_OTHER) {
        kiln_buf_putc(out, '0');
    } else if (kind == KILN_UNIT_NANOSECONDS) {
        STEPPED(out, value, time_steps, "");
    } else if (kind == KILN_UNIT_BYTES) {
        STEPPED(out, value, byte_steps, "");
    } else {
        add_count(out, value);
    }
    if (kind == KILN_UNIT_OTHER) {
        kiln_buf_putc(out, ' ');
        kiln_buf_add_str(out, unit);
    }
}

/* CPU time over time is cores, time that threads spend anyhow is threads; other time over time
 * stays what it is: 340ms/s. */
static void add_time_rate(struct kiln_buf *out, double share, const struct kiln_type *type)
{
    bool cores = kiln_str_eq(type->name, KILN_STR("process_cpu"));
    bool threads =
        kiln_str_eq(type->name, KILN_STR("wall")) || kiln_str_eq(type->name, KILN_STR("off_cpu"));
    double number = round3(share);

    if (!cores && !threads) {
        kiln_format_value(out, share * 1e9, KILN_STR("nanoseconds"));
        kiln_buf_puts(out, "/s");
        return;
    }
    add_number(out, number);
    kiln_buf_puts(out, cores ? " core" : " thread");
    kiln_buf_puts(out, number == 1 ? "" : "s");
}

/* By the second, or by the minute or hour where that is less than one. */
static void add_count_rate(struct kiln_buf *out, double a_second)
{
    double magnitude = fabs(a_second);

    if (magnitude >= 1 || magnitude == 0) {
        add_count(out, a_second);
        kiln_buf_puts(out, "/s");
    } else if (magnitude * 60 >= 1) {
        add_count(out, a_second * 60);
        kiln_buf_puts(out, "/min");
    } else {
        add_count(out, a_second * 3600);
        kiln_buf_puts(out, "/h");
    }
}

void kiln_format_rate(struct kiln_buf *out, double value, const struct kiln_type *type,
                      uint64_t duration_ns)
{
    double seconds = (double)duration_ns / 1e9;
    enum kiln_unit_kind kind;

    if (duration_ns == 0 || type->level || !isfinite(value))
        return;
    kind = normalize(type->unit, &value);
    if (kind == KILN_UNIT_NANOSECONDS) {
        add_time_rate(out, value / 1e9 / seconds, type);
    } else if (kind == KILN_UNIT_BYTES) {
        STEPPED(out, value / seconds * 60, byte_steps, " ");
        kiln_buf_puts(out, "/min");
    } else {
        add_count_rate(out, value / seconds);
    }
}

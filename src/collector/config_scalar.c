/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML's core schema, with the additions of Go's reader, which the Collector has: 017 is octal as
 * 0o17 is, 0b11 is binary, and underscores may part digits.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "collector/config_int.h"

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool is_null(const char *text)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL", NULL};

    return is_one_of(text, words);
}

static bool is_true(const char *text)
{
    static const char *const words[] = {"true", "True", "TRUE", NULL};

    return is_one_of(text, words);
}

static bool is_false(const char *text)
{
    static const char *const words[] = {"false", "False", "FALSE", NULL};

    return is_one_of(text, words);
}

/* ---- whole numbers ---- */

/* The base that the digits at *at are in; *at goes to the first of them. */
static unsigned base_of(const char **at)
{
    static const struct {
        char letter;
        unsigned base;
    } bases[] = {{'x', 16}, {'o', 8}, {'b', 2}};
    const char *digits = *at;

    if (digits[0] != '0' || digits[1] == '\0')
        return 10;
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(bases); i++) {
        if (tolower((unsigned char)digits[1]) == bases[i].letter) {
            *at = digits + 2;
            return bases[i].base;
        }
    }
    *at = digits + 1;
    return 8;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct number {
    uint64_t value;
    bool negative;
};

static bool parse_int(const char *text, struct number *ret)
{
    struct number n = {.negative = text[0] == '-'};
    const char *at = text + (text[0] == '-' || text[0] == '+');
    unsigned base = base_of(&at);

    if (digit_of(*at) < 0)
        return false;
    for (; *at; at++) {
        int digit = digit_of(*at);

        if (*at == '_')
            continue;
        if (digit < 0 || (unsigned)digit >= base ||
            __builtin_mul_overflow(n.value, (uint64_t)base, &n.value) ||
            __builtin_add_overflow(n.value, (uint64_t)digit, &n.value))
            return false;
    }
    *ret = n;
    return true;
}

/* ---- other numbers ---- */

static bool is_float(const char *text)
{
    static const char *const words[] = {".inf", ".Inf", ".INF", "+.inf", "-.inf",
                                        ".nan", ".NaN", ".NAN", NULL};
    const char *at = text + (*text == '-' || *text == '+');
    size_t whole = strspn(at, "0123456789"), part = 0;

    if (is_one_of(text, words))
        return true;
    at += whole;
    if (*at == '.') {
        part = strspn(at + 1, "0123456789");
        at += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        at += 1 + (at[1] == '-' || at[1] == '+');
        if (!isdigit((unsigned char)*at))
            return false;
        at += strspn(at, "0123456789");
    }
    return *at == '\0';
}

/* ---- all ---- */

enum kiln_scalar kiln_scalar_of(const char *text)
{
    struct number number;

    if (is_null(text))
        return KILN_SCALAR_NULL;
    if (is_true(text) || is_false(text))
        return KILN_SCALAR_BOOL;
    if (parse_int(text, &number))
        return KILN_SCALAR_INT;
    return is_float(text) ? KILN_SCALAR_FLOAT : KILN_SCALAR_TEXT;
}

enum kiln_scalar kiln_scalar_of_node(const struct kiln_node *node)
{
    return node->quoted ? KILN_SCALAR_TEXT : kiln_scalar_of(node->text);
}

const char *kiln_scalar_plain(const char *text, char *room)
{
    struct number number;

    if (is_true(text) || is_false(text))
        snprintf(room, KILN_SCALAR_BYTES, "%s", is_true(text) ? "true" : "false");
    else if (parse_int(text, &number))
        snprintf(room, KILN_SCALAR_BYTES, "%s%llu", number.negative && number.value ? "-" : "",
                 (unsigned long long)number.value);
    else
        return NULL;
    return strcmp(room, text) != 0 ? room : NULL;
}

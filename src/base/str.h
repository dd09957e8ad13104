/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str - a run of bytes with a length: text that need not end in NUL, and any byte may occur.
 *
 * Threads: plain data; whoever owns the bytes must keep them while a kiln_str points there.
 */
#ifndef KILN_BASE_STR_H
#define KILN_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"

struct kiln_str {
    const char *ptr;
    size_t len;
};

/* A kiln_str of a string literal (NULs inside are kept), and of a C string. */
#define KILN_STR(literal) ((struct kiln_str){(literal), sizeof(literal) - 1})
#define KILN_STR_NONE     ((struct kiln_str){NULL, 0})

/* For printf: "%.*s", KILN_STR_ARG(s) */
#define KILN_STR_ARG(s)   (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct kiln_str kiln_str_of(const char *c_string)
{
    return (struct kiln_str){c_string, c_string ? strlen(c_string) : 0};
}

static inline bool kiln_str_eq(struct kiln_str a, struct kiln_str b)
{
    return a.len == b.len && (a.len == 0 || a.ptr == b.ptr || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Below, equal or above zero, by bytes: the order of strcmp. */
int kiln_str_cmp(struct kiln_str a, struct kiln_str b);

bool kiln_str_starts(struct kiln_str s, struct kiln_str prefix);
bool kiln_str_ends(struct kiln_str s, struct kiln_str suffix);
bool kiln_str_contains(struct kiln_str s, struct kiln_str needle);

/* Without the white space at both ends. */
struct kiln_str kiln_str_trim(struct kiln_str s);

/*
 * Cuts `*rest` at the first `separator`: returns what stands before it and leaves what stands
 * after it; without a separator returns all and leaves KILN_STR_NONE (ptr NULL).
 */
struct kiln_str kiln_str_cut(struct kiln_str *rest, char separator);

/*
 * A whole decimal number, optionally signed, and nothing else.  Returns 0, KILN_E_MALFORMED or
 * -ERANGE; *ret is untouched on failure.
 */
KILN_CHECK int kiln_str_parse_i64(struct kiln_str s, int64_t *ret);
KILN_CHECK int kiln_str_parse_u64(struct kiln_str s, uint64_t *ret);
/* Hexadecimal digits, with or without 0x. */
KILN_CHECK int kiln_str_parse_hex(struct kiln_str s, uint64_t *ret);

/* True if the bytes are well-formed UTF-8 (no surrogates, no over-long forms). */
bool kiln_utf8_valid(struct kiln_str s);

/* The bytes of the well-formed character that `s` starts with; 0 if there is none. */
size_t kiln_utf8_len(struct kiln_str s);
/* The code point of that character. */
uint32_t kiln_utf8_code(const char *p, size_t len);

/*
 * Whether a terminal obeys a character, or it breaks a line or turns text around: control
 * characters, line separators, marks of direction.
 */
bool kiln_is_control(uint32_t code_point);

#endif /* KILN_BASE_STR_H */

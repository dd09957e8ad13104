/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "pipeline/ottl/ottl_int.h"

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

/* How long a name, number, string or sign is; 0: it is none. */
static size_t name_len(struct kiln_str s)
{
    size_t n = 0;

    if (is_digit(s.ptr[0]))
        return 0;
    while (n < s.len && is_name(s.ptr[n]))
        n++;
    return n;
}

/* 42, 4.2, 1e9, 0xff. */
static size_t number_len(struct kiln_str s)
{
    size_t n = 0;

    if (!is_digit(s.ptr[0]))
        return 0;
    while (n < s.len && (is_name(s.ptr[n]) || s.ptr[n] == '.' ||
                         ((s.ptr[n] == '-' || s.ptr[n] == '+') && tolower(s.ptr[n - 1]) == 'e')))
        n++;
    return n;
}

static size_t string_len(struct kiln_str s)
{
    size_t n = 1;

    if (s.ptr[0] != '"')
        return 0;
    while (n < s.len && s.ptr[n] != '"')
        n += s.ptr[n] == '\\' ? 2 : 1;
    return n < s.len ? n + 1 : 0;
}

static size_t sign_len(struct kiln_str s)
{
    if (s.len > 1 && s.ptr[1] == '=' && strchr("=!<>", s.ptr[0]))
        return 2;
    return s.ptr[0] && strchr("<>()[],.+-*/", s.ptr[0]) ? 1 : 0;
}

struct kiln_ottl_word kiln_ottl_lex(struct kiln_str text, size_t at)
{
    static size_t (*const lengths[])(struct kiln_str) = {
        [KILN_OTTL_NAME] = name_len,
        [KILN_OTTL_STRING] = string_len,
        [KILN_OTTL_NUMBER] = number_len,
        [KILN_OTTL_SIGN] = sign_len,
    };
    struct kiln_ottl_word word = {.kind = KILN_OTTL_END};
    struct kiln_str rest;

    while (at < text.len && isspace((unsigned char)text.ptr[at]))
        at++;
    word.at = at;
    rest = (struct kiln_str){text.ptr + at, text.len - at};
    if (rest.len == 0)
        return word;
    word.kind = KILN_OTTL_BAD;
    for (int kind = KILN_OTTL_NAME; kind <= KILN_OTTL_SIGN; kind++) {
        size_t len = lengths[kind](rest);

        if (len) {
            word.kind = (enum kiln_ottl_word_kind)kind;
            word.text = (struct kiln_str){rest.ptr, len};
            break;
        }
    }
    return word;
}

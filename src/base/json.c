/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader.  It goes forward over one buffer and keeps three things: the place, the depth, and
 * whether a comma is due.  Which container is innermost is known to the caller, whose loops mirror
 * the text; only kiln_json_skip() keeps it for itself, one bit a level.
 *
 * Strings are searched eight bytes at a time for a byte that needs a look (quote, backslash,
 * control character, anything above ASCII); the common string is returned as it stands in the text.
 *
 * An error moves the place to the end of the text, so that the hot paths, which look for the end
 * anyway, need no test for an earlier error.
 */
#include <stdio.h>

#include "base/json.h"

#define STRING_MAX (256u << 20) /* of one string with escapes, unescaped */

void kiln_json_init(struct kiln_json *r, struct kiln_str text, struct kiln_err *err)
{
    static const char bom[] = "\xef\xbb\xbf";

    *r = (struct kiln_json){.err = err, .first = true};
    r->start = text.ptr ? text.ptr : "";
    r->end = r->start + text.len;
    r->at = r->start;
    r->last = r->start;
    if (kiln_str_starts(text, KILN_STR(bom)))
        r->at += sizeof(bom) - 1;
    kiln_buf_init(&r->scratch, STRING_MAX);
}

void kiln_json_done(struct kiln_json *r)
{
    kiln_buf_done(&r->scratch);
}

/* ---- errors ---- */

/* Line and column, from 1; a column is a character, not a byte. */
static void place_of(const struct kiln_json *r, const char *place, size_t *line, size_t *column)
{
    const char *line_start = r->start;

    *line = 1;
    for (const char *p = r->start; (p = memchr(p, '\n', (size_t)(place - p)));) {
        line_start = ++p;
        ++*line;
    }
    *column = 1;
    for (const char *p = line_start; p < place; p++)
        *column += ((unsigned char)*p & 0xc0) != 0x80;
}

static int fail_va(struct kiln_json *r, const char *place, int code, const char *fmt, va_list args)
{
    char text[sizeof(r->err->text) - 60];
    size_t line, column;

    if (r->error)
        return r->error;
    r->error = code;
    if (r->err) {
        place_of(r, place, &line, &column);
        vsnprintf(text, sizeof(text), fmt, args);
        kiln_err_set(r->err, code, NULL, "%s at line %zu, column %zu", text, line, column);
    }
    r->at = r->end;
    return code;
}

static int fail_at(struct kiln_json *r, const char *place, int code, const char *fmt, ...)
    KILN_PRINTF(4, 5);

static int fail_at(struct kiln_json *r, const char *place, int code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    code = fail_va(r, place, code, fmt, args);
    va_end(args);
    return code;
}

int kiln_json_fail(struct kiln_json *r, int code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    code = fail_va(r, r->last, code, fmt, args);
    va_end(args);
    return code;
}

/* What stands at the place is not what was wanted. */
static int unexpected(struct kiln_json *r, const char *wanted)
{
    unsigned char c;

    if (r->error)
        return r->error;
    if (r->at == r->end)
        return fail_at(r, r->at, KILN_E_TRUNCATED, "the text ends where %s should be", wanted);
    c = (unsigned char)*r->at;
    if (c > 0x20 && c < 0x7f)
        return fail_at(r, r->at, KILN_E_MALFORMED, "expected %s, found '%c'", wanted, c);
    return fail_at(r, r->at, KILN_E_MALFORMED, "expected %s, found byte 0x%02x", wanted, c);
}

/* ---- structure ---- */

static inline bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* The next byte that is not white space, or NUL at the end (a NUL in the text is an error anyway).
 */
static inline char look(struct kiln_json *r)
{
    while (KILN_LIKELY(r->at < r->end)) {
        if (KILN_LIKELY(!is_space(*r->at)))
            return *r->at;
        r->at++;
    }
    return '\0';
}

enum kiln_json_kind kiln_json_peek(struct kiln_json *r)
{
    static const uint8_t kinds[256] = {
        ['{'] = KILN_JSON_OBJECT, ['['] = KILN_JSON_ARRAY,  ['"'] = KILN_JSON_STRING,
        ['t'] = KILN_JSON_BOOL,   ['f'] = KILN_JSON_BOOL,   ['n'] = KILN_JSON_NULL,
        ['-'] = KILN_JSON_NUMBER, ['0'] = KILN_JSON_NUMBER, ['1'] = KILN_JSON_NUMBER,
        ['2'] = KILN_JSON_NUMBER, ['3'] = KILN_JSON_NUMBER, ['4'] = KILN_JSON_NUMBER,
        ['5'] = KILN_JSON_NUMBER, ['6'] = KILN_JSON_NUMBER, ['7'] = KILN_JSON_NUMBER,
        ['8'] = KILN_JSON_NUMBER, ['9'] = KILN_JSON_NUMBER,
    };

    return (enum kiln_json_kind)kinds[(unsigned char)look(r)];
}

static int enter(struct kiln_json *r, char bracket, const char *wanted)
{
    if (look(r) != bracket)
        return unexpected(r, wanted);
    if (r->depth == KILN_JSON_DEPTH_MAX)
        return fail_at(r, r->at, KILN_E_LIMIT, "more than %u levels", KILN_JSON_DEPTH_MAX);
    r->at++;
    r->depth++;
    r->first = true;
    return 0;
}

/* Goes to the next element: 1, or 0 past the closing bracket. */
static inline int advance(struct kiln_json *r, char bracket, const char *wanted)
{
    char c = look(r);

    if (KILN_LIKELY(c == ',') && !r->first) {
        r->at++;
        return 1;
    }
    if (c == bracket) {
        r->at++;
        r->depth--;
        r->first = false;
        return 0;
    }
    if (r->first && r->at < r->end) {
        r->first = false;
        return 1;
    }
    return unexpected(r, wanted);
}

int kiln_json_object(struct kiln_json *r)
{
    return enter(r, '{', "an object");
}

int kiln_json_array(struct kiln_json *r)
{
    return enter(r, '[', "an array");
}

int kiln_json_element_slow(struct kiln_json *r)
{
    return advance(r, ']', "',' or ']'");
}

int kiln_json_member(struct kiln_json *r, struct kiln_str *ret_name)
{
    int n = advance(r, '}', "',' or '}'");

    if (n <= 0)
        return n;
    if (look(r) != '"')
        return unexpected(r, "a name in quotes");
    n = kiln_json_string(r, ret_name);
    if (n < 0)
        return n;
    if (look(r) != ':')
        return unexpected(r, "':'");
    r->at++;
    return 1;
}

int kiln_json_more(struct kiln_json *r)
{
    look(r);
    return r->error ? r->error : r->at < r->end;
}

size_t kiln_json_tell(struct kiln_json *r)
{
    look(r);
    return (size_t)(r->at - r->start);
}

void kiln_json_seek(struct kiln_json *r, size_t position)
{
    if (r->error)
        return;
    r->at = r->start + position;
    r->depth = 0;
    r->first = false;
}

/* ---- words ---- */

static int word(struct kiln_json *r, struct kiln_str expected)
{
    if (!kiln_str_starts((struct kiln_str){r->at, (size_t)(r->end - r->at)}, expected))
        return unexpected(r, "a value");
    r->at += expected.len;
    r->first = false;
    return 0;
}

int kiln_json_bool(struct kiln_json *r, bool *ret)
{
    char c = look(r);
    int n;

    if (c != 't' && c != 'f')
        return unexpected(r, "true or false");
    n = word(r, c == 't' ? KILN_STR("true") : KILN_STR("false"));
    if (n == 0)
        *ret = c == 't';
    return n;
}

int kiln_json_null(struct kiln_json *r)
{
    int n;

    if (look(r) != 'n')
        return r->error;
    n = word(r, KILN_STR("null"));
    return n < 0 ? n : 1;
}

/* ---- strings ---- */

#define ONES 0x0101010101010101u
#define TOPS 0x8080808080808080u

/* The first byte from `p` on that ends or complicates a string, or `end`. */
static inline const char *plain_end(const char *p, const char *end)
{
    while (end - p >= 8) {
        uint64_t v, hits;

        memcpy(&v, p, 8);
        hits = v | (v - ONES * 0x20); /* above ASCII, or a control character */
        hits |= ((v ^ ONES * '"') - ONES) | ((v ^ ONES * '\\') - ONES);
        hits &= TOPS;
        if (hits)
            return p +
                   __builtin_ctzll(hits) / 8; /* borrows spoil only bytes behind the first hit */
        p += 8;
    }
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' &&
           *p != '\\')
        p++;
    return p;
}

static int hex4(struct kiln_json *r, const char *p, uint32_t *ret)
{
    uint64_t value;

    if (r->end - p < 4)
        return fail_at(r, r->end, KILN_E_TRUNCATED, "the text ends inside an escape");
    if (p[1] == 'x' || p[1] == 'X' || kiln_str_parse_hex((struct kiln_str){p, 4}, &value) < 0)
        return fail_at(r, p, KILN_E_MALFORMED, "'\\u' without four hexadecimal digits");
    *ret = (uint32_t)value;
    return 0;
}

static void add_utf8(struct kiln_buf *buf, uint32_t c)
{
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(lead[n] | c);
    kiln_buf_add(buf, bytes, n);
}

/* The escape \uXXXX at r->at, and the second half of a pair.  r->at goes behind it. */
static int unescape_unicode(struct kiln_json *r)
{
    const char *escape = r->at;
    uint32_t c, low = 0;
    int n = hex4(r, r->at + 2, &c);

    if (n < 0)
        return n;
    r->at += 6;
    if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == 'u') {
        n = hex4(r, r->at + 2, &low);
        if (n < 0)
            return n;
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            r->at += 6;
        }
    }
    if (c >= 0xd800 && c < 0xe000)
        return fail_at(r, escape, KILN_E_UTF8, "half of a surrogate pair");
    add_utf8(&r->scratch, c);
    return 0;
}

static int unescape(struct kiln_json *r)
{
    static const char plain[128] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    unsigned char c;

    if (r->end - r->at < 2)
        return fail_at(r, r->end, KILN_E_TRUNCATED, "the text ends inside a string");
    c = (unsigned char)r->at[1];
    if (c == 'u')
        return unescape_unicode(r);
    if (c >= 128 || !plain[c])
        return fail_at(r, r->at, KILN_E_MALFORMED, "no such escape");
    kiln_buf_putc(&r->scratch, plain[c]);
    r->at += 2;
    return 0;
}

/* The rest of a string whose first escape is at r->at; `start` is its first byte. */
static int string_with_escapes(struct kiln_json *r, const char *start, struct kiln_str *ret)
{
    int n;

    kiln_buf_clear(&r->scratch);
    kiln_buf_add(&r->scratch, start, (size_t)(r->at - start));
    while (r->at < r->end && *r->at != '"') {
        const char *from = r->at;

        if (*from == '\\') {
            n = unescape(r);
            if (n < 0)
                return n;
            continue;
        }
        if ((unsigned char)*from < 0x20)
            return fail_at(r, from, KILN_E_MALFORMED, "a control character inside a string");
        do {
            r->at = plain_end(r->at, r->end);
        } while (r->at < r->end && (unsigned char)*r->at >= 0x80 && r->at++);
        kiln_buf_add(&r->scratch, from, (size_t)(r->at - from));
    }
    if (r->scratch.error)
        return fail_at(r, r->at, r->scratch.error, "%s", kiln_err_text(r->scratch.error));
    *ret = kiln_buf_str(&r->scratch);
    return 0;
}

int kiln_json_string(struct kiln_json *r, struct kiln_str *ret)
{
    const char *start;
    struct kiln_str s;
    bool ascii = true;
    int n;

    if (KILN_UNLIKELY(look(r) != '"'))
        return unexpected(r, "a string");
    r->last = r->at;
    start = ++r->at;
    while ((r->at = plain_end(r->at, r->end)) < r->end && (unsigned char)*r->at >= 0x80) {
        ascii = false;
        r->at++;
    }
    s = (struct kiln_str){start, (size_t)(r->at - start)};
    if (KILN_UNLIKELY(r->at < r->end && *r->at == '\\')) {
        n = string_with_escapes(r, start, &s);
        if (n < 0)
            return n;
        ascii = false;
    }
    if (KILN_UNLIKELY(r->at == r->end))
        return fail_at(r, r->at, KILN_E_TRUNCATED, "the text ends inside a string");
    if (KILN_UNLIKELY(*r->at != '"'))
        return fail_at(r, r->at, KILN_E_MALFORMED, "a control character inside a string");
    if (KILN_UNLIKELY(!ascii && !kiln_utf8_valid(s)))
        return fail_at(r, start, KILN_E_UTF8, "a string that is not UTF-8");
    r->at++;
    r->first = false;
    *ret = s;
    return 0;
}

/* ---- skipping ---- */

static int skip_scalar(struct kiln_json *r)
{
    struct kiln_str ignored;
    bool flag;
    int n;

    switch (kiln_json_peek(r)) {
    case KILN_JSON_STRING:
        return kiln_json_string(r, &ignored);
    case KILN_JSON_NUMBER:
        return kiln_json_number(r, &ignored);
    case KILN_JSON_BOOL:
        return kiln_json_bool(r, &flag);
    case KILN_JSON_NULL:
        n = kiln_json_null(r);
        return n < 0 ? n : 0;
    default:
        return unexpected(r, "a value");
    }
}

int kiln_json_skip(struct kiln_json *r)
{
    uint64_t is_object[(KILN_JSON_DEPTH_MAX + 63) / 64];
    uint32_t outside = r->depth;
    struct kiln_str name;
    int n;

    for (;;) {
        char c = look(r);

        if (c == '{' || c == '[') {
            uint64_t bit = UINT64_C(1) << r->depth % 64;
            uint64_t *bits = &is_object[r->depth / 64 % KILN_ARRAY_LEN(is_object)];

            n = enter(r, c, "a value");
            *bits = c == '{' ? *bits | bit : *bits & ~bit;
        } else {
            n = skip_scalar(r);
        }
        /* Leaves every container that ends here; stops before the next value. */
        while (n == 0 && r->depth > outside) {
            uint32_t inner = r->depth - 1;

            n = is_object[inner / 64] >> inner % 64 & 1 ? kiln_json_member(r, &name)
                                                        : kiln_json_element(r);
        }
        if (n <= 0)
            return n;
    }
}

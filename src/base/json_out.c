/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer: a comma or a line break before each value, escapes inside strings.
 */
#include <math.h>
#include <stdio.h>

#include "base/json.h"

void kiln_json_out_init(struct kiln_json_out *w, struct kiln_buf *buf, uint32_t indent)
{
    *w = (struct kiln_json_out){.buf = buf, .indent = indent, .first = true};
}

static void new_line(struct kiln_json_out *w)
{
    size_t spaces = (size_t)w->indent * w->depth;
    char *at;

    kiln_buf_putc(w->buf, '\n');
    at = kiln_buf_reserve(w->buf, spaces);
    if (!at)
        return;
    memset(at, ' ', spaces);
    w->buf->len += spaces;
}

/* What stands between this value (or name) and the one before. */
static void separate(struct kiln_json_out *w)
{
    if (w->has_name) {
        w->has_name = false;
        return;
    }
    if (!w->first)
        kiln_buf_putc(w->buf, ',');
    w->first = false;
    if (w->indent && w->depth)
        new_line(w);
}

static void open_bracket(struct kiln_json_out *w, char bracket)
{
    separate(w);
    kiln_buf_putc(w->buf, bracket);
    w->depth++;
    w->first = true;
}

static void close_bracket(struct kiln_json_out *w, char bracket)
{
    w->depth--;
    if (w->indent && !w->first)
        new_line(w);
    kiln_buf_putc(w->buf, bracket);
    w->first = false;
}

void kiln_json_put_object(struct kiln_json_out *w)
{
    open_bracket(w, '{');
}

void kiln_json_end_object(struct kiln_json_out *w)
{
    close_bracket(w, '}');
}

void kiln_json_put_array(struct kiln_json_out *w)
{
    open_bracket(w, '[');
}

void kiln_json_end_array(struct kiln_json_out *w)
{
    close_bracket(w, ']');
}

/* ---- strings ---- */

static void add_escape(struct kiln_buf *buf, unsigned char c)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char letter = c < 0x20 ? letters[c] : (char)c;

    if (letter) {
        kiln_buf_putc(buf, '\\');
        kiln_buf_putc(buf, letter);
    } else {
        kiln_buf_puts(buf, "\\u00");
        kiln_buf_add_hex(buf, &c, 1);
    }
}

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

/*
 * The character at the start of `s` if a terminal would obey it or turn text around: U+007F to
 * U+009F, line separators and marks of direction.  0: none.  JSON can hold them as they are.
 */
static unsigned hidden(struct kiln_str s)
{
    unsigned char b[3] = {0};
    unsigned c;

    memcpy(b, s.ptr, s.len < 3 ? s.len : 3);
    if (b[0] == 0x7f)
        return b[0];
    if (b[0] == 0xc2)
        return b[1] >= 0x80 && b[1] < 0xa0 ? b[1] : 0;
    if (b[0] == 0xd8)
        return b[1] == 0x9c ? 0x61c : 0;
    if (b[0] != 0xe2 || (b[1] != 0x80 && b[1] != 0x81) || (b[2] & 0xc0) != 0x80)
        return 0;
    c = 0x2000u | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
    return (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
                   (c >= 0x2066 && c <= 0x2069)
               ? c
               : 0;
}

static size_t bytes_of(unsigned c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
}

static void add_hidden(struct kiln_buf *buf, unsigned c)
{
    unsigned char bytes[] = {(unsigned char)(c >> 8), (unsigned char)c};

    kiln_buf_puts(buf, "\\u");
    kiln_buf_add_hex(buf, bytes, sizeof(bytes));
}

static void add_quoted(struct kiln_buf *buf, struct kiln_str s)
{
    size_t from = 0;

    kiln_buf_putc(buf, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char byte = (unsigned char)s.ptr[i];
        unsigned c = byte < 0x7f ? 0 : hidden((struct kiln_str){s.ptr + i, s.len - i});

        if (!c && !needs_escape(byte))
            continue;
        kiln_buf_add_utf8(buf, (struct kiln_str){s.ptr + from, i - from});
        if (c)
            add_hidden(buf, c);
        else
            add_escape(buf, byte);
        i += c ? bytes_of(c) - 1 : 0;
        from = i + 1;
    }
    if (from < s.len)
        kiln_buf_add_utf8(buf, (struct kiln_str){s.ptr + from, s.len - from});
    kiln_buf_putc(buf, '"');
}

void kiln_json_put_str(struct kiln_json_out *w, struct kiln_str s)
{
    separate(w);
    add_quoted(w->buf, s);
}

void kiln_json_put_name_str(struct kiln_json_out *w, struct kiln_str name)
{
    separate(w);
    add_quoted(w->buf, name);
    kiln_buf_puts(w->buf, w->indent ? ": " : ":");
    w->has_name = true;
}

void kiln_json_put_name(struct kiln_json_out *w, const char *name)
{
    size_t len = strlen(name);
    char *at;

    separate(w);
    at = kiln_buf_reserve(w->buf, len + 3);
    if (!at)
        return;
    *at++ = '"';
    at = mempcpy(at, name, len);
    *at++ = '"';
    *at = ':';
    w->buf->len += len + 3;
    if (w->indent)
        kiln_buf_putc(w->buf, ' ');
    w->has_name = true;
}

void kiln_json_put_raw_begin(struct kiln_json_out *w)
{
    separate(w);
    kiln_buf_putc(w->buf, '"');
}

void kiln_json_put_raw_end(struct kiln_json_out *w)
{
    kiln_buf_putc(w->buf, '"');
}

/* ---- scalars ---- */

void kiln_json_put_i64(struct kiln_json_out *w, int64_t value)
{
    separate(w);
    kiln_buf_add_i64(w->buf, value);
}

void kiln_json_put_u64(struct kiln_json_out *w, uint64_t value)
{
    separate(w);
    kiln_buf_add_u64(w->buf, value);
}

void kiln_json_put_i64_text(struct kiln_json_out *w, int64_t value)
{
    kiln_json_put_raw_begin(w);
    kiln_buf_add_i64(w->buf, value);
    kiln_json_put_raw_end(w);
}

void kiln_json_put_u64_text(struct kiln_json_out *w, uint64_t value)
{
    kiln_json_put_raw_begin(w);
    kiln_buf_add_u64(w->buf, value);
    kiln_json_put_raw_end(w);
}

void kiln_json_put_double(struct kiln_json_out *w, double value)
{
    char text[32];
    double back = 0;

    if (!isfinite(value)) {
        kiln_json_put_str(w, isnan(value) ? KILN_STR("NaN")
                             : value > 0  ? KILN_STR("Infinity")
                                          : KILN_STR("-Infinity"));
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        int n = snprintf(text, sizeof(text), "%.*g", digits, value);
        char *comma = memchr(text, ',', (size_t)n); /* the decimal point of some locales */

        if (comma)
            *comma = '.';
        if (kiln_json_parse_double(kiln_str_of(text), &back) == 0 && back == value)
            break;
    }
    separate(w);
    kiln_buf_puts(w->buf, text);
    if (value == 0 && signbit(value)) /* many read -0 as an integer, which has no sign at zero */
        kiln_buf_puts(w->buf, ".0");
}

void kiln_json_put_bool(struct kiln_json_out *w, bool flag)
{
    separate(w);
    kiln_buf_puts(w->buf, flag ? "true" : "false");
}

void kiln_json_put_null(struct kiln_json_out *w)
{
    separate(w);
    kiln_buf_puts(w->buf, "null");
}

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

/* A quote, a backslash, or a control character; all of these are in the first plane. */
static void add_escape(struct kiln_buf *buf, uint32_t c)
{
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char letter = c < 0x20 ? letters[c] : c < 0x7f ? (char)c : '\0';
    unsigned char bytes[] = {(unsigned char)(c >> 8), (unsigned char)c};

    if (letter) {
        kiln_buf_putc(buf, '\\');
        kiln_buf_putc(buf, letter);
    } else {
        kiln_buf_puts(buf, "\\u");
        kiln_buf_add_hex(buf, bytes, sizeof(bytes));
    }
}

/*
 * The bytes of the character at the start of `s` if it is escaped, else 0.  JSON allows most
 * control characters beyond ASCII, but it may be shown on a terminal.
 */
static size_t escaped(struct kiln_str s, uint32_t *ret_c)
{
    unsigned char byte = (unsigned char)*s.ptr;
    size_t len = byte < 0x80 ? 1 : kiln_utf8_len(s);

    *ret_c = len ? kiln_utf8_code(s.ptr, len) : byte;
    return byte == '"' || byte == '\\' || (len && kiln_is_control(*ret_c)) ? len : 0;
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

static void add_quoted(struct kiln_buf *buf, struct kiln_str s)
{
    size_t from = 0, len;
    uint32_t c;

    kiln_buf_putc(buf, '"');
    for (size_t i = 0; i < s.len; i += len ? len : 1) {
        len = is_plain((unsigned char)s.ptr[i])
                  ? 0
                  : escaped((struct kiln_str){s.ptr + i, s.len - i}, &c);
        if (!len)
            continue;
        kiln_buf_add_utf8(buf, (struct kiln_str){s.ptr + from, i - from});
        add_escape(buf, c);
        from = i + len;
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

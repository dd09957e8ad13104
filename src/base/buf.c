/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/bytetext.h"
#include "base/err.h"
#include "base/mem.h"

#define CAP_MIN 256u

void kiln_buf_init(struct kiln_buf *buf, size_t max)
{
    *buf = (struct kiln_buf){.max = max};
}

/* What is charged for a capacity. */
static size_t charge_of(size_t cap)
{
    return cap > KILN_BUF_SMALL ? cap : 0;
}

static void unpay(const struct kiln_buf *buf)
{
    if (buf->pool && charge_of(buf->cap))
        kiln_pool_give(buf->pool, charge_of(buf->cap));
}

void kiln_buf_done(struct kiln_buf *buf)
{
    kiln_free(buf->ptr);
    unpay(buf);
    *buf = (struct kiln_buf){.max = buf->max, .pool = buf->pool};
}

void kiln_buf_clear(struct kiln_buf *buf)
{
    buf->len = 0;
    buf->error = 0;
}

static int grow(struct kiln_buf *buf, size_t cap)
{
    size_t more = charge_of(cap) - charge_of(buf->cap);
    char *grown;

    if (buf->pool && more && kiln_pool_take(buf->pool, more) < 0)
        return KILN_E_LIMIT;
    grown = kiln_realloc(buf->ptr, cap);
    if (!grown) {
        if (buf->pool && more)
            kiln_pool_give(buf->pool, more);
        return -ENOMEM;
    }
    buf->ptr = grown;
    buf->cap = cap;
    return 0;
}

char *kiln_buf_reserve(struct kiln_buf *buf, size_t more)
{
    size_t cap = buf->cap ? buf->cap : CAP_MIN / 2;

    if (buf->error)
        return NULL;
    if (KILN_LIKELY(more <= buf->cap - buf->len))
        return buf->ptr ? buf->ptr + buf->len : NULL;
    if (more > buf->max - buf->len) {
        buf->error = KILN_E_LIMIT;
        return NULL;
    }
    cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
    if (cap < buf->len + more)
        cap = buf->len + more;
    if (cap > buf->max)
        cap = buf->max;
    buf->error = grow(buf, cap);
    return buf->error ? NULL : buf->ptr + buf->len;
}

void kiln_buf_add(struct kiln_buf *buf, const void *data, size_t len)
{
    char *at = len ? kiln_buf_reserve(buf, len) : NULL;

    if (!at)
        return;
    memcpy(at, data, len);
    buf->len += len;
}

void kiln_buf_add_str(struct kiln_buf *buf, struct kiln_str s)
{
    kiln_buf_add(buf, s.ptr, s.len);
}

void kiln_buf_puts(struct kiln_buf *buf, const char *c_string)
{
    kiln_buf_add(buf, c_string, strlen(c_string));
}

/* The length of the character above ASCII that `s` starts with, or 0 where it is not UTF-8. */
static size_t utf8_character(struct kiln_str s)
{
    for (size_t n = 2; n <= 4 && n <= s.len; n++) {
        if (kiln_utf8_valid((struct kiln_str){s.ptr, n}))
            return n;
    }
    return 0;
}

void kiln_buf_add_utf8(struct kiln_buf *buf, struct kiln_str s)
{
    size_t i = 0;

    if (s.len == 0)
        return;
    if (kiln_utf8_valid(s)) {
        kiln_buf_add_str(buf, s);
        return;
    }
    while (i < s.len) {
        size_t from = i, n;

        while (i < s.len && (unsigned char)s.ptr[i] < 0x80)
            i++;
        kiln_buf_add(buf, s.ptr + from, i - from);
        if (i == s.len)
            break;
        n = utf8_character((struct kiln_str){s.ptr + i, s.len - i});
        kiln_buf_add_str(buf, n ? (struct kiln_str){s.ptr + i, n} : KILN_STR("\xef\xbf\xbd"));
        i += n ? n : 1;
    }
}

void kiln_buf_putc(struct kiln_buf *buf, char c)
{
    if (KILN_LIKELY(buf->len < buf->cap && !buf->error))
        buf->ptr[buf->len++] = c;
    else
        kiln_buf_add(buf, &c, 1);
}

void kiln_buf_printf(struct kiln_buf *buf, const char *fmt, ...)
{
    va_list args;
    char *at;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    at = n < 0 ? NULL : kiln_buf_reserve(buf, (size_t)n + 1);
    if (!at)
        return;
    va_start(args, fmt);
    vsnprintf(at, (size_t)n + 1, fmt, args);
    va_end(args);
    buf->len += (size_t)n;
}

void kiln_buf_add_u64(struct kiln_buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    kiln_buf_add(buf, digits + at, sizeof(digits) - at);
}

void kiln_buf_add_i64(struct kiln_buf *buf, int64_t value)
{
    if (value < 0)
        kiln_buf_putc(buf, '-');
    kiln_buf_add_u64(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void kiln_buf_add_hex(struct kiln_buf *buf, const void *data, size_t len)
{
    char *at = kiln_buf_reserve(buf, len * 2);

    if (!at)
        return;
    kiln_hex_encode(data, len, at);
    buf->len += len * 2;
}

void kiln_buf_take(struct kiln_buf *buf, char **ret_ptr, size_t *ret_len)
{
    *ret_ptr = buf->ptr;
    *ret_len = buf->len;
    unpay(buf);
    *buf = (struct kiln_buf){.max = buf->max, .pool = buf->pool};
}

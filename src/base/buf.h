/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf - a growable run of bytes with a hard maximum, for everything Kiln writes.
 *
 * Appending never needs a check: the first failure (no memory, or past the maximum) sticks in
 * `error`, later appends do nothing, and the writer looks once, at the end.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_BASE_BUF_H
#define KILN_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/pool.h"
#include "base/str.h"

struct kiln_buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max; /* the most bytes it may hold */
    int error;  /* 0, -ENOMEM or KILN_E_LIMIT; sticky */
    /* Who pays for it, once it is large (KILN_BUF_SMALL); NULL: nobody.  Set behind init. */
    struct kiln_pool *pool;
};

enum { KILN_BUF_SMALL = 1 << 20 };

/* An empty buffer that holds at most `max` bytes.  Nothing is allocated yet. */
void kiln_buf_init(struct kiln_buf *buf, size_t max);
void kiln_buf_done(struct kiln_buf *buf);

/* Forgets the content and the error, keeps the memory. */
void kiln_buf_clear(struct kiln_buf *buf);

/* Room for `more` bytes at the end; the caller writes there and adds to `len`.  NULL on failure. */
char *kiln_buf_reserve(struct kiln_buf *buf, size_t more);

void kiln_buf_add(struct kiln_buf *buf, const void *data, size_t len);
void kiln_buf_add_str(struct kiln_buf *buf, struct kiln_str s);
void kiln_buf_puts(struct kiln_buf *buf, const char *c_string);
/* A text; each byte that is not part of well-formed UTF-8 becomes U+FFFD. */
void kiln_buf_add_utf8(struct kiln_buf *buf, struct kiln_str s);
void kiln_buf_putc(struct kiln_buf *buf, char c);
void kiln_buf_printf(struct kiln_buf *buf, const char *fmt, ...) KILN_PRINTF(2, 3);
void kiln_buf_add_u64(struct kiln_buf *buf, uint64_t value); /* decimal digits */
void kiln_buf_add_i64(struct kiln_buf *buf, int64_t value);
void kiln_buf_add_hex(struct kiln_buf *buf, const void *data, size_t len); /* two digits a byte */

/* What it holds, borrowed until the next append. */
static inline struct kiln_str kiln_buf_str(const struct kiln_buf *buf)
{
    return (struct kiln_str){buf->ptr, buf->len};
}

/* Moves the memory out: the caller frees *ret_ptr with kiln_free(), and pays for it from now on.
 * The buffer is empty after. */
void kiln_buf_take(struct kiln_buf *buf, char **ret_ptr, size_t *ret_len);

#endif /* KILN_BASE_BUF_H */

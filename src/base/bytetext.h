/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytetext - bytes as text: hexadecimal and base64.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_BYTETEXT_H
#define KILN_BASE_BYTETEXT_H

#include "base/buf.h"
#include "base/str.h"

/* The value of a hexadecimal digit of any case; -1: it is none. */
int kiln_hex_digit(char c);
/* Writes 2n digits in lower case, no NUL behind them. */
void kiln_hex_encode(const void *data, size_t n, char *ret);
/* Exactly `n` bytes from 2n hexadecimal digits of any case.  Returns 0 or KILN_E_MALFORMED. */
KILN_CHECK int kiln_hex_decode(struct kiln_str text, uint8_t *ret, size_t n);

/* The most bytes that base64 of this length holds. */
static inline size_t kiln_base64_room(size_t len)
{
    return len / 4 * 3 + 3;
}

/*
 * Decodes base64 with or without padding, in the usual or the URL alphabet, into `ret`, which has
 * kiln_base64_room(text.len) bytes.  Returns 0 or KILN_E_MALFORMED.
 */
KILN_CHECK int kiln_base64_decode(struct kiln_str text, void *ret, size_t *ret_len);

/* Appends base64 with padding. */
void kiln_buf_add_base64(struct kiln_buf *buf, const void *data, size_t len);

#endif /* KILN_BASE_BYTETEXT_H */

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytetext.h"
#include "base/err.h"

int kiln_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void kiln_hex_encode(const void *data, size_t n, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;

    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
}

int kiln_hex_decode(struct kiln_str text, uint8_t *ret, size_t n)
{
    if (text.len != 2 * n)
        return KILN_E_MALFORMED;
    for (size_t i = 0; i < text.len; i++) {
        if (kiln_hex_digit(text.ptr[i]) < 0)
            return KILN_E_MALFORMED;
    }
    for (size_t i = 0; i < n; i++)
        ret[i] =
            (uint8_t)(kiln_hex_digit(text.ptr[2 * i]) << 4 | kiln_hex_digit(text.ptr[2 * i + 1]));
    return 0;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Without padding, which must fill the last group where it is given. */
static int strip_padding(struct kiln_str *text)
{
    size_t padding = 0;

    while (padding < 2 && text->len > padding && text->ptr[text->len - 1 - padding] == '=')
        padding++;
    if (padding && text->len % 4)
        return KILN_E_MALFORMED;
    text->len -= padding;
    return text->len % 4 == 1 ? KILN_E_MALFORMED : 0;
}

int kiln_base64_decode(struct kiln_str text, void *ret, size_t *ret_len)
{
    uint8_t *out = ret;
    uint32_t bits = 0;
    size_t n = 0;

    if (strip_padding(&text) < 0)
        return KILN_E_MALFORMED;
    for (size_t i = 0; i < text.len; i++) {
        int digit = base64_digit(text.ptr[i]);

        if (digit < 0)
            return KILN_E_MALFORMED;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 > 0)
            out[n++] = (uint8_t)(bits >> (6 - i % 4 * 2));
    }
    *ret_len = n;
    return 0;
}

void kiln_buf_add_base64(struct kiln_buf *buf, const void *data, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = data;
    char *out = len ? kiln_buf_reserve(buf, (len + 2) / 3 * 4) : NULL;

    if (!out)
        return;
    for (size_t i = 0; i < len; i += 3, out += 4) {
        uint32_t bits = (uint32_t)in[i] << 16;

        bits |= i + 1 < len ? (uint32_t)in[i + 1] << 8 : 0;
        bits |= i + 2 < len ? in[i + 2] : 0;
        out[0] = digits[bits >> 18];
        out[1] = digits[bits >> 12 & 63];
        out[2] = i + 1 < len ? digits[bits >> 6 & 63] : '=';
        out[3] = i + 2 < len ? digits[bits & 63] : '=';
    }
    buf->len += (len + 2) / 3 * 4;
}

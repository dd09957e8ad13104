/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and texts of gRPC.
 *
 *   frame      flags (1 byte), length of the payload (4 bytes, big-endian), payload
 *   message    grpc-message: printable ASCII as it is, every other byte and '%' as %XX
 */
#include "net/grpc.h"

#include "base/bytetext.h"

#define FLAGS_KNOWN (KILN_GRPC_COMPRESSED | KILN_GRPC_TRAILERS)

/* ---- frames ---- */

int kiln_grpc_frame_next(struct kiln_str *rest, size_t max, struct kiln_grpc_frame *ret_frame)
{
    const uint8_t *p = (const uint8_t *)rest->ptr;
    uint32_t len;

    if (rest->len == 0)
        return 0;
    if (p[0] & ~FLAGS_KNOWN)
        return KILN_E_MALFORMED;
    if (rest->len < KILN_GRPC_HEAD_BYTES)
        return KILN_E_TRUNCATED;
    len = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
    if (len > max)
        return KILN_E_LIMIT;
    if (len > rest->len - KILN_GRPC_HEAD_BYTES)
        return KILN_E_TRUNCATED;
    *ret_frame = (struct kiln_grpc_frame){p[0], {rest->ptr + KILN_GRPC_HEAD_BYTES, len}};
    rest->ptr += KILN_GRPC_HEAD_BYTES + len;
    rest->len -= KILN_GRPC_HEAD_BYTES + len;
    return 1;
}

void kiln_grpc_frame_put(struct kiln_buf *out, uint8_t flags, struct kiln_str payload)
{
    uint32_t len = (uint32_t)payload.len;
    uint8_t head[KILN_GRPC_HEAD_BYTES] = {flags, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                                          (uint8_t)(len >> 8), (uint8_t)len};

    if (payload.len > UINT32_MAX) {
        out->error = out->error ? out->error : KILN_E_LIMIT;
        return;
    }
    kiln_buf_add(out, head, sizeof(head));
    kiln_buf_add_str(out, payload);
}

/* ---- texts ---- */

void kiln_grpc_text_put(struct kiln_buf *out, struct kiln_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = (uint8_t)text.ptr[i];

        if (c >= 0x20 && c <= 0x7e && c != '%')
            kiln_buf_putc(out, (char)c);
        else
            kiln_buf_printf(out, "%%%02X", c);
    }
}

void kiln_grpc_text_get(struct kiln_buf *out, struct kiln_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = -1, low = -1;

        if (text.ptr[i] == '%' && text.len - i > 2) {
            high = kiln_hex_digit(text.ptr[i + 1]);
            low = kiln_hex_digit(text.ptr[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            kiln_buf_putc(out, (char)(high << 4 | low));
            i += 2;
        } else {
            kiln_buf_putc(out, text.ptr[i]);
        }
    }
}

int kiln_grpc_encoding(struct kiln_str name, enum kiln_compression *ret_compression)
{
    static const struct {
        struct kiln_str name;
        enum kiln_compression compression;
    } known[] = {{{"identity", 8}, KILN_PLAIN}, {{"gzip", 4}, KILN_GZIP}, {{"zstd", 4}, KILN_ZSTD}};

    if (name.len == 0) {
        *ret_compression = KILN_PLAIN;
        return 0;
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(known); i++)
        if (kiln_str_eq(name, known[i].name)) {
            *ret_compression = known[i].compression;
            return 0;
        }
    return KILN_E_UNSUPPORTED;
}

void kiln_base64_bare_put(struct kiln_buf *out, struct kiln_str bytes)
{
    kiln_buf_add_base64(out, bytes.ptr, bytes.len);
    while (!out->error && out->len && out->ptr[out->len - 1] == '=')
        out->len--;
}

/* ---- codes ---- */

static const struct {
    const char *word;
    int connect, http;
} codes[] = {
#define X(number, name, word, connect, http) [number] = {word, connect, http},
    KILN_RPC_CODE_MAP(X)
#undef X
};

const char *kiln_rpc_code_word(enum kiln_rpc_code code)
{
    return (size_t)code < KILN_ARRAY_LEN(codes) ? codes[code].word : "unknown";
}

int kiln_rpc_code_connect(enum kiln_rpc_code code)
{
    return (size_t)code < KILN_ARRAY_LEN(codes) ? codes[code].connect : 500;
}

int kiln_rpc_code_http(enum kiln_rpc_code code)
{
    return (size_t)code < KILN_ARRAY_LEN(codes) ? codes[code].http : 500;
}

enum kiln_rpc_code kiln_rpc_code_of_http(int http_status)
{
    switch (http_status) {
    case 200:
        return KILN_RPC_OK;
    case 400:
        return KILN_RPC_INVALID_ARGUMENT;
    case 401:
        return KILN_RPC_UNAUTHENTICATED;
    case 403:
    case 421:
        return KILN_RPC_PERMISSION_DENIED;
    case 404:
    case 405:
    case 415:
    case 501:
    case 505:
        return KILN_RPC_UNIMPLEMENTED;
    case 408:
        return KILN_RPC_DEADLINE_EXCEEDED;
    case 413:
    case 431:
        return KILN_RPC_RESOURCE_EXHAUSTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return KILN_RPC_UNAVAILABLE;
    case 500:
        return KILN_RPC_INTERNAL;
    default:
        return KILN_RPC_UNKNOWN;
    }
}

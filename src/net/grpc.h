/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc - the bytes that gRPC, gRPC-Web and google.rpc.Status are made of; no connections here.
 *
 * Server (rpc.c) and client (client.c) share it.
 *
 * Threads: no state.
 */
#ifndef KILN_NET_GRPC_H
#define KILN_NET_GRPC_H

#include "base/buf.h"
#include "base/err.h"
#include "net/rpc.h"

/* ---- frames ---- */

enum {
    KILN_GRPC_HEAD_BYTES = 5,
    KILN_GRPC_COMPRESSED = 0x01, /* flag: the message is compressed with grpc-encoding */
    KILN_GRPC_TRAILERS = 0x80,   /* flag, gRPC-Web: the payload is trailers */
};

struct kiln_grpc_frame {
    uint8_t flags;
    struct kiln_str payload;
};

/*
 * Cuts the next frame off *rest.  Returns 1; 0 at the end; KILN_E_LIMIT where the head announces
 * more than `max` bytes, KILN_E_TRUNCATED where they are not there, KILN_E_MALFORMED for flags
 * nobody defined.  *rest is untouched on failure.
 */
KILN_CHECK int kiln_grpc_frame_next(struct kiln_str *rest, size_t max,
                                    struct kiln_grpc_frame *ret_frame);
void kiln_grpc_frame_put(struct kiln_buf *out, uint8_t flags, struct kiln_str payload);

/* A text as the value of grpc-message, and back (what is no valid escape stays as it is). */
void kiln_grpc_text_put(struct kiln_buf *out, struct kiln_str text);
void kiln_grpc_text_get(struct kiln_buf *out, struct kiln_str text);

/* What a grpc-encoding names; KILN_E_UNSUPPORTED for what Kiln does not have. */
KILN_CHECK int kiln_grpc_encoding(struct kiln_str name, enum kiln_compression *ret_compression);

/* ---- codes ---- */

const char *kiln_rpc_code_word(enum kiln_rpc_code code); /* Connect's: "invalid_argument" */
int kiln_rpc_code_connect(enum kiln_rpc_code code);      /* HTTP status under Connect */
int kiln_rpc_code_http(enum kiln_rpc_code code);         /* HTTP status under OTLP/HTTP */
/* What an HTTP status means to a gRPC caller. */
enum kiln_rpc_code kiln_rpc_code_of_http(int http_status);

/* ---- google.rpc.Status ---- */

/* The message as protobuf, and as protobuf's JSON. */
void kiln_status_encode(const struct kiln_rpc_status *status, struct kiln_buf *out);
void kiln_status_format(const struct kiln_rpc_status *status, struct kiln_buf *out);

/*
 * Connect's JSON for the same: {"code":"invalid_argument","message":"...","details":[...]}, each
 * detail with its type and its bytes in base64 without padding.
 */
void kiln_status_format_connect(const struct kiln_rpc_status *status, struct kiln_buf *out);

struct kiln_status_info {
    uint64_t code;
    struct kiln_str message; /* borrowed */
    bool has_retry;          /* there is a RetryInfo */
    uint32_t retry_after_ms; /* what it says, rounded up */
};
/* Returns 0, KILN_E_TRUNCATED or KILN_E_MALFORMED. */
KILN_CHECK int kiln_status_decode(struct kiln_str bytes, struct kiln_status_info *ret_info);

/* Base64 without padding, as grpc-status-details-bin and Connect's details have it. */
void kiln_base64_bare_put(struct kiln_buf *out, struct kiln_str bytes);

#endif /* KILN_NET_GRPC_H */

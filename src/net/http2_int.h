/* SPDX-License-Identifier: Apache-2.0 */
/* http2_int - what the two halves of HTTP/2 share: http2_conn.c and http2_stream.c. */
#ifndef KILN_NET_HTTP2_INT_H
#define KILN_NET_HTTP2_INT_H

#include <nghttp2/nghttp2.h>

#include "net/server_int.h"

enum {
    KILN_HTTP2_CREDIT_MAX = 1000,
    KILN_HTTP2_CREDIT_ANSWER = 4, /* gRPC clients ping whenever they get something */
};

struct kiln_http2 {
    nghttp2_session *session;
    struct kiln_exchange *streams;
    uint32_t n_streams;
    struct kiln_buf gather;
    uint32_t n_gathered;
    size_t gathered;       /* bytes, as SETTINGS_MAX_HEADER_LIST_SIZE counts them */
    int32_t gather_stream; /* whose head is being gathered; 0: none */
    bool gather_failed;    /* no memory */
    uint64_t gather_ms;    /* since when */
    uint32_t credit;
    uint64_t credit_ms; /* when it was last topped up */
    bool goaway;
};

/* It has something to send when the turn ends. */
void kiln_http2_dirty(struct kiln_conn *conn);
/* Credit for the client. */
void kiln_http2_earn(struct kiln_http2 *h2, uint64_t more);

/* Streams. */
void kiln_http2_begin(struct kiln_conn *conn, int32_t stream, bool ended);
void kiln_http2_end_body(struct kiln_conn *conn, int32_t stream);
void kiln_http2_unlink(struct kiln_http2 *h2, struct kiln_exchange *x);
void kiln_http2_gather_clear(struct kiln_conn *conn);

/* Callbacks of nghttp2. */
int kiln_http2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user);
int kiln_http2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                         size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                         void *user);
int kiln_http2_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                       size_t len, void *user);

#endif /* KILN_NET_HTTP2_INT_H */

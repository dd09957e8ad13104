/* SPDX-License-Identifier: Apache-2.0 */
/* http2_int - what the parts of HTTP/2 share: http2_{conn,stream,keepalive}.c. */
#ifndef KILN_NET_HTTP2_INT_H
#define KILN_NET_HTTP2_INT_H

#include <nghttp2/nghttp2.h>

#include "net/server_int.h"

enum {
    KILN_HTTP2_CREDIT_MAX = 1000,
    KILN_HTTP2_CREDIT_ANSWER = 4, /* gRPC clients ping whenever they get something */
};

/* What http2_keepalive.c knows of a connection. */
struct kiln_http2_life {
    uint64_t old_ms;              /* when it is too old */
    uint64_t heard_ms;            /* when a byte last came */
    uint64_t asked_ms, pinged_ms; /* our last ping, and the client's */
    uint32_t strikes;             /* pings that came too soon */
    bool asked;                   /* nothing has come since our ping */
    bool pinged;                  /* the client has, once at least */
    bool answered;                /* a request, since the client's last ping */
};

struct kiln_http2 {
    nghttp2_session *session;
    struct kiln_http2_life life;
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
/* GOAWAY, once: what is under way is answered, nothing new is taken. */
void kiln_http2_end(struct kiln_conn *conn, uint32_t error, struct kiln_str why);
/* Credit for the client. */
void kiln_http2_earn(struct kiln_http2 *h2, uint64_t more);

/* How long it lives: it begins; bytes came; what passes when, after what is due has been done. */
void kiln_http2_live(struct kiln_conn *conn);
void kiln_http2_heard(struct kiln_conn *conn);
uint64_t kiln_http2_life_deadline(struct kiln_conn *conn, uint64_t now_ms);
/* When it has rested too long, where it rests. */
uint64_t kiln_http2_rest_deadline(const struct kiln_conn *conn);
/* A ping came.  False: the listener has no rules for them, or it is over; they cost credit. */
bool kiln_http2_may_ping(struct kiln_conn *conn);

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

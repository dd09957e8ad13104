/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2client - a client of HTTP/2 for tests: nghttp2 over a blocking socket, with or without TLS.
 */
#ifndef KILN_TESTS_SUPPORT_H2CLIENT_H
#define KILN_TESTS_SUPPORT_H2CLIENT_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#include "base/buf.h"

enum { H2_STREAMS = 640 };

struct h2_stream {
    int32_t id;
    int status;
    bool closed;
    uint32_t error; /* of RST_STREAM */
    struct kiln_buf body;
    char fields[1024]; /* "name: value\n" of headers and trailers */
    struct kiln_str upload;
    size_t uploaded;
    bool endless; /* the upload never ends */
};

struct h2_client {
    int fd;
    SSL *ssl;
    nghttp2_session *session;
    struct h2_stream streams[H2_STREAMS];
    uint32_t n_streams;
    bool goaway;
    uint32_t goaway_error;
    char goaway_text[32];
    uint32_t n_pongs, n_pings;
    bool ended;     /* the server closed the connection */
    bool no_window; /* takes not a byte of an answer's body */
};

/* `client` is zero, or has no window; the connection is the caller's. */
void h2_open(struct h2_client *client, int fd, SSL *ssl);
void h2_done(struct h2_client *client);

/* A request; `field` ("name", "value") may be NULL; with a `body` of NULL there is none. */
struct h2_stream *h2_ask(struct h2_client *client, const char *method, const char *path,
                         const char *const *field, const struct kiln_str *body);
/* Sends what is to be sent. */
void h2_flush(struct h2_client *client);
/* Sends, and reads once. */
void h2_step(struct h2_client *client);
/* Reads until the stream is closed, the server says GOAWAY, or ends the connection. */
void h2_wait(struct h2_client *client, const struct h2_stream *stream);
void h2_wait_goaway(struct h2_client *client);
void h2_wait_pong(struct h2_client *client);
void h2_wait_end(struct h2_client *client);

#endif /* KILN_TESTS_SUPPORT_H2CLIENT_H */

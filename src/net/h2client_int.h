/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2client_int - what the files of the HTTP/2 client share:
 *
 *   h2client.c       calls; the thread
 *   h2client_io.c    frames to and from the connection
 *   h2client_wire.c  the connection: names, TCP, Unix sockets, TLS
 *
 * Threads: all of the client is under its lock, but what is constant.
 */
#ifndef KILN_NET_H2CLIENT_INT_H
#define KILN_NET_H2CLIENT_INT_H

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/uio.h>

#include "net/client_int.h"
#include "net/grpc.h"
#include "net/h2client.h"

/* ---- the connection ---- */

struct kiln_h2address {
    char host[256]; /* or the path of a Unix socket */
    char port[8];
    char authority[300]; /* ":authority" */
    bool local, tls;
};
KILN_CHECK int kiln_h2address_parse(const char *server, struct kiln_h2address *ret,
                                    struct kiln_err *err);

struct kiln_h2wire {
    int fd; /* -1: none */
    SSL *ssl;
    const char *alert; /* what the server said of TLS when it ended the connection; or NULL */
};

/* NULL in *ret_ctx where there is no TLS. */
KILN_CHECK int kiln_h2wire_context(const struct kiln_h2client_opts *opts, SSL_CTX **ret_ctx,
                                   struct kiln_err *err);
/* Waits until `deadline_ns`, or until there is something to read from `cancel_fd`. */
KILN_CHECK int kiln_h2wire_open(const struct kiln_h2address *address, const char *server_name,
                                SSL_CTX *ctx, uint64_t deadline_ns, int cancel_fd,
                                struct kiln_h2wire *ret_wire, struct kiln_err *err);
void kiln_h2wire_close(struct kiln_h2wire *wire);
/* How many bytes; 0 at the end; -EAGAIN, or another negative errno. */
ssize_t kiln_h2wire_read(struct kiln_h2wire *wire, void *to, size_t size);
ssize_t kiln_h2wire_write(struct kiln_h2wire *wire, const struct iovec *pieces, int n);

/* ---- calls ---- */

struct kiln_h2call {
    struct kiln_h2call *next, **at; /* in one list: pending, active or ended */
    const struct kiln_call *request;
    void (*ended)(void *context, int code, const struct kiln_answer *answer,
                  const struct kiln_err *err);
    void *context;
    uint64_t deadline_ns;
    int32_t stream;
    bool again; /* it was refused unseen, once */
    uint8_t head[KILN_GRPC_HEAD_BYTES];
    size_t sent; /* of head and body */
    int code;
    struct kiln_err err;
    struct kiln_answer answer;
    struct kiln_collected collected;
};

enum { KILN_H2_PIECES = 64, KILN_H2_HEADS = 16 << 10 };

struct kiln_h2client {
    struct kiln_h2address address;
    struct kiln_h2client_opts opts;
    char certified[256]; /* opts.server_name, where that is the authority */
    char *server;
    SSL_CTX *ctx;
    uint32_t timeout_ms;
    size_t answer_max;
    char timeout_text[16]; /* grpc-timeout */
    int wake_fd, cancel_fd;
    pthread_t thread;

    pthread_mutex_t lock;
    bool started, end, cancelled;
    bool asleep, was_busy; /* of the thread */
    struct kiln_h2call *pending, *active, *ended;
    struct kiln_h2call **last_pending, **last_active, **last_ended;
    struct kiln_h2wire wire;
    nghttp2_session *session; /* NULL: not connected */
    bool draining;            /* the server begins no more calls on it */
    int broken;               /* why the connection is of no use; 0: it is */
    uint64_t received_ns;     /* when something came last */
    uint64_t opened_ns;
    uint64_t pinged_ns; /* and nothing came since; 0: not asked */

    /* What goes out: pieces that are being gathered, and what the socket did not take. */
    struct iovec pieces[KILN_H2_PIECES];
    int n_pieces;
    char heads[KILN_H2_HEADS];
    size_t heads_used;
    struct kiln_buf rest;
};

/* Under the lock. */
void kiln_h2_put(struct kiln_h2call *call, struct kiln_h2call ***last);
void kiln_h2_take(struct kiln_h2client *client, struct kiln_h2call *call);
void kiln_h2_postpone(struct kiln_h2client *client,
                      struct kiln_h2call *call); /* is pending again */
void kiln_h2_end(struct kiln_h2client *client, struct kiln_h2call *call, int code, const char *why);

/* ---- frames; under the lock ---- */

KILN_CHECK int kiln_h2_session_new(struct kiln_h2client *client);
/* 0, or a negative errno: the call cannot be made on this connection (-EADDRNOTAVAIL: nor can any
 * other). */
KILN_CHECK int kiln_h2_submit(struct kiln_h2client *client, struct kiln_h2call *call);
void kiln_h2_flush(struct kiln_h2client *client);
void kiln_h2_receive(struct kiln_h2client *client);

#endif /* KILN_NET_H2CLIENT_INT_H */

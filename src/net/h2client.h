/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2client - unary gRPC calls, many at once over one connection of HTTP/2 (nghttp2).
 *
 * Whoever starts a call writes it to the connection himself, as far as that takes it; a thread of
 * the client reads answers and does the rest: connecting (also with TLS), time-outs, what could not
 * be written at once.  A connection that the server is about to end (GOAWAY) is replaced by a new
 * one, and calls that it has not begun go over that.
 *
 * Threads: start from anywhere; calls end on any thread, perhaps before start returns.
 */
#ifndef KILN_NET_H2CLIENT_H
#define KILN_NET_H2CLIENT_H

#include "net/client.h"

struct kiln_h2client;

struct kiln_h2client_opts {
    const char *server; /* "http://127.0.0.1:4317", "https://...", "unix:/run/kiln/kiln.sock" */
    const char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's, none */
    const char *server_name; /* what the certificate is to say; NULL: the name in `server` */
    const char *authority;   /* whose name is asked for; NULL: the one in `server` */
    bool system_ca;          /* the system's authorities are good beside ca_file */
    bool insecure;           /* do not verify the server's certificate */
    enum kiln_tls_version min_version, max_version;
    uint32_t timeout_ms; /* of a call, connecting included; 0: 10,000 */
    size_t answer_max;   /* 0: 4 MiB; a larger answer is an error that is not retried */
    /* A server that was silent for so long is asked whether it is there, and left if it does not
     * answer in time; without a call under way only where `pings_idle`.  0: never asked. */
    uint32_t ping_after_ms, ping_timeout_ms;
    bool pings_idle;
};

/* The files, and what names them, outlive the client: each new connection reads them again. */
KILN_CHECK int kiln_h2client_new(const struct kiln_h2client_opts *opts,
                                 struct kiln_h2client **ret_client, struct kiln_err *err);
void kiln_h2client_free(struct kiln_h2client *client); /* no call is under way */
/* Every call that is under way, or is started from now on, ends with -ECANCELED. */
void kiln_h2client_cancel(struct kiln_h2client *client);

struct kiln_h2call;

/*
 * Makes a call; what `request` points to lives until it has ended.  `ended` is called once, with
 * what kiln_client_grpc() would have returned; the answer is gone after it.
 */
void kiln_h2client_start(struct kiln_h2client *client, const struct kiln_call *request,
                         void (*ended)(void *context, int code, const struct kiln_answer *answer,
                                       const struct kiln_err *err),
                         void *context);

#endif /* KILN_NET_H2CLIENT_H */

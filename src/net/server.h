/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - listens, speaks HTTP/1.1 and HTTP/2 on the same port, hands whole requests to handlers.
 *
 *   loops (threads)          workers (threads)              anybody
 *   accept, TLS, parse  ──▶  router: guard, handler  ──▶    kiln_request_reply()
 *        ▲                                                        │
 *        └──────────────────────── the answer ────────────────────┘
 *
 * A connection is HTTP/2 if TLS agreed on it (ALPN) or its first bytes are the preface; else
 * HTTP/1.1.  A request reaches its handler when its body is there, as it was received: the
 * handler uncompresses it, because a store may want to keep the body as it came.  The memory of
 * bodies is taken from a pool; where that is empty, or the workers' queue is full, the answer is
 * 503 with Retry-After, without a handler; or nobody is read from until there is room (`waits`).
 *
 * A handler answers once, at once or later, from any thread.  A request whose client went away is
 * answered into the void; who works for long looks at kiln_request_gone() now and then.
 *
 * Threads: routes, guards and listeners are set up before kiln_server_start() (routers that are
 * held back, before they are let in); after it, only reply, hold and stop, from anywhere.
 */
#ifndef KILN_NET_SERVER_H
#define KILN_NET_SERVER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/compress.h"
#include "base/err.h"
#include "base/http1.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/params.h"
#include "base/pool.h"
#include "core/tenant.h"
#include "net/sockets.h"

struct kiln_server;
struct kiln_router;

/* ---- a request and its answer ---- */

struct kiln_peer {
    char address[64]; /* "127.0.0.1:5555", "[::1]:5555", "unix" */
    bool local;       /* a Unix socket that is not for every user */
    bool tls;
    uid_t uid;         /* of a Unix socket; gives no rights unless `local` */
    pid_t pid;         /* 0 unless `local` */
    char subject[128]; /* common name of a verified client certificate; "" without one */
};

/* What a route demands of whoever calls it; a guard decides (see kiln_router_guard). */
enum kiln_access {
    KILN_ACCESS_NONE,
    KILN_ACCESS_READ,
    KILN_ACCESS_WRITE,
    KILN_ACCESS_CONTROL, /* to tell agents what to do */
    KILN_ACCESS_ADMIN,
    KILN_ACCESS_SELF, /* to read about the server itself, whose tenants do not matter */
};

struct kiln_request {
    struct kiln_str method;
    struct kiln_str path;  /* percent-decoded, without the query */
    struct kiln_str query; /* as it came, without the question mark */
    struct kiln_str rest;  /* what a route's trailing "*" matched */
    const char *note;      /* set by a handler: sent as the header Kiln-Note; NULL: none */
    const struct kiln_header *headers;
    uint32_t n_headers;
    struct kiln_str body;           /* as received, chunks joined */
    enum kiln_compression encoding; /* what Content-Encoding says of it */
    struct kiln_peer peer;
    int http_version;                    /* 1 or 2 */
    uint64_t received_ns;                /* Unix time of the last byte */
    char tenant[KILN_TENANTS_BYTES + 1]; /* filled by the guard; who reads may get "a|b" */
    void *context;                       /* of the route */
    /* Of pipeline/receivers/admission.h: its place among the requests that wait for memory. */
    struct kiln_turn {
        struct kiln_request *next;
        uint64_t since_ns;    /* monotonic time of its first wait; 0: it has not waited */
        uint64_t queued_ns;   /* and of its last */
        size_t memory, store; /* what the last attempt lacked */
        bool charged;         /* the gate has counted its body */
    } turn;
};

/* The value of the first header of this (lower case) name; KILN_STR_NONE without one. */
struct kiln_str kiln_request_header(const struct kiln_request *request, const char *name);

/*
 * The decoded value of a query parameter (the first of its name) in *ret, which is initialised and
 * appended to.  Returns 1, 0 where there is none, or KILN_E_MALFORMED, -ENOMEM, KILN_E_LIMIT.
 */
KILN_CHECK int kiln_request_param(const struct kiln_request *request, const char *name,
                                  struct kiln_buf *ret);

enum { KILN_REPLY_HEADERS = 8 };

struct kiln_reply {
    int status;
    const char *content_type; /* NULL: no body, no type */
    struct kiln_str body;     /* copied, and compressed where the client takes it and it pays */
    struct kiln_header headers[KILN_REPLY_HEADERS]; /* beside those every answer has */
    uint32_t n_headers;
    struct kiln_header trailers[KILN_REPLY_HEADERS]; /* gRPC's status */
    uint32_t n_trailers;
    bool as_is; /* never compress */
    bool close; /* and end the connection (HTTP/1.1) */
};

/*
 * Turns true when the client went away; good until the request is answered.  Of a connection of
 * HTTP/1.1 that is also when the client says that it will send no more, in the lane for long
 * requests: it cannot be told from having gone, and an answer that is made all the same is sent.
 */
const _Atomic bool *kiln_request_gone(const struct kiln_request *request);

/* From now on its socket is read, so that it is known when the client goes away (HTTP/1.1). */
void kiln_request_watch(struct kiln_request *request);
/*
 * Instead of an answer: hands the request to a thread of its lane again, which calls its handler,
 * or drops it where the client is gone.
 */
void kiln_request_again(struct kiln_request *request);

/* Answers; the request is gone afterwards. */
void kiln_request_reply(struct kiln_request *request, const struct kiln_reply *reply);

/* Shorthand: a line of plain text. */
void kiln_request_reply_text(struct kiln_request *request, int status, const char *fmt, ...)
    KILN_PRINTF(3, 4);

/* ---- routes ---- */

KILN_CHECK int kiln_router_new(struct kiln_router **ret_router);
void kiln_router_free(struct kiln_router *router);

/* Which threads a handler runs on; each lane has a queue of its own. */
enum kiln_lane {
    KILN_LANE_QUICK, /* the workers: never for long */
    KILN_LANE_LONG,  /* threads of their own: questions, administration, guards that take long */
    KILN_LANES
};

/*
 * `path` is matched whole; with "*" at its end, by what stands before it, the longest wins.
 * `body_max` bounds the body as received (0: the server's).  A path with no such method gets 405
 * with Allow, no path at all 404 (or the router's fallback).  HEAD is GET without a body.
 */
struct kiln_route {
    const char *method; /* "GET", "POST", ...; NULL: any */
    const char *path;
    enum kiln_access access;
    void (*handler)(struct kiln_request *request);
    /*
     * Asked on the loop when a request is there whose body is no larger than KILN_AT_ONCE_BYTES:
     * true where it is taken, and the handler not called.  No thread need wake up for it; but it
     * must neither wait nor work for long.  NULL: nobody is asked.
     */
    bool (*at_once)(struct kiln_request *request);
    void *context;
    void (*done)(void *context); /* called when the router is freed; NULL: nothing to do */
    size_t body_max;
    enum kiln_lane lane;
};
enum { KILN_AT_ONCE_BYTES = 256 << 10 };
KILN_CHECK int kiln_router_add(struct kiln_router *router, const struct kiln_route *route);
/*
 * What answers paths that no route has: gRPC wants UNIMPLEMENTED where HTTP wants 404.  It is
 * called as soon as the head is there, without asking the guard; the body is dropped.
 */
void kiln_router_fallback(struct kiln_router *router, void (*handler)(struct kiln_request *request),
                          void *context);

/*
 * Asked on the loop when the head of a request is there, before its body is read: it fills
 * request->tenant and returns 0, or fills `reply` (whose texts are constant or in the request) and
 * returns negative: the request is then refused with it.  It must not block: where it cannot tell
 * without work it returns KILN_GUARD_LATER, and `late` is asked the same when the body is there, on
 * a thread of KILN_LANE_LONG.
 */
enum { KILN_GUARD_LATER = 1 };
struct kiln_guard {
    int (*check)(void *context, struct kiln_request *request, enum kiln_access access,
                 struct kiln_reply *reply);
    void *context;
    int (*late)(void *context, struct kiln_request *request, enum kiln_access access,
                struct kiln_reply *reply); /* NULL: `check` always tells */
};
void kiln_router_guard(struct kiln_router *router, struct kiln_guard guard);

/*
 * Asked before an answer goes out that the server makes by itself (404, 405, 408, 413, 415, 503, a
 * guard's refusal), to put it into the caller's words: gRPC wants HTTP 200 and trailers.  It may
 * change all of `reply`; texts that are made on the way go to `scratch` (empty; its bytes move when
 * it grows, so take pointers into it last).  Called on a loop or a worker: it must not block.
 */
void kiln_router_translate(struct kiln_router *router,
                           void (*translate)(const struct kiln_request *request,
                                             struct kiln_reply *reply, struct kiln_buf *scratch));

/*
 * Asked before any answer goes out, to add headers to it.  What it adds lives as long as the
 * request, or the router.  Called on a loop, a worker, or wherever the answer is given.
 */
void kiln_router_dress(struct kiln_router *router,
                       void (*dress)(void *context, const struct kiln_request *request,
                                     struct kiln_reply *reply),
                       void *context);

/* ---- the server ---- */

struct kiln_server_opts {
    uint32_t loops;              /* 0: 1 */
    uint32_t workers;            /* 0: as many as processors */
    uint32_t long_workers;       /* of KILN_LANE_LONG; 0: 8 */
    uint32_t queue_max;          /* requests that wait for a worker of a lane; 0: 1,024 */
    uint32_t connections_max;    /* 0: 4,096 */
    size_t body_max;             /* as received; 0: 64 MiB */
    size_t header_max;           /* 0: 64 KiB */
    uint32_t header_timeout_ms;  /* head complete; 0: 10,000 */
    uint32_t body_timeout_ms;    /* without one more byte of the body; 0: 20,000 */
    uint32_t request_timeout_ms; /* whole body there; 0: 120,000 */
    uint32_t idle_timeout_ms;    /* between two requests; 0: 120,000 */
    struct kiln_pool *pool;      /* for bodies and answers; NULL: only the limits above */
    /* While less than an eighth of the pool is free, bodies are read one at a time, or not at all:
     * senders wait, by the windows of TCP and HTTP/2, where they would be refused. */
    bool waits;
    struct kiln_pool *long_pool;  /* for answers of KILN_LANE_LONG first; NULL: `pool` */
    struct kiln_metrics *metrics; /* NULL: not measured */
    struct kiln_log *log;         /* NULL: silent */
};

enum kiln_tls_version { KILN_TLS_ANY, KILN_TLS_1_2, KILN_TLS_1_3 };

struct kiln_tls_opts {
    const char *cert_file, *key_file;               /* PEM; NULL: no TLS */
    const char *client_ca_file;                     /* PEM; clients must then show a certificate */
    enum kiln_tls_version min_version, max_version; /* ANY: 1.2, and the newest there is */
    uint32_t reload_interval_ms; /* how often files are looked at for a change; 0: 10,000 */
};

/*
 * How long a connection of HTTP/2 lives, and what its client may do to keep it.  Zero is what the
 * server does by itself: it rests for idle_timeout_ms, may be as old as it likes, is never pinged,
 * and may ping until it is a flood.  UINT64_MAX is never.
 */
struct kiln_keepalive {
    uint64_t idle_ms;         /* without a request */
    uint64_t age_ms;          /* from its first byte, give or take a tenth */
    uint64_t grace_ms;        /* then, for what is under way; 0: as long as it takes */
    uint64_t ping_after_ms;   /* of silence, to see whether the client is there */
    uint64_t ping_timeout_ms; /* of silence from then on */
    uint64_t ping_min_ms;     /* between two pings of a client, which may be sooner only twice */
    bool ping_resting;        /* and also while it has no request */
};

struct kiln_listen_opts {
    const char *address; /* "127.0.0.1:4040", "[::]:4040", ":0", "unix:/run/kiln/kiln.sock" */
    struct kiln_router *router; /* borrowed */
    struct kiln_tls_opts tls;
    struct kiln_keepalive keepalive;
    uint32_t unix_mode;           /* of the socket file; 0: 0660 */
    bool for_every_user;          /* Unix socket, mode 0666; its peers count as those of a port */
    struct kiln_sockets *sockets; /* where the socket stays beyond this server; NULL: it ends too */
    const char *name;             /* of this listener there */
};

/* `opts` NULL: the defaults. */
KILN_CHECK int kiln_server_new(const struct kiln_server_opts *opts,
                               struct kiln_server **ret_server);

/* Binds; *ret_port (unless NULL) is the port, also where 0 was asked for.  The error names it. */
KILN_CHECK int kiln_server_listen(struct kiln_server *server, const struct kiln_listen_opts *opts,
                                  uint16_t *ret_port, struct kiln_err *err);

KILN_CHECK int kiln_server_start(struct kiln_server *server, struct kiln_err *err);

/*
 * While there is a router `instead` of those that listeners have, it gets every request that comes:
 * a server can say that it is not ready before it has all its routes.  NULL: theirs again.
 */
void kiln_server_hold(struct kiln_server *server, struct kiln_router *instead);

/*
 * Stops accepting, lets what is under way finish for at most `timeout_ms` (HTTP/2 gets GOAWAY,
 * HTTP/1.1 Connection: close), then ends every connection and every thread.  Blocks.
 */
void kiln_server_stop(struct kiln_server *server, uint32_t timeout_ms);

/*
 * After stop, or before start.  A request that somebody still holds may be answered even later, as
 * long as the pool lives.
 */
void kiln_server_free(struct kiln_server *server);

#endif /* KILN_NET_SERVER_H */

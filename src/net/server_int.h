/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_int - the insides of a server, shared by its source files.
 *
 *   server.c    set-up, start, stop            loop.c     a loop's thread, answers that come back
 *   listen.c    addresses, accepting           worker.c   queues and the threads that serve them
 *   conn.c      bytes in and out, deadlines    http1_conn.c, http2_*.c      the protocols
 *   tls.c       certificates, handshakes       exchange.c, response.c       a request, its answer
 *
 * Who owns what: a connection belongs to its loop and is touched by no other thread.  An exchange
 * (a request and its answer) belongs to its connection until its body is there, then to whoever
 * handles it, and to the loop again once it is answered.  Where the connection ends first it lets
 * go of the exchange (conn = NULL), and the answer is thrown away when it comes.
 *
 * Nothing of libevent is called across threads: an eventfd wakes a loop.
 */
#ifndef KILN_NET_SERVER_INT_H
#define KILN_NET_SERVER_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/ssl.h>

#include "base/http1.h"
#include "net/router_int.h"
#include "net/server.h"

#define KILN_NEVER UINT64_MAX

enum { KILN_LOOP_SCRATCH = 64 << 10 }; /* bytes of a read, or of a write of HTTP/2 */

struct kiln_conn;
struct kiln_loop;
struct kiln_http2;

/* ---- an answer, ready to be sent by either protocol ---- */

struct kiln_response {
    int status;
    bool close;
    uint32_t n_headers, n_trailers;
    struct kiln_str body;
    char *packed;           /* a compressed body; NULL: the body is in this block */
    struct kiln_pool *pool; /* that `charged` is of; NULL: the server's */
    size_t charged;
    struct kiln_header fields[]; /* headers, then trailers, then their bytes */
};

/* ---- an exchange ---- */

enum kiln_stage {
    KILN_STAGE_READING,  /* the body comes */
    KILN_STAGE_HANDLED,  /* a worker, or whoever the handler gave it to, has it */
    KILN_STAGE_ANSWERED, /* the loop has it */
};

struct kiln_exchange {
    struct kiln_request request; /* first: what handlers see */
    struct kiln_server *server;
    struct kiln_loop *loop;
    struct kiln_conn *conn; /* the loop's; NULL once the client is gone */
    struct kiln_router *router;
    const struct kiln_route *route;
    struct kiln_exchange *queued;      /* behind it in a queue */
    struct kiln_exchange *next, *prev; /* on its connection (HTTP/2) */
    struct kiln_response *answer;      /* NULL although answered: there was no memory */
    struct kiln_buf body;
    size_t body_max;
    uint64_t body_expected; /* by Content-Length, or gRPC; 0: unknown */
    size_t charged;         /* of this block; the body's capacity comes on top */
    uint64_t started_ms, progress_ms;
    enum kiln_stage stage;
    int32_t stream; /* HTTP/2 */
    bool head_only; /* HEAD */
    bool discard;   /* answered before its body was there: what comes of it is dropped */
    bool body_done;
    bool held_back;       /* its body was not read, for want of memory, since the last piece */
    bool unsure;          /* the guard wants to be asked again, on a thread */
    bool said_all;        /* HTTP/2: the answer is out, although the body is not in */
    uint64_t dropped;     /* HTTP/2: bytes of the body since it was refused */
    size_t sent;          /* bytes of the answer's body given to HTTP/2 */
    _Atomic bool gone;    /* the client disconnected or cancelled the request */
    _Atomic bool watched; /* as those of the lane for long requests are */
};

/*
 * Bytes taken from the server's pool.  Where it is empty, what is vital (connections, heads, short
 * answers) gets them from a spare part beside it, so that there is room to say that there is none:
 * a refusal, a look at the metrics.  The spare part is small: what hostile clients make us keep is
 * bounded by the pool, however small its pieces are.
 */
enum { KILN_NET_SMALL = 4096, KILN_NET_SPARE = 4 << 20 };
/* Bytes a millisecond: who reads an answer more slowly has request_timeout_ms for it. */
enum { KILN_NET_SLOWEST = 16 };

KILN_CHECK int kiln_net_grow(struct kiln_server *server, struct kiln_buf *buf, size_t more);
KILN_CHECK int kiln_net_add(struct kiln_server *server, struct kiln_buf *buf, struct kiln_str data);
void kiln_net_done(struct kiln_server *server, struct kiln_buf *buf);
/* Where senders wait: whether there is so little left that nothing more should be read. */
bool kiln_net_is_short(struct kiln_server *server);
/* Where it is short: whether there is room for the next piece of a body that has begun; or for the
 * head of a request, which may be a question that needs no more than that. */
bool kiln_net_has_room(struct kiln_server *server, bool has_begun);
KILN_CHECK int kiln_net_take(struct kiln_server *server, size_t bytes, bool vital);
void kiln_net_give(struct kiln_server *server, size_t bytes);

/* A copy of the head; 0, -ENOMEM, KILN_E_LIMIT (the pool's) or KILN_E_MALFORMED (the target's). */
KILN_CHECK int kiln_exchange_new(struct kiln_conn *conn, const struct kiln_http_head *head,
                                 struct kiln_exchange **ret_x);
void kiln_exchange_free(struct kiln_exchange *x);

/*
 * Finds the route, asks the guard, looks at what the head says about the body.  True: go on and
 * read it; false: the exchange is answered (kiln_exchange_refuse), or, where `*ret_early`, it is
 * for a fallback that wants no body.
 */
bool kiln_exchange_admit(struct kiln_exchange *x, const struct kiln_http_head *head,
                         bool *ret_early);
/* More of the body; false: refused. */
bool kiln_exchange_body(struct kiln_exchange *x, struct kiln_str piece);
/* The body is there: to the workers.  False: refused. */
bool kiln_exchange_ready(struct kiln_exchange *x);

/* Answers for the server itself, on the loop, translated where the router says how. */
void kiln_exchange_refuse(struct kiln_exchange *x, const struct kiln_reply *reply);
/* What to answer then; the caller posts it, from any thread. */
struct kiln_response *kiln_exchange_refusal(struct kiln_exchange *x,
                                            const struct kiln_reply *reply);
/* Asks the guard, or its `late`.  True: let in; false: refused, with *ret_reply. */
bool kiln_exchange_ask(struct kiln_exchange *x, bool late, struct kiln_reply *ret_reply);
void kiln_exchange_refuse_text(struct kiln_exchange *x, int status, const char *reason,
                               const char *text);
/* The body took too long, which may be because we did not read it. */
void kiln_exchange_refuse_late(struct kiln_exchange *x);

/* NULL without memory.  `x` may be NULL: an answer to what is not a request. */
struct kiln_response *kiln_response_new(struct kiln_server *server, const struct kiln_exchange *x,
                                        const struct kiln_reply *reply);
void kiln_response_free(struct kiln_server *server, struct kiln_response *answer);
const char *kiln_http_reason(int status);

/* ---- connections ---- */

enum kiln_protocol {
    KILN_CONN_HANDSHAKE,
    KILN_CONN_FIRST, /* the first bytes will tell */
    KILN_CONN_HTTP1,
    KILN_CONN_HTTP2,
    KILN_CONN_LINGER, /* all is said; what still comes is read and dropped until the client ends */
};

struct kiln_http1 {
    struct kiln_http1_scan scan;
    struct kiln_http1_body body;
    struct kiln_exchange *x;      /* from its head until it is read and answered */
    struct kiln_response *answer; /* being sent */
    bool keep_alive;
    bool say_keep;    /* to HTTP/1.0, which takes the opposite for granted */
    bool expects;     /* 100-continue has not been said */
    uint64_t head_ms; /* when the first byte of an unfinished head came; 0: none is there */
};

struct kiln_conn {
    struct kiln_loop *loop;
    struct kiln_listener *listener;
    struct kiln_conn *next, *prev; /* of the loop */
    struct kiln_conn *next_dirty;
    int fd;
    SSL *ssl;
    enum kiln_protocol protocol;
    bool paused;  /* does not read until it has answered or sent */
    bool waiting; /* for the socket to take bytes */
    bool last;    /* ends after what is under way */
    bool linger;  /* and then waits for the client to end */
    bool dirty;   /* on the loop's list of connections that have something to send */
    bool broken;  /* TLS failed: not another word */
    bool dead;    /* freed at the end of this turn */
    struct event on_read, on_write, on_timer, on_relief;
    struct kiln_buf in; /* bytes that are no whole head yet, or come before it is their turn */
    size_t in_off;
    struct kiln_buf out; /* bytes the socket did not take */
    size_t out_off;
    struct kiln_str out_body; /* and what follows them, in an answer */
    uint64_t armed_ms;        /* when the timer fires */
    uint64_t idle_ms;         /* since when nothing is under way */
    uint64_t progress_ms;     /* when the socket last took bytes */
    uint64_t dropped;         /* bytes, while lingering */
    size_t charged;           /* of the pool, for the connection itself */
    uint64_t waits_ms;        /* since when `waiting` */
    uint64_t waited;          /* bytes that the socket took since */
    struct kiln_http1 h1;
    struct kiln_http2 *h2;
    struct kiln_peer peer;
};

/* Takes over a connected socket. */
void kiln_conn_open(struct kiln_loop *loop, struct kiln_listener *listener, int fd,
                    const struct kiln_peer *peer);
/* Ends the connection of this loop that has rested longest; false: none rests. */
bool kiln_conn_evict(struct kiln_loop *loop);
/* Ends it now (it is freed when the turn ends); after what is under way; by its own deadline. */
void kiln_conn_kill(struct kiln_conn *conn);
void kiln_conn_linger(struct kiln_conn *conn);
void kiln_conn_drain(struct kiln_conn *conn);
/* Sends; what the socket does not take is kept, `body` by reference.  False: it is dead. */
bool kiln_conn_write(struct kiln_conn *conn, struct kiln_str head, struct kiln_str body);
bool kiln_conn_sent_all(const struct kiln_conn *conn);
/* The timer fires at `at_ms` or before. */
void kiln_conn_arm(struct kiln_conn *conn, uint64_t at_ms);
void kiln_conn_pause(struct kiln_conn *conn);
void kiln_conn_resume(struct kiln_conn *conn);
/* Goes on with bytes that were kept until it is their turn. */
void kiln_conn_continue(struct kiln_conn *conn);
/* Lets go of an exchange whose client is gone: frees it, or leaves that to its answer. */
void kiln_exchange_abandon(struct kiln_exchange *x);
/* What a timer is for: a protocol's next deadline, after it acted on those that have passed. */
uint64_t kiln_http1_deadline(struct kiln_conn *conn, uint64_t now_ms);
uint64_t kiln_http2_deadline(struct kiln_conn *conn, uint64_t now_ms);

/* HTTP/1.1: goes on with whatever can be done; takes what it can from the front of *in. */
void kiln_http1_run(struct kiln_conn *conn, struct kiln_str *in);
void kiln_http1_answer(struct kiln_conn *conn, struct kiln_exchange *x);
void kiln_http1_drain(struct kiln_conn *conn);
/* The connection ends: exchanges that somebody handles are let go of, others freed. */
void kiln_http1_done(struct kiln_conn *conn);

KILN_CHECK int kiln_http2_open(struct kiln_conn *conn);
void kiln_http2_input(struct kiln_conn *conn, struct kiln_str in);
void kiln_http2_answer(struct kiln_conn *conn, struct kiln_exchange *x);
void kiln_http2_pump(struct kiln_conn *conn); /* sends what it has to say */
void kiln_http2_drain(struct kiln_conn *conn);
void kiln_http2_let_go(struct kiln_conn *conn); /* of its exchanges; the rest when it is done */
void kiln_http2_done(struct kiln_conn *conn);
bool kiln_http2_is_reading(const struct kiln_conn *conn); /* a request has come in part */
bool kiln_http2_rests(const struct kiln_conn *conn);      /* there is no stream */

/* ---- listeners ---- */

struct kiln_tls;

struct kiln_listener {
    struct kiln_server *server;
    struct kiln_listener *next;
    struct kiln_loop *loop; /* that accepts */
    struct kiln_router *router;
    struct kiln_tls *tls; /* NULL: none */
    struct kiln_keepalive keepalive;
    int fd;
    char *unix_path; /* removed when the listener is closed */
    bool for_every_user;
    struct event on_accept, on_retry;
    _Atomic uint64_t complained; /* when the log last heard that it cannot accept */
};

void kiln_listener_open(struct kiln_listener *listener, struct kiln_loop *loop);
void kiln_listener_close(struct kiln_listener *listener);
void kiln_listener_free(struct kiln_listener *listener);

KILN_CHECK int kiln_tls_new(const struct kiln_tls_opts *opts, struct kiln_log *log,
                            struct kiln_tls **ret_tls, struct kiln_err *err);
void kiln_tls_free(struct kiln_tls *tls);
/* Looks at the files again, now and then, on this loop. */
void kiln_tls_watch(struct kiln_tls *tls, struct event_base *base);
void kiln_tls_unwatch(struct kiln_tls *tls);
SSL *kiln_tls_accept(struct kiln_tls *tls, int fd);
/* After the handshake: whether it is HTTP/2; and who it is. */
bool kiln_tls_is_http2(SSL *ssl);
void kiln_tls_subject(SSL *ssl, char *out, size_t size);

/* ---- loops ---- */

/* A socket on its way to the loop that shall have it. */
struct kiln_arrival {
    struct kiln_arrival *next;
    struct kiln_listener *listener;
    int fd;
    struct kiln_peer peer;
};

struct kiln_loop {
    struct kiln_server *server;
    struct event_base *base;
    struct event on_wake;
    int wake_fd;
    pthread_t thread;
    bool started;
    struct kiln_conn *conns;
    struct kiln_conn *graveyard;
    struct kiln_conn *dirty;
    struct kiln_conn *favoured; /* that is read from although there is little room; NULL: none */
    uint64_t favoured_ms, favoured_bytes; /* since when, and what it sent since */
    char *scratch;                        /* KILN_LOOP_SCRATCH bytes: what was read */
    struct kiln_buf written;              /* what is about to be written */
    uint64_t now_ms;                      /* at the start of the turn */
    bool draining;
    bool posted_here;     /* answers were, by the loop itself: they are taken when the turn ends */
    pthread_mutex_t lock; /* for what follows */
    struct kiln_exchange *answered, **answered_end;
    struct kiln_arrival *arrived;
    bool awake; /* somebody wrote to wake_fd and the loop has not looked yet */
    bool closed;
    bool drain, stop; /* asked for */
};

KILN_CHECK int kiln_loop_init(struct kiln_loop *loop, struct kiln_server *server);
void kiln_loop_done(struct kiln_loop *loop);
void kiln_loop_run(struct kiln_loop *loop);
/* From any thread. */
void kiln_loop_post_answer(struct kiln_loop *loop, struct kiln_exchange *x);
bool kiln_loop_post_arrival(struct kiln_loop *loop, struct kiln_arrival *arrival);
void kiln_loop_ask(struct kiln_loop *loop, bool stop);
/* On the loop: every callback of libevent starts and ends with these. */
void kiln_loop_begin(struct kiln_loop *loop);
void kiln_loop_end(struct kiln_loop *loop);
void kiln_loop_close_all(struct kiln_loop *loop);

/* ---- workers ---- */

struct kiln_queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct kiln_exchange *first, **end;
    uint32_t n, max, n_waiting;
    bool stopped;
};

void kiln_queue_init(struct kiln_queue *queue, uint32_t max);
void kiln_queue_done(struct kiln_queue *queue);
bool kiln_queue_push(struct kiln_queue *queue, struct kiln_exchange *x);
/* Waits; NULL when the queue was stopped. */
struct kiln_exchange *kiln_queue_pop(struct kiln_queue *queue);
void kiln_queue_stop(struct kiln_queue *queue);
void kiln_exchange_handle(struct kiln_exchange *x);

/* The queue of a lane, and the threads that serve it. */
struct kiln_crew {
    struct kiln_queue queue;
    pthread_t *threads;
    uint32_t n_threads;         /* that run */
    struct kiln_metric *busy;   /* requests with a handler's thread */
    struct kiln_metric *queued; /* requests that wait for one */
};

void kiln_crew_init(struct kiln_crew *crew, enum kiln_lane lane,
                    const struct kiln_server_opts *opts);
KILN_CHECK int kiln_crew_start(struct kiln_crew *crew, const char *name, uint32_t n);
/* Ends its threads after what they handle; the queue has been stopped. */
void kiln_crew_join(struct kiln_crew *crew);
void kiln_crew_done(struct kiln_crew *crew);
/* False: too many wait. */
bool kiln_crew_give(struct kiln_crew *crew, struct kiln_exchange *x);

/* ---- the server ---- */

struct kiln_net_metrics {
    struct kiln_metric *requests[5]; /* 1xx to 5xx */
    struct kiln_metric *connections, *connections_total;
    struct kiln_metric *bytes_in, *bytes_out;
    struct kiln_metric *seconds;
};

struct kiln_server {
    struct kiln_server_opts opts;
    struct kiln_net_metrics metrics;
    struct kiln_loop *loops;
    struct kiln_listener *listeners;
    struct kiln_crew crews[KILN_LANES];
    uint32_t next_loop;                    /* the first loop's: who gets the next connection */
    _Atomic(struct kiln_router *) instead; /* of the listeners'; NULL: none */
    bool started, stopped;
    _Atomic uint32_t n_conns;
    _Atomic size_t spare_taken; /* of KILN_NET_SPARE */
    _Atomic uint32_t refs;      /* the owner's, and one for each exchange */
    pthread_mutex_t lock;
    pthread_cond_t drained;
};

void kiln_server_unref(struct kiln_server *server);
void kiln_server_conn_gone(struct kiln_server *server);
void kiln_server_answered(struct kiln_server *server, int status);
void kiln_server_refused(struct kiln_server *server, const char *reason);

#endif /* KILN_NET_SERVER_INT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that rests holds no buffers: bytes are read into the loop's, and only what is left
 * over when the protocol has taken its part is kept.  Answers are written at once; only what the
 * socket does not take waits for it.
 *
 * Deadlines are lazy: the timer is set for the earliest that can matter, and when it fires the
 * protocol is asked what the deadline really is by now.  A request that comes and goes in one
 * piece touches no timer.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/server_int.h"

#define READS_A_TURN 16 /* then other connections have theirs */
#define RELIEF_MS    5
#define CONNS_PER_MS 16u   /* so many that wait for room cost little of the loop's time */
#define FAVOUR_MS    250u  /* for so long a sender is read whatever comes, */
#define FAVOUR_RATE  64u   /* then while it sends so many bytes a millisecond */
#define HEAD_BYTES   4096u /* of a request, where there is little room */
#define LINGER_MS    2000u
#define LINGER_BYTES (8u << 20)
#define WATCHED_MAX  (64u << 10) /* of what follows a long request, kept while it is handled */
#define TLS_RECORD   16384u
#define TLS_BYTES    (40u << 10) /* what OpenSSL needs for a connection: its state, two records */
#define PREFACE      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* ---- bytes ---- */

/* What a call on the TLS stream came to: bytes, 0 would block, -1 failed, -2 the end. */
static ssize_t tls_result(struct kiln_conn *conn, int n)
{
    int error;

    if (n > 0)
        return n;
    error = SSL_get_error(conn->ssl, n);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return 0;
    if (error == SSL_ERROR_ZERO_RETURN)
        return -2;
    conn->broken = true;
    ERR_clear_error();
    return -1;
}

static ssize_t receive(struct kiln_conn *conn, char *out, size_t size)
{
    ssize_t n;

    if (conn->ssl) {
        ERR_clear_error();
        return tls_result(conn, SSL_read(conn->ssl, out, (int)size));
    }
    do
        n = recv(conn->fd, out, size, 0);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return -2;
    return n > 0 ? n : errno == EAGAIN ? 0 : -1;
}

/*
 * OpenSSL wants a write that blocked to be repeated with the same bytes: pieces are made the same
 * way from the same rest each time.
 */
static ssize_t send_tls(struct kiln_conn *conn, struct kiln_str head, struct kiln_str body)
{
    char joined[TLS_RECORD];
    size_t total = 0;

    if (head.len && body.len && head.len + body.len <= sizeof(joined)) {
        memcpy(joined, head.ptr, head.len);
        memcpy(joined + head.len, body.ptr, body.len);
        head = (struct kiln_str){joined, head.len + body.len};
        body = KILN_STR_NONE;
    }
    while (head.len || body.len) {
        struct kiln_str *from = head.len ? &head : &body;
        size_t piece = from->len < TLS_RECORD ? from->len : TLS_RECORD;
        ssize_t n;

        ERR_clear_error();
        n = tls_result(conn, SSL_write(conn->ssl, from->ptr, (int)piece));
        if (n <= 0)
            return n == 0 ? (ssize_t)total : -1;
        total += (size_t)n;
        from->ptr += n;
        from->len -= (size_t)n;
    }
    return (ssize_t)total;
}

static ssize_t send_plain(struct kiln_conn *conn, struct kiln_str head, struct kiln_str body)
{
    struct iovec iov[2] = {{(void *)head.ptr, head.len}, {(void *)body.ptr, body.len}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = body.len ? 2 : 1};
    ssize_t n;

    do
        n = sendmsg(conn->fd, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n >= 0 ? n : errno == EAGAIN ? 0 : -1;
}

static ssize_t transmit(struct kiln_conn *conn, struct kiln_str head, struct kiln_str body)
{
    ssize_t n = conn->ssl ? send_tls(conn, head, body) : send_plain(conn, head, body);

    if (n > 0) {
        conn->progress_ms = conn->loop->now_ms;
        conn->waited += (uint64_t)n;
        kiln_metric_add(conn->loop->server->metrics.bytes_out, n);
    }
    return n;
}

static void skip(struct kiln_str *s, size_t *n)
{
    size_t some = *n < s->len ? *n : s->len;

    if (!some)
        return;
    s->ptr += some;
    s->len -= some;
    *n -= some;
}

bool kiln_conn_sent_all(const struct kiln_conn *conn)
{
    return conn->out.len == conn->out_off && conn->out_body.len == 0;
}

/* Of a client that does not read: without one more byte, and for all of it. */
static uint64_t write_deadline(const struct kiln_conn *conn, const struct kiln_server_opts *opts)
{
    uint64_t stall = conn->progress_ms + opts->body_timeout_ms;
    uint64_t whole = conn->waits_ms + opts->request_timeout_ms + conn->waited / KILN_NET_SLOWEST;

    return stall < whole ? stall : whole;
}

static void wait_for_socket(struct kiln_conn *conn)
{
    if (!conn->waiting) {
        conn->waiting = true;
        conn->waits_ms = conn->progress_ms = conn->loop->now_ms;
        conn->waited = 0;
        event_add(&conn->on_write, NULL);
    }
    kiln_conn_arm(conn, write_deadline(conn, &conn->loop->server->opts));
}

bool kiln_conn_write(struct kiln_conn *conn, struct kiln_str head, struct kiln_str body)
{
    ssize_t n = kiln_conn_sent_all(conn) ? transmit(conn, head, body) : 0;
    size_t sent = n > 0 ? (size_t)n : 0;

    skip(&head, &sent);
    skip(&body, &sent);
    if (n < 0 || (head.len && kiln_net_add(conn->loop->server, &conn->out, head) < 0)) {
        kiln_conn_kill(conn);
        return false;
    }
    conn->out_body = body;
    if (!kiln_conn_sent_all(conn))
        wait_for_socket(conn);
    return true;
}

/* True once everything is out. */
static bool flush(struct kiln_conn *conn)
{
    struct kiln_str head = kiln_buf_str(&conn->out);
    size_t sent = conn->out_off;
    ssize_t n;

    skip(&head, &sent);
    n = transmit(conn, head, conn->out_body);
    if (n < 0) {
        kiln_conn_kill(conn);
        return false;
    }
    sent = (size_t)n;
    skip(&head, &sent);
    skip(&conn->out_body, &sent);
    conn->out_off = conn->out.len - head.len;
    if (!kiln_conn_sent_all(conn))
        return false;
    kiln_net_done(conn->loop->server, &conn->out);
    conn->out_off = 0;
    conn->waiting = false;
    event_del(&conn->on_write);
    return true;
}

/* ---- what comes in ---- */

static void to_http1(struct kiln_conn *conn)
{
    conn->protocol = KILN_CONN_HTTP1;
}

static void to_http2(struct kiln_conn *conn)
{
    conn->protocol = KILN_CONN_HTTP2;
    if (kiln_http2_open(conn) < 0)
        kiln_conn_kill(conn);
}

/* The first bytes say which protocol it is; too few of them stay where they are. */
static bool know_protocol(struct kiln_conn *conn, struct kiln_str in)
{
    size_t n = in.len < sizeof(PREFACE) - 1 ? in.len : sizeof(PREFACE) - 1;

    if (conn->protocol != KILN_CONN_FIRST)
        return true;
    if (n && memcmp(in.ptr, PREFACE, n) != 0)
        to_http1(conn);
    else if (n == sizeof(PREFACE) - 1)
        to_http2(conn);
    else
        kiln_conn_arm(conn, conn->idle_ms + conn->loop->server->opts.header_timeout_ms);
    return conn->protocol != KILN_CONN_FIRST && !conn->dead;
}

static void digest(struct kiln_conn *conn, struct kiln_str *in)
{
    if (!know_protocol(conn, *in))
        return;
    if (conn->protocol == KILN_CONN_HTTP1) {
        kiln_http1_run(conn, in);
    } else if (conn->protocol == KILN_CONN_HTTP2) {
        kiln_http2_input(conn, *in);
        in->len = 0;
    }
}

void kiln_conn_continue(struct kiln_conn *conn)
{
    struct kiln_str in = KILN_STR_NONE;

    if (conn->in.len)
        in = (struct kiln_str){conn->in.ptr + conn->in_off, conn->in.len - conn->in_off};
    digest(conn, &in);
    if (conn->dead)
        return;
    if (in.len == 0 || conn->protocol == KILN_CONN_LINGER) {
        kiln_net_done(conn->loop->server, &conn->in);
        conn->in_off = 0;
    } else {
        conn->in_off = conn->in.len - in.len;
    }
}

static int keep(struct kiln_conn *conn, struct kiln_str in)
{
    if (conn->in_off) {
        conn->in.len -= conn->in_off;
        memmove(conn->in.ptr, conn->in.ptr + conn->in_off, conn->in.len);
        conn->in_off = 0;
    }
    return kiln_net_add(conn->loop->server, &conn->in, in);
}

static void take_input(struct kiln_conn *conn, struct kiln_str in)
{
    int r = 0;

    if (conn->in.len) {
        r = keep(conn, in);
        if (r == 0)
            kiln_conn_continue(conn);
    } else {
        digest(conn, &in);
        if (!conn->dead && in.len && conn->protocol != KILN_CONN_LINGER)
            r = keep(conn, in);
    }
    if (r < 0) {
        kiln_server_refused(conn->loop->server, "memory");
        kiln_conn_kill(conn);
    }
}

static bool wants_watching(const struct kiln_exchange *x)
{
    return x->route->lane == KILN_LANE_LONG ||
           atomic_load_explicit(&x->watched, memory_order_relaxed);
}

/* Whoever works for long wants to know when the client goes away: the socket is read meanwhile. */
static bool is_watched(const struct kiln_conn *conn)
{
    return conn->protocol == KILN_CONN_HTTP1 && !conn->h1.answer && conn->h1.x &&
           conn->h1.x->body_done && conn->h1.x->route && wants_watching(conn->h1.x) &&
           conn->in.len < WATCHED_MAX;
}

/* The client sends no more; it may still wait for an answer. */
static void take_end(struct kiln_conn *conn)
{
    if (conn->protocol == KILN_CONN_HTTP1 && conn->h1.x && conn->h1.x->body_done) {
        if (is_watched(conn))
            atomic_store_explicit(&conn->h1.x->gone, true, memory_order_relaxed);
        if (conn->in.len == 0)
            conn->last = true;
        kiln_conn_pause(conn);
    } else {
        kiln_conn_kill(conn);
    }
}

/* One exchange at a time: what follows waits, in the socket (or kept, a little of it). */
static bool is_busy(const struct kiln_conn *conn)
{
    return conn->protocol == KILN_CONN_HTTP1 &&
           (conn->h1.answer || (conn->h1.x && conn->h1.x->body_done)) && !is_watched(conn);
}

/* A request has come in part. */
static bool has_begun(const struct kiln_conn *conn)
{
    if (conn->protocol == KILN_CONN_HTTP1)
        return conn->h1.x && conn->h1.x->stage == KILN_STAGE_READING;
    return conn->protocol == KILN_CONN_HTTP2 && kiln_http2_is_reading(conn);
}

/* A sender that trickles must not hold back the others. */
static bool is_slow(const struct kiln_loop *loop)
{
    uint64_t ms = loop->now_ms - loop->favoured_ms;

    return ms >= FAVOUR_MS && loop->favoured_bytes < ms * FAVOUR_RATE;
}

static void favour(struct kiln_loop *loop, struct kiln_conn *conn)
{
    loop->favoured = conn;
    loop->favoured_ms = loop->now_ms;
    loop->favoured_bytes = 0;
}

/*
 * How many bytes may be read.  Where there is little room, one connection at a time is read from
 * until its requests are whole: parts of many, none of which can be handled, must not fill all of
 * it.  Of other connections only heads are read, for a request without a body needs no more.
 */
static size_t may_read(struct kiln_conn *conn)
{
    struct kiln_loop *loop = conn->loop;
    bool begun = has_begun(conn);

    if (conn->protocol == KILN_CONN_LINGER || !kiln_net_is_short(loop->server))
        return KILN_LOOP_SCRATCH;
    if (!kiln_net_has_room(loop->server, begun))
        return 0;
    if (!begun)
        return HEAD_BYTES;
    if (!loop->favoured || !has_begun(loop->favoured) || is_slow(loop))
        favour(loop, conn);
    return loop->favoured == conn ? KILN_LOOP_SCRATCH : 0;
}

/* There is no room for what would come: looks again in a moment, later where many do. */
static void wait_for_room(struct kiln_conn *conn)
{
    uint32_t ms = RELIEF_MS + atomic_load(&conn->loop->server->n_conns) / CONNS_PER_MS;
    struct timeval tv = {.tv_usec = ms * 1000 % 1000000, .tv_sec = ms / 1000};

    if (conn->protocol == KILN_CONN_HTTP1 && conn->h1.x)
        conn->h1.x->held_back = true;
    event_del(&conn->on_read);
    event_add(&conn->on_relief, &tv);
}

static void on_relief(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_conn *conn = arg;

    (void)fd, (void)what;
    if (conn->dead || conn->paused)
        return;
    event_add(&conn->on_read, NULL);
    if (conn->ssl && SSL_has_pending(conn->ssl))
        event_active(&conn->on_read, EV_READ, 0);
}

static void read_some(struct kiln_conn *conn)
{
    struct kiln_loop *loop = conn->loop;

    for (int i = 0; i < READS_A_TURN && !conn->dead && !conn->paused && !is_busy(conn); i++) {
        size_t most = may_read(conn);
        ssize_t n;

        if (most == 0) {
            wait_for_room(conn);
            return;
        }
        n = receive(conn, loop->scratch, most);
        if (n == 0)
            return;
        if (n == -2) {
            take_end(conn);
            return;
        }
        if (n < 0) {
            kiln_conn_kill(conn);
            return;
        }
        kiln_metric_add(loop->server->metrics.bytes_in, n);
        if (conn == loop->favoured)
            loop->favoured_bytes += (uint64_t)n;
        if (conn->protocol != KILN_CONN_LINGER)
            take_input(conn, (struct kiln_str){loop->scratch, (size_t)n});
        else if ((conn->dropped += (uint64_t)n) > LINGER_BYTES)
            kiln_conn_kill(conn);
        if (!conn->ssl && (size_t)n < most)
            return;
    }
    if (!conn->ssl || conn->dead || conn->paused || !SSL_has_pending(conn->ssl))
        return;
    if (is_busy(conn))
        kiln_conn_pause(conn); /* what OpenSSL holds is not seen in the socket */
    else
        event_active(&conn->on_read, EV_READ, 0);
}

static void shake_hands(struct kiln_conn *conn)
{
    ssize_t n;

    ERR_clear_error();
    n = tls_result(conn, SSL_do_handshake(conn->ssl));
    if (n < 0) { /* OpenSSL has said why, and the client may be talking already */
        kiln_server_refused(conn->loop->server, "handshake");
        SSL_free(conn->ssl);
        conn->ssl = NULL;
        kiln_conn_linger(conn);
        return;
    }
    if (n == 0) {
        if (SSL_want_write(conn->ssl) && !conn->waiting) {
            conn->waiting = true;
            event_add(&conn->on_write, NULL);
        }
        return;
    }
    kiln_tls_subject(conn->ssl, conn->peer.subject, sizeof(conn->peer.subject));
    conn->idle_ms = conn->loop->now_ms;
    conn->protocol = KILN_CONN_FIRST;
    if (kiln_tls_is_http2(conn->ssl))
        to_http2(conn);
    if (!conn->dead)
        read_some(conn);
}

/* ---- events ---- */

static void on_read(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_conn *conn = arg;
    struct kiln_loop *loop = conn->loop;

    (void)fd, (void)what;
    kiln_loop_begin(loop);
    if (conn->protocol == KILN_CONN_HANDSHAKE)
        shake_hands(conn);
    else if (is_busy(conn))
        kiln_conn_pause(conn);
    else
        read_some(conn);
    kiln_loop_end(loop);
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_conn *conn = arg;
    struct kiln_loop *loop = conn->loop;

    (void)fd, (void)what;
    kiln_loop_begin(loop);
    if (conn->protocol == KILN_CONN_HANDSHAKE) {
        conn->waiting = false;
        event_del(&conn->on_write);
        shake_hands(conn);
    } else if (flush(conn)) {
        if (conn->protocol == KILN_CONN_HTTP2)
            kiln_http2_pump(conn);
        else
            kiln_conn_continue(conn);
    }
    kiln_loop_end(loop);
}

static uint64_t deadline(struct kiln_conn *conn, uint64_t now_ms)
{
    const struct kiln_server_opts *opts = &conn->loop->server->opts;

    if (conn->protocol == KILN_CONN_HANDSHAKE)
        return conn->idle_ms + opts->header_timeout_ms;
    if (conn->waiting)
        return write_deadline(conn, opts);
    if (conn->protocol == KILN_CONN_LINGER)
        return conn->idle_ms + LINGER_MS;
    if (conn->protocol == KILN_CONN_FIRST)
        return conn->idle_ms + (conn->in.len ? opts->header_timeout_ms : opts->idle_timeout_ms);
    if (conn->protocol == KILN_CONN_HTTP1)
        return kiln_http1_deadline(conn, now_ms);
    return kiln_http2_deadline(conn, now_ms);
}

/* Who does not read what was sent for him would never see the end of it: the kernel drops it. */
static void give_up(struct kiln_conn *conn)
{
    struct linger drop = {.l_onoff = 1, .l_linger = 0};

    if (conn->waiting) {
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &drop, sizeof(drop));
        conn->broken = true;
        kiln_server_refused(conn->loop->server, "timeout");
    }
    kiln_conn_kill(conn);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_conn *conn = arg;
    struct kiln_loop *loop = conn->loop;
    uint64_t next;

    (void)fd, (void)what;
    kiln_loop_begin(loop);
    conn->armed_ms = KILN_NEVER;
    next = deadline(conn, loop->now_ms);
    if (conn->dead)
        ;
    else if (next <= loop->now_ms)
        give_up(conn);
    else if (next != KILN_NEVER)
        kiln_conn_arm(conn, next);
    kiln_loop_end(loop);
}

void kiln_conn_arm(struct kiln_conn *conn, uint64_t at_ms)
{
    uint64_t now = conn->loop->now_ms;
    uint64_t wait = at_ms > now ? at_ms - now : 0;
    struct timeval tv = {.tv_sec = (time_t)(wait / 1000), .tv_usec = (long)(wait % 1000) * 1000};

    if (conn->dead || conn->armed_ms <= at_ms)
        return;
    conn->armed_ms = at_ms;
    event_add(&conn->on_timer, &tv);
}

void kiln_conn_pause(struct kiln_conn *conn)
{
    if (conn->dead || conn->paused)
        return;
    conn->paused = true;
    event_del(&conn->on_read);
}

void kiln_conn_resume(struct kiln_conn *conn)
{
    if (conn->dead || !conn->paused)
        return;
    conn->paused = false;
    event_add(&conn->on_read, NULL);
    if (conn->ssl && SSL_has_pending(conn->ssl))
        event_active(&conn->on_read, EV_READ, 0);
}

/* ---- beginning and end ---- */

static void link_conn(struct kiln_conn *conn)
{
    conn->next = conn->loop->conns;
    if (conn->next)
        conn->next->prev = conn;
    conn->loop->conns = conn;
}

static void unlink_conn(struct kiln_conn *conn)
{
    if (conn->prev)
        conn->prev->next = conn->next;
    else
        conn->loop->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
}

/* Nothing of it is under way: no request, no answer. */
static bool rests(const struct kiln_conn *conn)
{
    if (conn->peer.local || conn->waiting)
        return false;
    if (conn->protocol == KILN_CONN_HTTP1)
        return !conn->h1.x && !conn->h1.answer;
    return conn->protocol != KILN_CONN_HTTP2 || kiln_http2_rests(conn);
}

bool kiln_conn_evict(struct kiln_loop *loop)
{
    struct kiln_conn *oldest = NULL;

    for (struct kiln_conn *conn = loop->conns; conn; conn = conn->next)
        if (rests(conn) && (!oldest || conn->idle_ms < oldest->idle_ms))
            oldest = conn;
    if (!oldest)
        return false;
    kiln_server_refused(loop->server, "evicted");
    kiln_conn_kill(oldest);
    return true;
}

/* A connection with its charge; where memory is short, another one that only rests goes. */
static struct kiln_conn *new_conn(struct kiln_loop *loop, const struct kiln_listener *listener)
{
    size_t bytes = sizeof(struct kiln_conn) + (listener->tls ? TLS_BYTES : 0);
    struct kiln_conn *conn;

    if (kiln_net_take(loop->server, bytes, true) < 0) {
        kiln_server_refused(loop->server, "memory");
        (void)kiln_conn_evict(loop);
        return NULL;
    }
    conn = kiln_calloc(1, sizeof(*conn));
    if (conn)
        conn->charged = bytes;
    else
        kiln_net_give(loop->server, bytes);
    return conn;
}

void kiln_conn_open(struct kiln_loop *loop, struct kiln_listener *listener, int fd,
                    const struct kiln_peer *peer)
{
    const struct kiln_server_opts *opts = &loop->server->opts;
    struct kiln_conn *conn = new_conn(loop, listener);
    SSL *ssl = conn && listener->tls ? kiln_tls_accept(listener->tls, fd) : NULL;
    int one = 1;

    if (!conn || (listener->tls && !ssl)) {
        close(fd);
        if (conn)
            kiln_net_give(loop->server, conn->charged);
        kiln_free(conn);
        kiln_server_conn_gone(loop->server);
        return;
    }
    conn->loop = loop;
    conn->listener = listener;
    conn->fd = fd;
    conn->ssl = ssl;
    conn->peer = *peer;
    conn->peer.tls = ssl != NULL;
    conn->protocol = ssl ? KILN_CONN_HANDSHAKE : KILN_CONN_FIRST;
    conn->armed_ms = KILN_NEVER;
    conn->idle_ms = loop->now_ms;
    kiln_buf_init(&conn->in, opts->header_max + 2 * KILN_LOOP_SCRATCH);
    kiln_buf_init(&conn->out, 4 * KILN_LOOP_SCRATCH);
    if (!peer->local)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    event_assign(&conn->on_read, loop->base, fd, EV_READ | EV_PERSIST, on_read, conn);
    event_assign(&conn->on_write, loop->base, fd, EV_WRITE | EV_PERSIST, on_write, conn);
    evtimer_assign(&conn->on_timer, loop->base, on_timer, conn);
    evtimer_assign(&conn->on_relief, loop->base, on_relief, conn);
    link_conn(conn);
    event_add(&conn->on_read, NULL);
    kiln_conn_arm(conn, loop->now_ms + (ssl ? opts->header_timeout_ms : opts->idle_timeout_ms));
}

void kiln_conn_kill(struct kiln_conn *conn)
{
    if (conn->dead)
        return;
    conn->dead = true;
    unlink_conn(conn);
    event_del(&conn->on_read);
    event_del(&conn->on_write);
    event_del(&conn->on_timer);
    event_del(&conn->on_relief);
    if (conn->loop->favoured == conn)
        conn->loop->favoured = NULL;
    kiln_http1_done(conn);
    kiln_http2_let_go(conn);
    conn->next = conn->loop->graveyard;
    conn->loop->graveyard = conn;
}

void kiln_conn_linger(struct kiln_conn *conn)
{
    kiln_http2_let_go(conn);
    if (conn->ssl)
        SSL_shutdown(conn->ssl);
    if (shutdown(conn->fd, SHUT_WR) < 0) {
        kiln_conn_kill(conn);
        return;
    }
    conn->protocol = KILN_CONN_LINGER;
    conn->idle_ms = conn->loop->now_ms;
    kiln_conn_resume(conn);
    kiln_conn_arm(conn, conn->idle_ms + LINGER_MS);
}

void kiln_conn_drain(struct kiln_conn *conn)
{
    conn->last = true;
    if (conn->protocol == KILN_CONN_HTTP1)
        kiln_http1_drain(conn);
    else if (conn->protocol == KILN_CONN_HTTP2)
        kiln_http2_drain(conn);
    else if (conn->protocol == KILN_CONN_FIRST && conn->in.len == 0)
        kiln_conn_kill(conn);
}

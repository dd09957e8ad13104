/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop sleeps in libevent and is woken by sockets, timers, and its eventfd, behind which answers
 * and new connections lie in lists.  The eventfd is edge-triggered, so that it need never be read;
 * and it is written to once for however many answers, until the loop has looked.  What is answered
 * by the loop itself is taken when its turn ends.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/server_int.h"

static _Thread_local const struct kiln_loop *running; /* the loop of this thread, if it has one */

void kiln_loop_begin(struct kiln_loop *loop)
{
    loop->now_ms = kiln_clock_mono_ns() / KILN_NS_PER_MS;
}

static void reap(struct kiln_loop *loop)
{
    struct kiln_conn *conn;

    while ((conn = loop->graveyard)) {
        loop->graveyard = conn->next;
        kiln_net_done(loop->server, &conn->in);
        kiln_net_done(loop->server, &conn->out);
        kiln_http2_done(conn);
        if (conn->ssl && !conn->broken && conn->protocol != KILN_CONN_HANDSHAKE)
            SSL_shutdown(conn->ssl);
        SSL_free(conn->ssl);
        close(conn->fd);
        kiln_net_give(loop->server, conn->charged);
        kiln_free(conn);
        kiln_server_conn_gone(loop->server);
    }
}

static void take_answers(struct kiln_exchange *x);

/* An answer may let the next request of its connection in, and that be answered as well. */
static void take_own_answers(struct kiln_loop *loop)
{
    while (loop->posted_here) {
        struct kiln_exchange *answered;

        loop->posted_here = false;
        pthread_mutex_lock(&loop->lock);
        answered = loop->answered;
        loop->answered = NULL;
        loop->answered_end = &loop->answered;
        pthread_mutex_unlock(&loop->lock);
        take_answers(answered);
    }
}

/* Answers of HTTP/2 that were given in the same turn leave in one write. */
void kiln_loop_end(struct kiln_loop *loop)
{
    struct kiln_conn *conn;

    take_own_answers(loop);
    while ((conn = loop->dirty)) {
        loop->dirty = conn->next_dirty;
        conn->dirty = false;
        if (!conn->dead)
            kiln_http2_pump(conn);
    }
    reap(loop);
}

void kiln_loop_close_all(struct kiln_loop *loop)
{
    while (loop->conns)
        kiln_conn_kill(loop->conns);
    kiln_loop_end(loop);
}

static void take_answers(struct kiln_exchange *x)
{
    struct kiln_exchange *next;

    for (; x; x = next) {
        next = x->queued;
        x->stage = KILN_STAGE_ANSWERED;
        if (!x->conn)
            kiln_exchange_free(x);
        else if (x->conn->protocol == KILN_CONN_HTTP2)
            kiln_http2_answer(x->conn, x);
        else
            kiln_http1_answer(x->conn, x);
    }
}

static void take_arrivals(struct kiln_loop *loop, struct kiln_arrival *arrival)
{
    struct kiln_arrival *next;

    for (; arrival; arrival = next) {
        next = arrival->next;
        kiln_conn_open(loop, arrival->listener, arrival->fd, &arrival->peer);
        kiln_free(arrival);
    }
}

static void start_drain(struct kiln_loop *loop)
{
    struct kiln_conn *conn, *next;

    loop->draining = true;
    if (loop == &loop->server->loops[0]) /* which accepts for all */
        for (struct kiln_listener *l = loop->server->listeners; l; l = l->next)
            kiln_listener_close(l);
    for (conn = loop->conns; conn; conn = next) {
        next = conn->next;
        kiln_conn_drain(conn);
    }
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_loop *loop = arg;
    struct kiln_exchange *answered;
    struct kiln_arrival *arrived;
    bool drain, stop;

    (void)fd, (void)what;
    kiln_loop_begin(loop);
    pthread_mutex_lock(&loop->lock);
    loop->awake = false;
    answered = loop->answered;
    loop->answered = NULL;
    loop->answered_end = &loop->answered;
    arrived = loop->arrived;
    loop->arrived = NULL;
    drain = loop->drain;
    stop = loop->stop;
    pthread_mutex_unlock(&loop->lock);
    take_answers(answered);
    take_arrivals(loop, arrived);
    if ((drain || stop) && !loop->draining)
        start_drain(loop);
    kiln_loop_end(loop);
    if (stop)
        event_base_loopbreak(loop->base);
}

int kiln_loop_init(struct kiln_loop *loop, struct kiln_server *server)
{
    struct event_config *config = event_config_new();

    *loop = (struct kiln_loop){.server = server, .wake_fd = -1};
    loop->answered_end = &loop->answered;
    pthread_mutex_init(&loop->lock, NULL);
    kiln_buf_init(&loop->written, KILN_LOOP_SCRATCH * 4);
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        loop->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    loop->scratch = kiln_malloc(KILN_LOOP_SCRATCH);
    if (!loop->base || loop->wake_fd < 0 || !loop->scratch) {
        kiln_loop_done(loop);
        return -ENOMEM;
    }
    event_assign(&loop->on_wake, loop->base, loop->wake_fd, EV_READ | EV_PERSIST | EV_ET, on_wake,
                 loop);
    event_add(&loop->on_wake, NULL);
    return 0;
}

void kiln_loop_done(struct kiln_loop *loop)
{
    if (loop->base && loop->wake_fd >= 0 && loop->scratch)
        event_del(&loop->on_wake);
    if (loop->base)
        event_base_free(loop->base);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    kiln_free(loop->scratch);
    kiln_buf_done(&loop->written);
    pthread_mutex_destroy(&loop->lock);
    *loop = (struct kiln_loop){.wake_fd = -1};
}

/*
 * Nobody sends from here on: what is answered now is thrown away by whoever answers, and so every
 * connection has let go of its exchanges before.
 */
static void shut(struct kiln_loop *loop)
{
    struct kiln_exchange *answered;
    struct kiln_arrival *arrived;

    kiln_loop_close_all(loop);
    pthread_mutex_lock(&loop->lock);
    loop->closed = true;
    answered = loop->answered;
    arrived = loop->arrived;
    loop->answered = NULL;
    loop->arrived = NULL;
    pthread_mutex_unlock(&loop->lock);
    take_answers(answered);
    take_arrivals(loop, arrived);
    kiln_loop_close_all(loop);
}

void kiln_loop_run(struct kiln_loop *loop)
{
    running = loop;
    event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    kiln_loop_begin(loop);
    shut(loop);
}

/* Under the lock: whether the loop must be woken. */
static bool must_wake(struct kiln_loop *loop)
{
    bool wake = !loop->awake;

    loop->awake = true;
    return wake;
}

static void wake_up(struct kiln_loop *loop)
{
    uint64_t one = 1;
    ssize_t n = write(loop->wake_fd, &one, sizeof(one));

    (void)n; /* it can only fail when the counter is full, and then the loop is awake */
}

void kiln_loop_post_answer(struct kiln_loop *loop, struct kiln_exchange *x)
{
    struct kiln_server *server = loop->server;
    bool closed, wake = false;

    atomic_fetch_add(&server->refs, 1); /* the exchange's own may go before we are out of here */
    pthread_mutex_lock(&loop->lock);
    closed = loop->closed;
    if (!closed) {
        x->queued = NULL;
        *loop->answered_end = x;
        loop->answered_end = &x->queued;
        if (running == loop)
            loop->posted_here = true;
        else
            wake = must_wake(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    if (closed)
        kiln_exchange_free(x);
    else if (wake)
        wake_up(loop);
    kiln_server_unref(server);
}

bool kiln_loop_post_arrival(struct kiln_loop *loop, struct kiln_arrival *arrival)
{
    bool closed, wake = false;

    pthread_mutex_lock(&loop->lock);
    closed = loop->closed;
    if (!closed) {
        arrival->next = loop->arrived;
        loop->arrived = arrival;
        wake = must_wake(loop);
    }
    pthread_mutex_unlock(&loop->lock);
    if (wake)
        wake_up(loop);
    return !closed;
}

void kiln_loop_ask(struct kiln_loop *loop, bool stop)
{
    pthread_mutex_lock(&loop->lock);
    loop->drain = true;
    loop->stop = loop->stop || stop;
    loop->awake = true;
    pthread_mutex_unlock(&loop->lock);
    wake_up(loop);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection does as much as it can without waiting, then says what it waits for.
 *
 * A client that goes while its window runs is noticed (POLLRDHUP) and its window dropped.  An
 * answer to a request that was not read to its end is followed by a while in which the rest is
 * thrown away: closing at once would make the kernel reset the connection, and the client lose the
 * answer.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "inproc/pprof/server_int.h"

#define REQUEST_NS     (10 * KILN_NS_PER_S)
#define IDLE_NS        (60 * KILN_NS_PER_S)
#define DRAIN_NS       (2 * KILN_NS_PER_S)
#define WRITE_NS       (30 * KILN_NS_PER_S)
#define WRITE_PER_S    (16u << 10)
#define HEAD_MAX       4096
#define REQUESTS_A_RUN 16

static void enter(struct kiln_in_conn *conn, enum kiln_in_conn_state state, uint64_t deadline_ns)
{
    conn->state = state;
    conn->since_ns = kiln_clock_mono_ns();
    conn->deadline_ns = deadline_ns;
}

static void enter_for(struct kiln_in_conn *conn, enum kiln_in_conn_state state, uint64_t ns)
{
    enter(conn, state, kiln_clock_mono_ns() + ns);
}

struct kiln_in_conn *kiln_in_conn_open(int fd)
{
    struct kiln_in_conn *conn = kiln_calloc(1, sizeof(*conn));

    if (conn && kiln_in_reader_init(&conn->reader) < 0) {
        kiln_free(conn);
        conn = NULL;
    }
    if (!conn) {
        close(fd);
        return NULL;
    }
    conn->fd = fd;
    kiln_buf_init(&conn->head, HEAD_MAX);
    kiln_in_reply_init(&conn->reply);
    enter_for(conn, KILN_IN_CONN_READ, REQUEST_NS);
    return conn;
}

void kiln_in_conn_free(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    if (conn->job.due_ns)
        kiln_in_job_drop(&server->pages, &conn->job);
    server->n_bodies -= conn->has_body;
    shutdown(conn->fd, SHUT_RDWR); /* a forked child may have it too */
    close(conn->fd);
    kiln_in_reader_done(&conn->reader);
    kiln_in_reply_done(&conn->reply);
    kiln_buf_done(&conn->head);
    kiln_free(conn);
}

short kiln_in_conn_wants(const struct kiln_in_conn *conn)
{
    switch (conn->state) {
    case KILN_IN_CONN_WAIT:
        return POLLRDHUP;
    case KILN_IN_CONN_WRITE:
        return POLLOUT;
    default:
        return POLLIN;
    }
}

/* ---- answering ---- */

static void answer(struct kiln_in_conn *conn)
{
    const struct kiln_buf *body = &conn->reply.body;

    if (body->error)
        kiln_in_reply_fail(&conn->reply, 503, "the answer is too large");
    kiln_buf_clear(&conn->head);
    kiln_in_reply_head(&conn->reply, !conn->close_after, &conn->head);
    conn->written = 0;
    if (conn->head.error || body->error)
        enter(conn, KILN_IN_CONN_OVER, 0);
    else
        enter_for(conn, KILN_IN_CONN_WRITE, WRITE_NS + body->len / WRITE_PER_S * KILN_NS_PER_S);
}

void kiln_in_conn_refuse(struct kiln_in_conn *conn, int status, const char *why)
{
    kiln_in_reply_fail(&conn->reply, status, "%s", why);
    conn->close_after = true;
    answer(conn);
}

static void begin_next(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    server->n_bodies -= conn->has_body;
    conn->has_body = false;
    conn->no_body = false;
    kiln_in_reply_done(&conn->reply);
    kiln_in_reply_init(&conn->reply);
}

static void end_answer(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    begin_next(server, conn);
    if (conn->close_after) {
        shutdown(conn->fd, SHUT_WR);
        enter_for(conn, KILN_IN_CONN_DRAIN, DRAIN_NS);
        return;
    }
    conn->idle = true;
    enter_for(conn, KILN_IN_CONN_READ, IDLE_NS);
}

/* What is left of head and body, in order. */
static struct kiln_str to_write(const struct kiln_in_conn *conn)
{
    size_t head = conn->head.len, body = conn->no_body ? 0 : conn->reply.body.len;

    if (conn->written < head)
        return (struct kiln_str){conn->head.ptr + conn->written, head - conn->written};
    if (conn->written == head + body)
        return KILN_STR_NONE;
    return (struct kiln_str){conn->reply.body.ptr + (conn->written - head),
                             head + body - conn->written};
}

static void run_write(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    struct kiln_str rest;

    while ((rest = to_write(conn)).len) {
        ssize_t n = send(conn->fd, rest.ptr, rest.len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno != EINTR) {
            enter(conn, KILN_IN_CONN_OVER, 0);
            return;
        }
        if (n > 0)
            conn->written += (size_t)n;
    }
    end_answer(server, conn);
}

/* ---- reading ---- */

static void say_continue(struct kiln_in_conn *conn)
{
    static const char word[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (send(conn->fd, word, sizeof(word) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof(word) - 1)
        enter(conn, KILN_IN_CONN_OVER, 0);
}

/* The head is there: 0 where the body may come. */
static int admit(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    const struct kiln_in_request *request = &conn->reader.request;

    conn->no_body = kiln_str_eq(request->method, KILN_STR("HEAD"));
    conn->close_after = !conn->reader.keep_alive;
    if (kiln_in_pages_admit(&server->pages, request, &conn->reply)) {
        conn->close_after |= request->has_body;
        answer(conn);
        return -1;
    }
    if (!request->has_body)
        return 0;
    if (server->n_bodies >= KILN_IN_BODIES) {
        kiln_in_conn_refuse(conn, 503, "too many requests with bodies at once");
        return -1;
    }
    server->n_bodies++;
    conn->has_body = true;
    if (conn->reader.expect)
        say_continue(conn);
    return 0;
}

static void begin(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    int r = kiln_in_pages_begin(&server->pages, &conn->reader.request, &conn->reply, &conn->job);

    if (r > 0)
        enter(conn, KILN_IN_CONN_WAIT, conn->job.due_ns);
    else
        answer(conn);
}

/* What the reader found, as far as it goes without more bytes. */
static void follow(struct kiln_in_server *server, struct kiln_in_conn *conn, int found)
{
    if (found == KILN_IN_READ_HEAD) {
        if (admit(server, conn) < 0 || conn->state != KILN_IN_CONN_READ)
            return;
        found = kiln_in_reader_took(&conn->reader, 0);
    }
    if (found == KILN_IN_READ_WHOLE)
        begin(server, conn);
    else if (found != KILN_IN_READ_MORE)
        kiln_in_conn_refuse(conn, found, "the request cannot be read");
}

static void run_read(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    size_t room;
    char *at = kiln_in_reader_room(&conn->reader, &room);
    ssize_t n = recv(conn->fd, at, room, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        enter(conn, KILN_IN_CONN_OVER, 0);
        return;
    }
    if (conn->idle) {
        conn->idle = false;
        enter_for(conn, KILN_IN_CONN_READ, REQUEST_NS);
    }
    follow(server, conn, kiln_in_reader_took(&conn->reader, (size_t)n));
}

/* What came behind the request that was answered. */
static void read_on(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    int found = kiln_in_reader_next(&conn->reader);

    conn->idle = conn->reader.len == 0;
    if (!conn->idle)
        enter_for(conn, KILN_IN_CONN_READ, REQUEST_NS);
    follow(server, conn, found);
}

static void run_drain(struct kiln_in_conn *conn)
{
    char waste[4096];
    ssize_t n = recv(conn->fd, waste, sizeof(waste), MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        enter(conn, KILN_IN_CONN_OVER, 0);
}

/* ---- deadlines ---- */

static void run_late(struct kiln_in_server *server, struct kiln_in_conn *conn)
{
    if (conn->state == KILN_IN_CONN_WAIT) {
        kiln_in_job_finish(&server->pages, &conn->job, &conn->reply);
        answer(conn);
    } else if (conn->state == KILN_IN_CONN_READ && conn->reader.len) {
        kiln_in_conn_refuse(conn, 408, "the request took too long to come");
    } else {
        enter(conn, KILN_IN_CONN_OVER, 0);
    }
}

void kiln_in_conn_run(struct kiln_in_server *server, struct kiln_in_conn *conn, short events)
{
    if (!events)
        run_late(server, conn);
    else if (conn->state == KILN_IN_CONN_WAIT)
        enter(conn, KILN_IN_CONN_OVER, 0); /* it went */
    else if (conn->state == KILN_IN_CONN_READ)
        run_read(server, conn);
    else if (conn->state == KILN_IN_CONN_DRAIN)
        run_drain(conn);
    for (int i = 0; conn->state == KILN_IN_CONN_WRITE && i < REQUESTS_A_RUN; i++) {
        run_write(server, conn);
        if (conn->state == KILN_IN_CONN_READ)
            read_on(server, conn);
    }
}

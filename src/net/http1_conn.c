/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 on a connection, one exchange at a time:
 *
 *   head ──▶ body ──▶ handled ──▶ answer sent ──▶ the next head
 *     └────────┴── refused: answered at once; a rest of the body is read and dropped
 *
 * Requests that come before it is their turn wait, in the socket or in conn->in, and so answers
 * are in order.  Where too much of a refused body would have to be dropped, the answer says
 * "connection: close", and the connection lingers until the client has had a chance to read it.
 */
#include "net/server_int.h"

#define DROP_MAX (64u << 10) /* of a refused body, to go on with the connection */

/* ---- answers ---- */

static void format_head(struct kiln_buf *out, const struct kiln_response *answer, bool close,
                        bool say_keep)
{
    kiln_buf_puts(out, "HTTP/1.1 ");
    kiln_buf_add_u64(out, (uint64_t)answer->status);
    kiln_buf_putc(out, ' ');
    kiln_buf_puts(out, kiln_http_reason(answer->status));
    kiln_buf_puts(out, "\r\n");
    for (uint32_t i = 0; i < answer->n_headers; i++) {
        kiln_buf_add_str(out, answer->fields[i].name);
        kiln_buf_puts(out, ": ");
        kiln_buf_add_str(out, answer->fields[i].value);
        kiln_buf_puts(out, "\r\n");
    }
    if (close)
        kiln_buf_puts(out, "connection: close\r\n");
    else if (say_keep)
        kiln_buf_puts(out, "connection: keep-alive\r\n");
    kiln_buf_puts(out, "\r\n");
}

static void send_answer(struct kiln_conn *conn, struct kiln_response *answer, bool head_only)
{
    struct kiln_loop *loop = conn->loop;

    conn->h1.answer = answer;
    if (answer->close || !conn->h1.keep_alive || loop->draining)
        conn->last = true;
    kiln_buf_clear(&loop->written);
    format_head(&loop->written, answer, conn->last, conn->h1.say_keep);
    if (loop->written.error) {
        kiln_conn_kill(conn);
        return;
    }
    kiln_server_answered(loop->server, answer->status);
    kiln_conn_write(conn, kiln_buf_str(&loop->written), head_only ? KILN_STR_NONE : answer->body);
}

/* What is no request is answered, and that is all. */
static void fail(struct kiln_conn *conn, int status, const char *reason, const char *text)
{
    struct kiln_server *server = conn->loop->server;
    struct kiln_reply reply = {.status = status,
                               .content_type = "text/plain; charset=utf-8",
                               .body = kiln_str_of(text),
                               .close = true};
    struct kiln_response *answer;

    if (status == 503)
        reply.headers[reply.n_headers++] =
            (struct kiln_header){KILN_STR("retry-after"), KILN_STR("1")};
    kiln_server_refused(server, reason);
    conn->linger = true;
    answer = kiln_response_new(server, NULL, &reply);
    if (answer)
        send_answer(conn, answer, false);
    else
        kiln_conn_kill(conn);
}

/* A body that nobody wants: it is worth reading only if little of it is left. */
static void give_up_body(struct kiln_conn *conn)
{
    const struct kiln_http1_body *body = &conn->h1.body;

    if (body->state == KILN_BODY_LENGTH && body->left <= DROP_MAX && !conn->h1.expects)
        return;
    conn->last = conn->linger = true;
}

/* Sends the answer of an exchange, whoever gave it. */
static void respond(struct kiln_conn *conn, struct kiln_exchange *x)
{
    struct kiln_response *answer = x->answer;

    if (!answer) {
        kiln_conn_kill(conn);
        return;
    }
    if (x->discard && !x->body_done)
        give_up_body(conn);
    x->answer = NULL;
    send_answer(conn, answer, x->head_only);
}

void kiln_http1_answer(struct kiln_conn *conn, struct kiln_exchange *x)
{
    respond(conn, x);
    if (!conn->dead)
        kiln_conn_continue(conn);
}

/* ---- heads ---- */

static void skip_blank_lines(struct kiln_str *in)
{
    while (in->len >= 2 && in->ptr[0] == '\r' && in->ptr[1] == '\n')
        in->ptr += 2, in->len -= 2;
}

static const char *why(int status)
{
    switch (status) {
    case 417:
        return "the only expectation that can be met is 100-continue\n";
    case 431:
        return "the head of the request is too large\n";
    case 501:
        return "the only transfer coding is chunked\n";
    case 505:
        return "HTTP/1.1, HTTP/1.0 and HTTP/2 are spoken here\n";
    default:
        return "this is not a well-formed HTTP request\n";
    }
}

static void fail_head(struct kiln_conn *conn, int status)
{
    fail(conn, status, status == 431 ? "head_too_large" : "malformed", why(status));
}

static void begin(struct kiln_conn *conn, const struct kiln_http_head *head)
{
    struct kiln_http1 *h1 = &conn->h1;
    bool early = false;
    int r = kiln_exchange_new(conn, head, &h1->x);

    if (r < 0) {
        if (r == KILN_E_MALFORMED)
            fail_head(conn, 400);
        else
            fail(conn, 503, "memory", "no memory for this request now, try again\n");
        return;
    }
    h1->keep_alive = head->keep_alive;
    h1->say_keep = head->keep_alive && head->minor == 0;
    h1->expects = head->expect;
    kiln_http1_body_init(&h1->body, head);
    h1->x->body_done = h1->body.state == KILN_BODY_DONE;
    if (kiln_exchange_admit(h1->x, head, &early)) {
        if (!h1->x->body_done || kiln_exchange_ready(h1->x))
            return;
    } else if (early) {
        h1->x->discard = !h1->x->body_done;
        if (kiln_exchange_ready(h1->x))
            return;
    }
    respond(conn, h1->x);
}

/* Takes a head from the front of *in.  False: it is not all there. */
static bool take_head(struct kiln_conn *conn, struct kiln_str *in)
{
    struct kiln_http1 *h1 = &conn->h1;
    size_t max = conn->loop->server->opts.header_max;
    struct kiln_http_head head;
    int64_t n;
    int status;

    if (h1->scan.at == 0)
        skip_blank_lines(in);
    n = kiln_http1_find_end(&h1->scan, *in);
    if (n < 0 || (size_t)n > max || (n == 0 && in->len > max)) {
        fail_head(conn, n < 0 ? 400 : 431);
        return true;
    }
    if (n == 0) {
        if (in->len && !h1->head_ms) {
            h1->head_ms = conn->loop->now_ms;
            kiln_conn_arm(conn, h1->head_ms + conn->loop->server->opts.header_timeout_ms);
        }
        return false;
    }
    h1->scan = (struct kiln_http1_scan){0};
    h1->head_ms = 0;
    status = kiln_http1_parse_head((char *)in->ptr, (size_t)n, &head);
    in->ptr += n;
    in->len -= (size_t)n;
    if (status)
        fail_head(conn, status);
    else
        begin(conn, &head);
    return true;
}

/* ---- bodies ---- */

static void say_continue(struct kiln_conn *conn)
{
    conn->h1.expects = false;
    kiln_conn_write(conn, KILN_STR("HTTP/1.1 100 Continue\r\n\r\n"), KILN_STR_NONE);
}

static void wait_for_body(struct kiln_conn *conn)
{
    const struct kiln_server_opts *opts = &conn->loop->server->opts;
    uint32_t wait = opts->body_timeout_ms < opts->request_timeout_ms ? opts->body_timeout_ms
                                                                     : opts->request_timeout_ms;

    kiln_conn_arm(conn, conn->loop->now_ms + wait);
}

static void refuse_body(struct kiln_conn *conn)
{
    struct kiln_exchange *x = conn->h1.x;

    conn->last = conn->linger = true;
    if (conn->h1.answer || x->stage == KILN_STAGE_HANDLED) {
        x->body_done = true; /* and what comes after it is not to be understood */
        return;
    }
    kiln_exchange_refuse_text(x, 400, "malformed", why(400));
    respond(conn, x);
}

/* Takes of the body what is there.  False: more must come first. */
static bool take_body(struct kiln_conn *conn, struct kiln_str *in)
{
    struct kiln_exchange *x = conn->h1.x;
    struct kiln_str piece;
    int r = 1;

    if (conn->h1.expects && !x->discard && in->len == 0)
        say_continue(conn);
    while (in->len && r > 0) {
        r = kiln_http1_body_next(&conn->h1.body, in, &piece);
        if (r < 0) {
            refuse_body(conn);
            return true;
        }
        x->progress_ms = conn->loop->now_ms;
        if (piece.len && !x->discard && !kiln_exchange_body(x, piece)) {
            respond(conn, x);
            return true;
        }
    }
    if (r > 0) {
        wait_for_body(conn);
        return false;
    }
    x->body_done = true;
    if (!x->discard && !kiln_exchange_ready(x))
        respond(conn, x);
    return true;
}

/* ---- turns ---- */

static void finish(struct kiln_conn *conn)
{
    struct kiln_http1 *h1 = &conn->h1;

    kiln_response_free(conn->loop->server, h1->answer);
    h1->answer = NULL;
    kiln_conn_resume(conn);
    if (!conn->last)
        return;
    if (h1->x)
        kiln_exchange_abandon(h1->x);
    h1->x = NULL;
    if (conn->linger || conn->loop->draining)
        kiln_conn_linger(conn);
    else
        kiln_conn_kill(conn);
}

/* The exchange is over: read and answered. */
static void end(struct kiln_conn *conn)
{
    kiln_exchange_free(conn->h1.x);
    conn->h1.x = NULL;
    conn->idle_ms = conn->loop->now_ms;
    kiln_conn_arm(conn, conn->idle_ms + conn->loop->server->opts.idle_timeout_ms);
    kiln_conn_resume(conn);
}

void kiln_http1_run(struct kiln_conn *conn, struct kiln_str *in)
{
    struct kiln_http1 *h1 = &conn->h1;
    bool more = true;

    while (more && !conn->dead && conn->protocol == KILN_CONN_HTTP1) {
        if (h1->answer) {
            if (!kiln_conn_sent_all(conn))
                return;
            finish(conn);
        } else if (h1->x && !h1->x->body_done) {
            more = take_body(conn, in);
        } else if (h1->x) {
            if (h1->x->stage == KILN_STAGE_HANDLED)
                return;
            end(conn);
        } else {
            more = take_head(conn, in);
        }
    }
}

uint64_t kiln_http1_deadline(struct kiln_conn *conn, uint64_t now_ms)
{
    const struct kiln_server_opts *opts = &conn->loop->server->opts;
    struct kiln_http1 *h1 = &conn->h1;
    uint64_t stall, whole;

    if (h1->x && h1->x->body_done)
        return KILN_NEVER;
    if (h1->x) {
        stall = h1->x->progress_ms + opts->body_timeout_ms;
        whole = h1->x->started_ms + opts->request_timeout_ms;
        whole = stall < whole ? stall : whole;
        if (now_ms < whole || h1->x->discard)
            return whole;
        conn->last = conn->linger = true;
        kiln_exchange_refuse_late(h1->x);
        kiln_http1_answer(conn, h1->x);
        return KILN_NEVER;
    }
    if (!h1->head_ms)
        return conn->idle_ms + opts->idle_timeout_ms;
    if (now_ms >= h1->head_ms + opts->header_timeout_ms) {
        fail(conn, 408, "timeout", "the head of the request took too long\n");
        if (!conn->dead)
            kiln_conn_continue(conn);
        return KILN_NEVER;
    }
    return h1->head_ms + opts->header_timeout_ms;
}

void kiln_http1_drain(struct kiln_conn *conn)
{
    if (!conn->h1.x && !conn->h1.answer && conn->in.len == 0)
        kiln_conn_kill(conn);
}

void kiln_http1_done(struct kiln_conn *conn)
{
    kiln_response_free(conn->loop->server, conn->h1.answer);
    conn->h1.answer = NULL;
    if (conn->h1.x)
        kiln_exchange_abandon(conn->h1.x);
    conn->h1.x = NULL;
}

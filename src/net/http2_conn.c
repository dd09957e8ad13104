/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 on a connection: nghttp2 reads and writes the frames, http2_stream.c has the streams,
 * http2_keepalive.c knows when it must end.
 *
 * An answer that comes before the body has ended is followed by RST_STREAM(NO_ERROR), as the RFC
 * wants it, but a little later: libcurl takes no notice of an answer that comes with its reset.
 * Clients that make us work without asking for anything (resets, pings, settings, empty frames)
 * run out of credit, which comes back slowly, and are sent away.
 */
#include <errno.h>
#include <stddef.h>

#include "base/mem.h"
#include "net/http2_int.h"

#define STREAMS_MAX   128u
#define STREAM_WINDOW (1u << 20)
#define CONN_WINDOW   (4 << 20)
#define CREDIT_PER_S  50u
#define RESET_MS      1000u /* from the end of an early answer to the reset */

/* ---- memory: as everything else ---- */

/*
 * A head that is indexed once and named a thousand times, an answer that is never read: what
 * nghttp2 keeps is the client's choice as well, and is charged like everything else.  The size
 * stands before each block.
 */
union h2_block {
    size_t size;
    max_align_t align;
};

static void *h2_realloc(void *ptr, size_t size, void *user)
{
    struct kiln_server *server = user;
    union h2_block *block = ptr ? (union h2_block *)ptr - 1 : NULL, *grown;
    size_t old = block ? block->size : 0;

    if (size > SIZE_MAX / 2)
        return NULL;
    size += sizeof(*block);
    if (size > old && kiln_net_take(server, size - old, true) < 0)
        return NULL;
    grown = kiln_realloc(block, size);
    if (!grown) {
        if (size > old)
            kiln_net_give(server, size - old);
        return NULL;
    }
    if (size < old)
        kiln_net_give(server, old - size);
    grown->size = size;
    return grown + 1;
}

static void *h2_malloc(size_t size, void *user)
{
    return h2_realloc(NULL, size, user);
}

static void *h2_calloc(size_t n, size_t size, void *user)
{
    void *ptr = size && n > SIZE_MAX / size ? NULL : h2_realloc(NULL, n * size, user);

    return ptr ? memset(ptr, 0, n * size) : NULL;
}

static void h2_free(void *ptr, void *user)
{
    union h2_block *block = ptr ? (union h2_block *)ptr - 1 : NULL;

    if (!block)
        return;
    kiln_net_give(user, block->size);
    kiln_free(block);
}

void kiln_http2_earn(struct kiln_http2 *h2, uint64_t more)
{
    h2->credit = more > KILN_HTTP2_CREDIT_MAX - h2->credit ? KILN_HTTP2_CREDIT_MAX
                                                           : h2->credit + (uint32_t)more;
}

/* Takes `cost` of the client's credit; without any left, the connection ends. */
static void spend(struct kiln_conn *conn, uint32_t cost)
{
    struct kiln_http2 *h2 = conn->h2;
    uint64_t earned = (conn->loop->now_ms - h2->credit_ms) * CREDIT_PER_S / 1000;

    if (earned) {
        kiln_http2_earn(h2, earned);
        h2->credit_ms = conn->loop->now_ms;
    }
    if (h2->credit >= cost) {
        h2->credit -= cost;
        return;
    }
    kiln_server_refused(conn->loop->server, "flood");
    nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM); /* reads no more */
    h2->goaway = conn->last = true;
}

/* ---- frames ---- */

/* Work that brings no request. */
static uint32_t cost_of(const nghttp2_frame_hd *hd)
{
    switch (hd->type) {
    case NGHTTP2_RST_STREAM:
        return 2;
    case NGHTTP2_PING:
    case NGHTTP2_SETTINGS:
        return !(hd->flags & NGHTTP2_FLAG_ACK);
    case NGHTTP2_PRIORITY:
    case NGHTTP2_CONTINUATION:
        return 1;
    case NGHTTP2_DATA:
        return hd->length == 0 && !(hd->flags & NGHTTP2_FLAG_END_STREAM);
    default:
        return 0;
    }
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
    uint32_t cost = cost_of(hd);

    (void)session;
    if (cost && (hd->type != NGHTTP2_PING || !kiln_http2_may_ping(user)))
        spend(user, cost);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct kiln_conn *conn = user;
    bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        kiln_http2_begin(conn, frame->hd.stream_id, ended);
        kiln_http2_gather_clear(conn);
    } else if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) && ended) {
        kiln_http2_end_body(conn, frame->hd.stream_id);
    }
    return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                            void *user)
{
    (void)session, (void)frame, (void)error;
    spend(user, 4);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct kiln_conn *conn = user;
    struct kiln_exchange *x;

    if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    x = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (x && !x->body_done) {
        x->said_all = true;
        x->progress_ms = conn->loop->now_ms;
        kiln_conn_arm(conn, x->progress_ms + RESET_MS);
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *user)
{
    struct kiln_conn *conn = user;
    struct kiln_exchange *x = nghttp2_session_get_stream_user_data(session, stream);

    (void)error;
    if (stream == conn->h2->gather_stream)
        kiln_http2_gather_clear(conn);
    if (!x)
        return 0;
    kiln_http2_unlink(conn->h2, x);
    kiln_exchange_abandon(x);
    if (conn->h2->n_streams == 0) {
        conn->idle_ms = conn->loop->now_ms;
        kiln_conn_arm(conn, kiln_http2_rest_deadline(conn));
    }
    return 0;
}

/* ---- the connection ---- */

static int set_callbacks(nghttp2_session_callbacks **ret)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, kiln_http2_on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, kiln_http2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, kiln_http2_on_data);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    *ret = callbacks;
    return 0;
}

static int open_session(struct kiln_conn *conn, nghttp2_session_callbacks *callbacks)
{
    nghttp2_mem mem = {conn->loop->server, h2_malloc, h2_free, h2_calloc, h2_realloc};
    nghttp2_option *option;
    int r;

    if (nghttp2_option_new(&option) != 0)
        return -ENOMEM;
    nghttp2_option_set_max_outbound_ack(option, KILN_HTTP2_CREDIT_MAX);
    nghttp2_option_set_no_closed_streams(option, 1);
#ifdef KILN_NGHTTP2_COUNTS_RESETS
    /* It counts those of streams that were answered, too, which curl sends: spend() does not mind.
     */
    nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
#endif
    r = nghttp2_session_server_new3(&conn->h2->session, callbacks, conn, option, &mem);
    nghttp2_option_del(option);
    return r ? -ENOMEM : 0;
}

static int greet(struct kiln_conn *conn)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)conn->loop->server->opts.header_max},
    };
    nghttp2_session *session = conn->h2->session;

    if (nghttp2_submit_settings(session, 0, settings, KILN_ARRAY_LEN(settings)) != 0 ||
        nghttp2_session_set_local_window_size(session, 0, 0, CONN_WINDOW) != 0)
        return -ENOMEM;
    kiln_http2_dirty(conn);
    return 0;
}

int kiln_http2_open(struct kiln_conn *conn)
{
    nghttp2_session_callbacks *callbacks;
    int r;

    conn->h2 = kiln_calloc(1, sizeof(*conn->h2));
    if (!conn->h2)
        return -ENOMEM;
    kiln_buf_init(&conn->h2->gather, conn->loop->server->opts.header_max * 2);
    conn->h2->credit = KILN_HTTP2_CREDIT_MAX;
    conn->h2->credit_ms = conn->loop->now_ms;
    r = set_callbacks(&callbacks);
    if (r < 0)
        return r;
    r = open_session(conn, callbacks);
    nghttp2_session_callbacks_del(callbacks);
    if (r < 0)
        return r;
    kiln_http2_live(conn);
    return greet(conn);
}

void kiln_http2_input(struct kiln_conn *conn, struct kiln_str in)
{
    ssize_t n = nghttp2_session_mem_recv(conn->h2->session, (const uint8_t *)in.ptr, in.len);

    kiln_http2_heard(conn);
    if (n < 0) {
        kiln_server_refused(conn->loop->server, "malformed");
        nghttp2_session_terminate_session(conn->h2->session, n == NGHTTP2_ERR_FLOODED
                                                                 ? NGHTTP2_ENHANCE_YOUR_CALM
                                                                 : NGHTTP2_PROTOCOL_ERROR);
        conn->h2->goaway = conn->last = true;
    }
    kiln_http2_dirty(conn);
}

/* Frames into the loop's buffer, as many as one write takes. */
static int collect(struct kiln_conn *conn, struct kiln_buf *out)
{
    const uint8_t *data;
    ssize_t n = 1;

    kiln_buf_clear(out);
    while (out->len < KILN_LOOP_SCRATCH && n > 0) {
        n = nghttp2_session_mem_send(conn->h2->session, &data);
        if (n > 0)
            kiln_buf_add(out, data, (size_t)n);
    }
    return n < 0 ? (int)n : out->error;
}

static void end_if_over(struct kiln_conn *conn)
{
    nghttp2_session *session = conn->h2->session;

    if (conn->last && conn->h2->n_streams == 0 && !nghttp2_session_want_write(session))
        kiln_conn_linger(conn);
    else if (!nghttp2_session_want_read(session) && !nghttp2_session_want_write(session))
        kiln_conn_linger(conn);
}

void kiln_http2_pump(struct kiln_conn *conn)
{
    struct kiln_buf *out = &conn->loop->written;

    if (conn->protocol != KILN_CONN_HTTP2)
        return;
    while (kiln_conn_sent_all(conn)) {
        if (collect(conn, out) < 0) {
            kiln_conn_kill(conn);
            return;
        }
        if (out->len == 0)
            break;
        if (!kiln_conn_write(conn, kiln_buf_str(out), KILN_STR_NONE))
            return;
    }
    if (kiln_conn_sent_all(conn)) {
        kiln_conn_resume(conn);
        end_if_over(conn);
    } else {
        kiln_conn_pause(conn); /* who does not read is not read from */
    }
}

void kiln_http2_end(struct kiln_conn *conn, uint32_t error, struct kiln_str why)
{
    nghttp2_session *session = conn->h2->session;

    if (!conn->h2->goaway)
        nghttp2_submit_goaway(session, 0, nghttp2_session_get_last_proc_stream_id(session), error,
                              (const uint8_t *)why.ptr, why.len);
    conn->h2->goaway = conn->last = true;
    kiln_http2_dirty(conn);
}

void kiln_http2_drain(struct kiln_conn *conn)
{
    kiln_http2_end(conn, NGHTTP2_NO_ERROR, KILN_STR_NONE);
}

/* A stream's deadline, or, where it has passed, what is to be done about it. */
static uint64_t stream_deadline(struct kiln_conn *conn, struct kiln_exchange *x, uint64_t now_ms)
{
    const struct kiln_server_opts *opts = &conn->loop->server->opts;
    uint64_t at = x->progress_ms + opts->body_timeout_ms;
    uint64_t whole = x->started_ms + opts->request_timeout_ms;

    if (x->stage == KILN_STAGE_HANDLED)
        return KILN_NEVER;
    if (x->stage == KILN_STAGE_ANSWERED)
        whole += x->sent / KILN_NET_SLOWEST;
    at = whole < at ? whole : at;
    if (x->said_all)
        at = x->progress_ms + RESET_MS;
    if (now_ms < at)
        return at;
    kiln_http2_dirty(conn);
    if (x->stage == KILN_STAGE_READING) {
        kiln_exchange_refuse_late(x);
        kiln_http2_answer(conn, x);
        return now_ms + opts->body_timeout_ms;
    }
    if (!x->said_all)
        kiln_server_refused(conn->loop->server, "timeout");
    nghttp2_submit_rst_stream(conn->h2->session, 0, x->stream,
                              x->said_all ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
    return KILN_NEVER;
}

uint64_t kiln_http2_deadline(struct kiln_conn *conn, uint64_t now_ms)
{
    const struct kiln_server_opts *opts = &conn->loop->server->opts;
    struct kiln_http2 *h2 = conn->h2;
    uint64_t rest, next = kiln_http2_life_deadline(conn, now_ms);

    if (conn->dead)
        return KILN_NEVER;
    if (h2->gather_stream) {
        uint64_t at = h2->gather_ms + opts->header_timeout_ms;

        if (now_ms >= at) {
            nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
            kiln_http2_dirty(conn);
            return KILN_NEVER;
        }
        next = at < next ? at : next;
    }
    for (struct kiln_exchange *x = h2->streams; x; x = x->next) {
        uint64_t at = stream_deadline(conn, x, now_ms);

        next = at < next ? at : next;
    }
    if (h2->streams || h2->gather_stream)
        return next;
    rest = kiln_http2_rest_deadline(conn);
    if (now_ms < rest)
        return rest < next ? rest : next;
    kiln_http2_drain(conn);
    return next;
}

bool kiln_http2_is_reading(const struct kiln_conn *conn)
{
    for (const struct kiln_exchange *x = conn->h2 ? conn->h2->streams : NULL; x; x = x->next)
        if (x->stage == KILN_STAGE_READING)
            return true;
    return false;
}

bool kiln_http2_rests(const struct kiln_conn *conn)
{
    return !conn->h2 || !conn->h2->streams;
}

void kiln_http2_let_go(struct kiln_conn *conn)
{
    struct kiln_exchange *x;

    while (conn->h2 && (x = conn->h2->streams)) {
        kiln_http2_unlink(conn->h2, x);
        nghttp2_session_set_stream_user_data(conn->h2->session, x->stream, NULL);
        kiln_exchange_abandon(x);
    }
}

void kiln_http2_done(struct kiln_conn *conn)
{
    struct kiln_http2 *h2 = conn->h2;

    if (!h2)
        return;
    kiln_net_done(conn->loop->server, &h2->gather);
    nghttp2_session_del(h2->session);
    kiln_free(h2);
    conn->h2 = NULL;
}

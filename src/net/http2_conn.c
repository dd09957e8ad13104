/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2 on a connection: nghttp2 reads and writes the frames, an exchange is a stream.
 *
 * The fields of a head are gathered in one buffer of the connection, for header blocks never mix:
 *
 *   u32 length of the name, u32 length of the value, name, value      again and again
 *
 * Bodies are taken as they come (the pool bounds them), so that windows are for speed alone.  An
 * answer that comes before the body has ended is followed by RST_STREAM(NO_ERROR), as the RFC
 * wants it, but a little later: libcurl takes no notice of an answer that comes with its reset.
 * Clients that make us work without asking for anything (resets, pings, settings,
 * empty frames) run out of credit, which comes back slowly, and are sent away.
 */
#include <errno.h>

#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "net/server_int.h"

#define STREAMS_MAX     128u
#define STREAM_WINDOW   (1u << 20)
#define CONN_WINDOW     (4 << 20)
#define CREDIT_MAX      1000u
#define CREDIT_PER_S    50u
#define CREDIT_ANSWER   4u /* gRPC clients ping whenever they get something, to measure the way */
#define GATHER_DROP_MAX (1u << 20) /* bytes of a head that is too large, before we hang up */
#define RESET_MS        1000u      /* from the end of an early answer to the reset */
#define RESET_BYTES     (1u << 20) /* of the body; then at once */

struct kiln_http2 {
    nghttp2_session *session;
    struct kiln_exchange *streams;
    uint32_t n_streams;
    struct kiln_buf gather;
    uint32_t n_gathered;
    size_t gathered;       /* bytes, as SETTINGS_MAX_HEADER_LIST_SIZE counts them */
    int32_t gather_stream; /* whose head is being gathered; 0: none */
    bool gather_failed;    /* no memory */
    uint64_t gather_ms;    /* since when */
    uint32_t credit;
    uint64_t credit_ms; /* when it was last topped up */
    bool goaway;
};

/* ---- memory: as everything else ---- */

static void *h2_malloc(size_t size, void *user)
{
    (void)user;
    return kiln_malloc(size);
}

static void h2_free(void *ptr, void *user)
{
    (void)user;
    kiln_free(ptr);
}

static void *h2_calloc(size_t n, size_t size, void *user)
{
    (void)user;
    return kiln_calloc(n, size);
}

static void *h2_realloc(void *ptr, size_t size, void *user)
{
    (void)user;
    return kiln_realloc(ptr, size);
}

/* ---- streams ---- */

static void link_stream(struct kiln_http2 *h2, struct kiln_exchange *x)
{
    x->next = h2->streams;
    if (x->next)
        x->next->prev = x;
    h2->streams = x;
    h2->n_streams++;
}

static void unlink_stream(struct kiln_http2 *h2, struct kiln_exchange *x)
{
    if (x->prev)
        x->prev->next = x->next;
    else
        h2->streams = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->next = x->prev = NULL;
    h2->n_streams--;
}

static void mark_dirty(struct kiln_conn *conn)
{
    if (conn->dirty || conn->dead)
        return;
    conn->dirty = true;
    conn->next_dirty = conn->loop->dirty;
    conn->loop->dirty = conn;
}

static void earn(struct kiln_http2 *h2, uint64_t more)
{
    h2->credit = more > CREDIT_MAX - h2->credit ? CREDIT_MAX : h2->credit + (uint32_t)more;
}

/* Takes `cost` of the client's credit; without any left, the connection ends. */
static void spend(struct kiln_conn *conn, uint32_t cost)
{
    struct kiln_http2 *h2 = conn->h2;
    uint64_t earned = (conn->loop->now_ms - h2->credit_ms) * CREDIT_PER_S / 1000;

    if (earned) {
        earn(h2, earned);
        h2->credit_ms = conn->loop->now_ms;
    }
    if (h2->credit >= cost) {
        h2->credit -= cost;
        return;
    }
    if (!h2->goaway) {
        kiln_server_refused(conn->loop->server, "flood");
        nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    h2->goaway = conn->last = true;
}

/* ---- answers ---- */

static nghttp2_nv pair(struct kiln_str name, struct kiln_str value)
{
    return (nghttp2_nv){(uint8_t *)name.ptr, (uint8_t *)value.ptr, name.len, value.len,
                        NGHTTP2_NV_FLAG_NONE};
}

static size_t pairs(const struct kiln_header *fields, uint32_t n, nghttp2_nv *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = pair(fields[i].name, fields[i].value);
    return n;
}

static int submit_trailers(nghttp2_session *session, struct kiln_exchange *x)
{
    const struct kiln_response *answer = x->answer;
    nghttp2_nv nv[KILN_REPLY_HEADERS];
    size_t n = pairs(answer->fields + answer->n_headers, answer->n_trailers, nv);

    return nghttp2_submit_trailer(session, x->stream, nv, n);
}

static ssize_t give_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    struct kiln_exchange *x = source->ptr;
    struct kiln_str body = x->head_only ? KILN_STR_NONE : x->answer->body;
    size_t n = body.len - x->sent < size ? body.len - x->sent : size;

    (void)stream, (void)user;
    if (n)
        memcpy(out, body.ptr + x->sent, n);
    x->sent += n;
    x->progress_ms = x->loop->now_ms;
    if (x->sent == body.len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (x->answer->n_trailers) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (submit_trailers(session, x) != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)n;
}

static void submit(struct kiln_conn *conn, struct kiln_exchange *x)
{
    const struct kiln_response *answer = x->answer;
    nghttp2_data_provider provider = {.source.ptr = x, .read_callback = give_body};
    nghttp2_nv nv[2 * KILN_REPLY_HEADERS + 9];
    char status[8];
    bool bare;
    size_t n;

    mark_dirty(conn);
    x->progress_ms = conn->loop->now_ms;
    kiln_conn_arm(conn, x->progress_ms + conn->loop->server->opts.body_timeout_ms);
    if (!answer) {
        nghttp2_submit_rst_stream(conn->h2->session, 0, x->stream, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    earn(conn->h2, CREDIT_ANSWER);
    kiln_server_answered(conn->loop->server, answer->status);
    snprintf(status, sizeof(status), "%d", answer->status);
    nv[0] = pair(KILN_STR(":status"), kiln_str_of(status));
    n = 1 + pairs(answer->fields, answer->n_headers, nv + 1);
    bare = (answer->body.len == 0 || x->head_only) && answer->n_trailers == 0;
    if (nghttp2_submit_response(conn->h2->session, x->stream, nv, n, bare ? NULL : &provider) != 0)
        nghttp2_submit_rst_stream(conn->h2->session, 0, x->stream, NGHTTP2_INTERNAL_ERROR);
}

void kiln_http2_answer(struct kiln_conn *conn, struct kiln_exchange *x)
{
    submit(conn, x);
}

/* ---- heads ---- */

static void gather_clear(struct kiln_conn *conn)
{
    struct kiln_http2 *h2 = conn->h2;

    kiln_net_done(conn->loop->server, &h2->gather);
    h2->gather_stream = 0;
    h2->n_gathered = 0;
    h2->gathered = 0;
    h2->gather_failed = false;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct kiln_conn *conn = user;
    struct kiln_http2 *h2 = conn->h2;

    (void)session;
    gather_clear(conn);
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    h2->gather_stream = frame->hd.stream_id;
    h2->gather_ms = conn->loop->now_ms;
    kiln_conn_arm(conn, h2->gather_ms + conn->loop->server->opts.header_timeout_ms);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags, void *user)
{
    struct kiln_conn *conn = user;
    struct kiln_http2 *h2 = conn->h2;
    struct kiln_server *server = conn->loop->server;
    uint32_t sizes[2] = {(uint32_t)n_name, (uint32_t)n_value};

    (void)session, (void)flags;
    if (frame->hd.stream_id != h2->gather_stream)
        return 0;
    h2->gathered += n_name + n_value + 32;
    h2->n_gathered++;
    if (h2->gathered > GATHER_DROP_MAX)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    if (h2->gathered > server->opts.header_max || h2->n_gathered > KILN_HTTP_HEADERS_MAX)
        return 0;
    if (kiln_net_grow(server, &h2->gather, sizeof(sizes) + n_name + n_value) < 0) {
        h2->gather_failed = true;
        return 0;
    }
    kiln_buf_add(&h2->gather, sizes, sizeof(sizes));
    kiln_buf_add(&h2->gather, name, n_name);
    kiln_buf_add(&h2->gather, value, n_value);
    return 0;
}

static void add_field(struct kiln_http_head *head, struct kiln_str name, struct kiln_str value)
{
    if (kiln_str_eq(name, KILN_STR(":method")))
        head->method = value;
    else if (kiln_str_eq(name, KILN_STR(":path")))
        head->target = value;
    else if (kiln_str_eq(name, KILN_STR(":authority")))
        head->headers[head->n_headers++] = (struct kiln_header){KILN_STR("host"), value};
    else if (name.len && name.ptr[0] != ':')
        head->headers[head->n_headers++] = (struct kiln_header){name, value};
    if (kiln_str_eq(name, KILN_STR("content-length"))) {
        uint64_t length = 0;

        head->has_length = kiln_str_parse_u64(value, &length) == 0;
        head->length = length;
    }
}

static void read_gathered(const struct kiln_buf *gather, struct kiln_http_head *head)
{
    const char *at = gather->ptr;

    memset(head, 0, sizeof(*head));
    while (at && at < gather->ptr + gather->len) {
        uint32_t sizes[2];
        struct kiln_str name, value;

        memcpy(sizes, at, sizeof(sizes));
        name = (struct kiln_str){at + sizeof(sizes), sizes[0]};
        value = (struct kiln_str){name.ptr + name.len, sizes[1]};
        at = value.ptr + value.len;
        add_field(head, name, value);
    }
}

/* The body comes next: by when, and whether somebody waits for leave to send it. */
static void expect_body(struct kiln_conn *conn, const struct kiln_exchange *x)
{
    const struct kiln_server_opts *opts = &conn->loop->server->opts;
    nghttp2_nv go_on = pair(KILN_STR(":status"), KILN_STR("100"));

    kiln_conn_arm(conn, conn->loop->now_ms + opts->body_timeout_ms);
    kiln_conn_arm(conn, conn->loop->now_ms + opts->request_timeout_ms);
    if (kiln_request_header(&x->request, "expect").len)
        nghttp2_submit_headers(conn->h2->session, 0, x->stream, NULL, &go_on, 1, NULL);
}

static void begin(struct kiln_conn *conn, int32_t stream, bool ended)
{
    struct kiln_http2 *h2 = conn->h2;
    const struct kiln_server_opts *opts = &conn->loop->server->opts;
    bool large = h2->gathered > opts->header_max || h2->n_gathered > KILN_HTTP_HEADERS_MAX;
    struct kiln_http_head head;
    struct kiln_exchange *x;
    bool early = false;
    int r;

    read_gathered(&h2->gather, &head);
    if (!head.target.ptr)
        head.target = KILN_STR("*");
    r = h2->gather_failed ? KILN_E_LIMIT : kiln_exchange_new(conn, &head, &x);
    if (r < 0) {
        kiln_server_refused(conn->loop->server, r == KILN_E_MALFORMED ? "malformed" : "memory");
        nghttp2_submit_rst_stream(h2->session, 0, stream,
                                  r == KILN_E_MALFORMED ? NGHTTP2_PROTOCOL_ERROR
                                                        : NGHTTP2_REFUSED_STREAM);
        return;
    }
    x->stream = stream;
    x->body_done = ended;
    link_stream(h2, x);
    nghttp2_session_set_stream_user_data(h2->session, stream, x);
    if (large) {
        kiln_exchange_refuse_text(x, 431, "head_too_large",
                                  "the head of the request is too large\n");
    } else if (kiln_exchange_admit(x, &head, &early)) {
        if (!ended) {
            expect_body(conn, x);
            return;
        }
        if (kiln_exchange_ready(x))
            return;
    } else if (early) {
        x->discard = !ended;
        if (kiln_exchange_ready(x))
            return;
    }
    submit(conn, x);
}

/* ---- bodies ---- */

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t len, void *user)
{
    struct kiln_conn *conn = user;
    struct kiln_exchange *x = nghttp2_session_get_stream_user_data(session, stream);

    (void)flags;
    if (x && x->discard && (x->dropped += len) > RESET_BYTES && x->said_all)
        nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_NO_ERROR);
    if (x && !x->discard && !kiln_exchange_body(x, (struct kiln_str){(const char *)data, len}))
        submit(conn, x);
    return 0;
}

static void end_body(struct kiln_conn *conn, int32_t stream)
{
    struct kiln_exchange *x = nghttp2_session_get_stream_user_data(conn->h2->session, stream);

    if (!x || x->body_done)
        return;
    x->body_done = true;
    if (x->said_all) /* libcurl sleeps on when its own last frame closes the stream: wake it up */
        nghttp2_submit_ping(conn->h2->session, 0, NULL);
    if (!x->discard && !kiln_exchange_ready(x))
        submit(conn, x);
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
    if (cost)
        spend(user, cost);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct kiln_conn *conn = user;
    bool ended = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

    (void)session;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        begin(conn, frame->hd.stream_id, ended);
        gather_clear(conn);
    } else if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) && ended) {
        end_body(conn, frame->hd.stream_id);
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
        gather_clear(conn);
    if (!x)
        return 0;
    unlink_stream(conn->h2, x);
    kiln_exchange_abandon(x);
    if (conn->h2->n_streams == 0) {
        conn->idle_ms = conn->loop->now_ms;
        kiln_conn_arm(conn, conn->idle_ms + conn->loop->server->opts.idle_timeout_ms);
    }
    return 0;
}

/* ---- the connection ---- */

static int set_callbacks(nghttp2_session_callbacks **ret)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
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
    nghttp2_mem mem = {NULL, h2_malloc, h2_free, h2_calloc, h2_realloc};
    nghttp2_option *option;
    int r;

    if (nghttp2_option_new(&option) != 0)
        return -ENOMEM;
    nghttp2_option_set_max_outbound_ack(option, CREDIT_MAX);
    nghttp2_option_set_no_closed_streams(option, 1);
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
    mark_dirty(conn);
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
    conn->h2->credit = CREDIT_MAX;
    conn->h2->credit_ms = conn->loop->now_ms;
    r = set_callbacks(&callbacks);
    if (r < 0)
        return r;
    r = open_session(conn, callbacks);
    nghttp2_session_callbacks_del(callbacks);
    return r < 0 ? r : greet(conn);
}

void kiln_http2_input(struct kiln_conn *conn, struct kiln_str in)
{
    ssize_t n = nghttp2_session_mem_recv(conn->h2->session, (const uint8_t *)in.ptr, in.len);

    if (n < 0) {
        kiln_server_refused(conn->loop->server, "malformed");
        nghttp2_session_terminate_session(conn->h2->session, n == NGHTTP2_ERR_FLOODED
                                                                 ? NGHTTP2_ENHANCE_YOUR_CALM
                                                                 : NGHTTP2_PROTOCOL_ERROR);
        conn->h2->goaway = conn->last = true;
    }
    mark_dirty(conn);
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

void kiln_http2_drain(struct kiln_conn *conn)
{
    nghttp2_session *session = conn->h2->session;

    if (!conn->h2->goaway)
        nghttp2_submit_goaway(session, 0, nghttp2_session_get_last_proc_stream_id(session),
                              NGHTTP2_NO_ERROR, NULL, 0);
    conn->h2->goaway = conn->last = true;
    mark_dirty(conn);
}

/* A stream's deadline, or, where it has passed, what is to be done about it. */
static uint64_t stream_deadline(struct kiln_conn *conn, struct kiln_exchange *x, uint64_t now_ms)
{
    const struct kiln_server_opts *opts = &conn->loop->server->opts;
    uint64_t at = x->progress_ms + opts->body_timeout_ms;
    uint64_t whole = x->started_ms + opts->request_timeout_ms;

    if (x->stage == KILN_STAGE_HANDLED)
        return KILN_NEVER;
    if (x->stage == KILN_STAGE_READING && whole < at)
        at = whole;
    if (x->said_all)
        at = x->progress_ms + RESET_MS;
    if (now_ms < at)
        return at;
    mark_dirty(conn);
    if (x->stage == KILN_STAGE_READING) {
        kiln_exchange_refuse_text(x, 408, "timeout", "the body took too long\n");
        submit(conn, x);
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
    uint64_t next = KILN_NEVER;

    if (h2->gather_stream) {
        next = h2->gather_ms + opts->header_timeout_ms;
        if (now_ms >= next) {
            nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
            mark_dirty(conn);
            return KILN_NEVER;
        }
    }
    for (struct kiln_exchange *x = h2->streams; x; x = x->next) {
        uint64_t at = stream_deadline(conn, x, now_ms);

        next = at < next ? at : next;
    }
    if (h2->streams || h2->gather_stream)
        return next;
    if (now_ms < conn->idle_ms + opts->idle_timeout_ms)
        return conn->idle_ms + opts->idle_timeout_ms;
    kiln_http2_drain(conn);
    return KILN_NEVER;
}

void kiln_http2_let_go(struct kiln_conn *conn)
{
    struct kiln_exchange *x;

    while (conn->h2 && (x = conn->h2->streams)) {
        unlink_stream(conn->h2, x);
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

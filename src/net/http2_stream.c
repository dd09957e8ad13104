/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of HTTP/2 is an exchange.  The fields of its head are gathered in one buffer of the
 * connection, for header blocks never mix:
 *
 *   u32 length of the name, u32 length of the value, name, value      again and again
 *
 * Bodies are taken as they come (the pool bounds them), so that windows are for speed alone.
 */
#include "net/grpc.h"
#include "net/http2_int.h"

#define GATHER_DROP_MAX (1u << 20) /* bytes of a head that is too large, before we hang up */
#define RESET_BYTES     (1u << 20) /* of a refused body, before its stream is reset */

/* ---- streams ---- */

static void link_stream(struct kiln_http2 *h2, struct kiln_exchange *x)
{
    x->next = h2->streams;
    if (x->next)
        x->next->prev = x;
    h2->streams = x;
    h2->n_streams++;
}

void kiln_http2_unlink(struct kiln_http2 *h2, struct kiln_exchange *x)
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

void kiln_http2_dirty(struct kiln_conn *conn)
{
    if (conn->dirty || conn->dead)
        return;
    conn->dirty = true;
    conn->next_dirty = conn->loop->dirty;
    conn->loop->dirty = conn;
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
    size_t len = x->head_only ? 0 : x->answer->body.len;
    size_t n = len - x->sent < size ? len - x->sent : size;

    (void)stream, (void)user;
    if (n)
        memcpy(out, x->answer->body.ptr + x->sent, n);
    x->sent += n;
    x->progress_ms = x->loop->now_ms;
    if (x->sent == len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (x->answer->n_trailers) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (submit_trailers(session, x) != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)n;
}

void kiln_http2_answer(struct kiln_conn *conn, struct kiln_exchange *x)
{
    const struct kiln_response *answer = x->answer;
    nghttp2_data_provider provider = {.source.ptr = x, .read_callback = give_body};
    nghttp2_nv nv[2 * KILN_REPLY_HEADERS + 9];
    char status[8];
    bool bare;
    size_t n;

    kiln_http2_dirty(conn);
    x->started_ms = x->progress_ms = conn->loop->now_ms; /* of the answer, from here on */
    kiln_conn_arm(conn, x->progress_ms + conn->loop->server->opts.body_timeout_ms);
    if (!answer) {
        nghttp2_submit_rst_stream(conn->h2->session, 0, x->stream, NGHTTP2_INTERNAL_ERROR);
        return;
    }
    kiln_http2_earn(conn->h2, KILN_HTTP2_CREDIT_ANSWER);
    conn->h2->life.answered = true;
    kiln_server_answered(conn->loop->server, answer->status);
    snprintf(status, sizeof(status), "%d", answer->status);
    nv[0] = pair(KILN_STR(":status"), kiln_str_of(status));
    n = 1 + pairs(answer->fields, answer->n_headers, nv + 1);
    bare = (answer->body.len == 0 || x->head_only) && answer->n_trailers == 0;
    if (nghttp2_submit_response(conn->h2->session, x->stream, nv, n, bare ? NULL : &provider) != 0)
        nghttp2_submit_rst_stream(conn->h2->session, 0, x->stream, NGHTTP2_INTERNAL_ERROR);
}

/* ---- heads ---- */

void kiln_http2_gather_clear(struct kiln_conn *conn)
{
    struct kiln_http2 *h2 = conn->h2;

    kiln_net_done(conn->loop->server, &h2->gather);
    h2->gather_stream = 0;
    h2->n_gathered = 0;
    h2->gathered = 0;
    h2->gather_failed = false;
}

int kiln_http2_on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct kiln_conn *conn = user;
    struct kiln_http2 *h2 = conn->h2;

    (void)session;
    kiln_http2_gather_clear(conn);
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    h2->gather_stream = frame->hd.stream_id;
    h2->gather_ms = conn->loop->now_ms;
    kiln_conn_arm(conn, h2->gather_ms + conn->loop->server->opts.header_timeout_ms);
    return 0;
}

int kiln_http2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                         size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                         void *user)
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

void kiln_http2_begin(struct kiln_conn *conn, int32_t stream, bool ended)
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
    kiln_http2_answer(conn, x);
}

/* ---- bodies ---- */

/* gRPC says in the first bytes what others say in Content-Length. */
static void expect_message(struct kiln_exchange *x, const uint8_t *data, size_t len)
{
    struct kiln_str type = kiln_request_header(&x->request, "content-type");

    if (len >= KILN_GRPC_HEAD_BYTES && kiln_str_starts(type, KILN_STR("application/grpc")))
        x->body_expected =
            KILN_GRPC_HEAD_BYTES +
            ((uint64_t)data[1] << 24 | (uint64_t)data[2] << 16 | (uint64_t)data[3] << 8 | data[4]);
}

int kiln_http2_on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                       size_t len, void *user)
{
    struct kiln_conn *conn = user;
    struct kiln_exchange *x = nghttp2_session_get_stream_user_data(session, stream);

    (void)flags;
    if (x && x->discard && (x->dropped += len) > RESET_BYTES && x->said_all)
        nghttp2_submit_rst_stream(session, 0, stream, NGHTTP2_NO_ERROR);
    if (x && !x->body.len && !x->body_expected)
        expect_message(x, data, len);
    if (x && !x->discard && !kiln_exchange_body(x, (struct kiln_str){(const char *)data, len}))
        kiln_http2_answer(conn, x);
    return 0;
}

void kiln_http2_end_body(struct kiln_conn *conn, int32_t stream)
{
    struct kiln_exchange *x = nghttp2_session_get_stream_user_data(conn->h2->session, stream);

    if (!x || x->body_done)
        return;
    x->body_done = true;
    if (x->said_all) /* libcurl sleeps on when its own last frame closes the stream: wake it up */
        nghttp2_submit_ping(conn->h2->session, 0, NULL);
    if (!x->discard && !kiln_exchange_ready(x))
        kiln_http2_answer(conn, x);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes out is gathered as pieces, bodies where they lie and everything else in `heads`, and
 * written by one system call.  What the socket does not take is copied to `rest`: no body is
 * referred to once kiln_h2_flush() has returned.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/h2client_int.h"

enum {
    FIELDS_MAX = 80,
    READ_BYTES = 16 << 10,
    FRAME_HEAD = 9,
    WINDOW = 1 << 20, /* of what we take: answers are small */
};

/* ---- out ---- */

static void add_piece(struct kiln_h2client *client, const void *data, size_t len)
{
    if (len)
        client->pieces[client->n_pieces++] = (struct iovec){(void *)(uintptr_t)data, len};
}

static const void *keep_head(struct kiln_h2client *client, const void *data, size_t len)
{
    void *at = client->heads + client->heads_used;

    memcpy(at, data, len);
    client->heads_used += len;
    return at;
}

static bool has_room(const struct kiln_h2client *client, size_t head)
{
    return client->n_pieces + 3 <= KILN_H2_PIECES &&
           client->heads_used + head <= sizeof(client->heads);
}

/* One write of a row of pieces; returns how many bytes are left of it, from *ret_first on. */
static void write_pieces(struct kiln_h2client *client, struct iovec **ret_first, int *ret_n)
{
    struct iovec *at = *ret_first;
    int n = *ret_n;

    while (n && !client->broken) {
        ssize_t sent = kiln_h2wire_write(&client->wire, at, n);

        if (sent == -EAGAIN)
            break;
        if (sent < 0) {
            client->broken = (int)sent;
            break;
        }
        for (; n && (size_t)sent >= at->iov_len; at++, n--)
            sent -= (ssize_t)at->iov_len;
        if (n) {
            at->iov_base = (char *)at->iov_base + sent;
            at->iov_len -= (size_t)sent;
        }
    }
    *ret_first = at;
    *ret_n = n;
}

static void write_rest(struct kiln_h2client *client)
{
    struct iovec piece = {client->rest.ptr, client->rest.len}, *at = &piece;
    int n = client->rest.len ? 1 : 0;

    write_pieces(client, &at, &n);
    if (n)
        memmove(client->rest.ptr, piece.iov_base, piece.iov_len);
    client->rest.len = n ? piece.iov_len : 0;
}

/*
 * What was gathered goes to the socket, and what that does not take to `rest`.  TLS takes one piece
 * at a time, which had better be a large one.
 */
static void write_gathered(struct kiln_h2client *client)
{
    struct iovec *at = client->pieces;
    int n = client->n_pieces;

    if (!client->rest.len && !client->wire.ssl)
        write_pieces(client, &at, &n);
    for (; n; at++, n--)
        kiln_buf_add(&client->rest, at->iov_base, at->iov_len);
    if (client->rest.error)
        client->broken = client->rest.error;
    client->n_pieces = 0;
    client->heads_used = 0;
}

/* As many frames as there is room for. */
static void gather(struct kiln_h2client *client)
{
    const uint8_t *bytes;
    ssize_t n = 0;

    while (has_room(client, KILN_H2_HEADS / 2) &&
           (n = nghttp2_session_mem_send(client->session, &bytes)) > 0) {
        if (!has_room(client, (size_t)n)) { /* larger than usual */
            write_gathered(client);
            kiln_buf_add(&client->rest, bytes, (size_t)n);
            return;
        }
        add_piece(client, keep_head(client, bytes, (size_t)n), (size_t)n);
    }
    if (n < 0)
        client->broken = -EPROTO;
}

void kiln_h2_flush(struct kiln_h2client *client)
{
    for (;;) {
        write_rest(client);
        if (client->broken || client->rest.len)
            return;
        gather(client);
        if (!client->n_pieces && !client->rest.len)
            return;
        write_gathered(client);
    }
}

static ssize_t give_length(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *context)
{
    const struct kiln_h2call *call = source->ptr;
    size_t left = sizeof(call->head) + call->request->body.len - call->sent;

    (void)session, (void)stream, (void)to, (void)context;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (left <= size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)(left < size ? left : size);
}

static int give_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                     size_t len, nghttp2_data_source *source, void *context)
{
    struct kiln_h2client *client = context;
    struct kiln_h2call *call = source->ptr;
    size_t part = 0;

    (void)session, (void)frame;
    if (!has_room(client, FRAME_HEAD))
        return NGHTTP2_ERR_WOULDBLOCK;
    add_piece(client, keep_head(client, head, FRAME_HEAD), FRAME_HEAD);
    if (call->sent < sizeof(call->head)) {
        part = sizeof(call->head) - call->sent;
        part = part < len ? part : len;
        add_piece(client, call->head + call->sent, part);
        call->sent += part;
    }
    add_piece(client, call->request->body.ptr + (call->sent - sizeof(call->head)), len - part);
    call->sent += len - part;
    return 0;
}

/* ---- in ---- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *context)
{
    struct kiln_h2call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    struct kiln_str key = {(const char *)name, name_len}, text = {(const char *)value, value_len};
    uint64_t status;

    (void)flags, (void)context;
    if (!call)
        return 0;
    if (kiln_str_eq(key, KILN_STR(":status"))) {
        if (kiln_str_parse_u64(text, &status) == 0 && status <= 999)
            call->answer.status = (int)status;
        return 0;
    }
    return kiln_collected_field(&call->collected, key, text)
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t len, void *context)
{
    struct kiln_h2call *call = nghttp2_session_get_stream_user_data(session, stream);
    struct kiln_h2client *client = context;

    (void)flags;
    if (!call || kiln_collected_bytes(&call->collected, (struct kiln_str){(const char *)data, len}))
        return 0;
    call->code = kiln_err_set(&call->err, call->answer.body.error, client->server,
                              "the answer is larger than %zu bytes", client->answer_max);
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
}

/* A call that the server has not looked at goes over the next connection, once. */
static bool is_unseen(const struct kiln_h2call *call, uint32_t error)
{
    return error == NGHTTP2_REFUSED_STREAM && !call->again && !call->answer.status;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    struct kiln_h2call *call = nghttp2_session_get_stream_user_data(session, stream);
    struct kiln_h2client *client = context;

    if (!call)
        return 0;
    if (call->code == 0 && is_unseen(call, error)) {
        call->again = true;
        kiln_h2_postpone(client, call);
        return 0;
    }
    /* An answer that came before the body was taken ends with a reset. */
    if (call->code == 0 && error != NGHTTP2_NO_ERROR && !call->collected.grpc_status[0])
        call->code =
            kiln_err_set(&call->err, -ECONNRESET, client->server,
                         "the server has reset the call (%s)", nghttp2_http2_strerror(error));
    if (call->code == 0)
        call->code = kiln_collected_grpc(&call->collected, &call->err);
    kiln_h2_end(client, call, call->code, NULL);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        ((struct kiln_h2client *)context)->draining = true;
    return 0;
}

void kiln_h2_receive(struct kiln_h2client *client)
{
    uint8_t bytes[READ_BYTES];

    while (!client->broken) {
        ssize_t n = kiln_h2wire_read(&client->wire, bytes, sizeof(bytes));

        if (n == -EAGAIN)
            return;
        client->received_ns = kiln_clock_mono_ns();
        client->pinged_ns = 0;
        if (n <= 0)
            client->broken = n < 0 ? (int)n : -ECONNRESET;
        else if (nghttp2_session_mem_recv(client->session, bytes, (size_t)n) != n)
            client->broken = -EPROTO;
        else if (n < READ_BYTES && !client->wire.ssl)
            return;
    }
}

/* ---- sessions and requests ---- */

int kiln_h2_session_new(struct kiln_h2client *client)
{
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                               {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW}};
    nghttp2_session_callbacks *callbacks;
    int r;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, give_data);
    r = nghttp2_session_client_new(&client->session, callbacks, client);
    nghttp2_session_callbacks_del(callbacks);
    if (r != 0)
        return -ENOMEM;
    client->received_ns = 0;
    client->opened_ns = kiln_clock_mono_ns();
    client->pinged_ns = 0;
    r = nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings, 2);
    return r == 0 ? 0 : -ENOMEM;
}

static nghttp2_nv field(struct kiln_str name, struct kiln_str value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.ptr,
                        .namelen = name.len,
                        .value = (uint8_t *)(uintptr_t)(value.ptr ? value.ptr : ""),
                        .valuelen = value.len,
                        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static size_t put_fields(const struct kiln_h2client *client, const struct kiln_call *request,
                         nghttp2_nv *fields)
{
    size_t n = 0;

    fields[n++] = field(KILN_STR(":method"), KILN_STR("POST"));
    fields[n++] = field(KILN_STR(":scheme"), kiln_str_of(client->address.tls ? "https" : "http"));
    fields[n++] = field(KILN_STR(":path"), kiln_str_of(request->path));
    fields[n++] = field(KILN_STR(":authority"), kiln_str_of(client->address.authority));
    fields[n++] = field(KILN_STR("te"), KILN_STR("trailers"));
    fields[n++] = field(KILN_STR("content-type"), KILN_STR("application/grpc"));
    fields[n++] = field(KILN_STR("user-agent"), KILN_STR("kiln/" KILN_VERSION));
    fields[n++] = field(KILN_STR("grpc-accept-encoding"), KILN_STR("identity,gzip,zstd"));
    fields[n++] = field(KILN_STR("grpc-timeout"), kiln_str_of(client->timeout_text));
    if (request->encoding != KILN_PLAIN)
        fields[n++] =
            field(KILN_STR("grpc-encoding"), kiln_str_of(kiln_compression_name(request->encoding)));
    for (uint32_t i = 0; i < request->n_headers && n < FIELDS_MAX; i++)
        fields[n++] = field(request->headers[i].name, request->headers[i].value);
    return n;
}

int kiln_h2_submit(struct kiln_h2client *client, struct kiln_h2call *call)
{
    const nghttp2_data_provider provider = {.source.ptr = call, .read_callback = give_length};
    uint32_t len = (uint32_t)call->request->body.len;
    nghttp2_nv fields[FIELDS_MAX];
    size_t n = put_fields(client, call->request, fields);
    const uint8_t head[KILN_GRPC_HEAD_BYTES] = {call->request->encoding != KILN_PLAIN,
                                                (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                                                (uint8_t)(len >> 8), (uint8_t)len};

    memcpy(call->head, head, sizeof(head));
    call->sent = 0;
    call->stream = nghttp2_submit_request(client->session, NULL, fields, n, &provider, call);
    if (call->stream == NGHTTP2_ERR_NOMEM)
        return -ENOMEM;
    if (call->stream == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE)
        return -EADDRNOTAVAIL;
    return call->stream < 0 ? -EPIPE : 0;
}

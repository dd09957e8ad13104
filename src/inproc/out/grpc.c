/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unary call of gRPC over HTTP/2 (nghttp2).
 *
 *   request    headers; one message: flag (1: compressed), length (4 bytes, big-endian), bytes
 *   answer     headers; one message; trailers: grpc-status, grpc-message (percent-encoded),
 *              grpc-status-details-bin (google.rpc.Status in base64); or headers alone that are
 *              trailers too
 *
 * A session lives as long as its connection; one call at a time.
 */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/bytetext.h"
#include "base/mem.h"
#include "base/params.h"
#include "inproc/out/call.h"

enum {
    FRAME_HEAD = 5,
    MESSAGE_MAX = 256 << 10,
    TEXT_MAX = 8 << 10,
    READ_BYTES = 16 << 10,
    FIELDS_MAX = KILN_OTLP_HEADERS_MAX + 10,
};

/* gRPC's codes that count here. */
enum {
    CANCELLED = 1,
    UNKNOWN = 2,
    DEADLINE_EXCEEDED = 4,
    RESOURCE_EXHAUSTED = 8,
    ABORTED = 10,
    OUT_OF_RANGE = 11,
    UNAVAILABLE = 14,
    DATA_LOSS = 15,
};

/* What stderr is to nghttp2 in libkiln (cmake/inproc.cmake). */
extern void *const kiln_in_no_stream;
void *const kiln_in_no_stream = NULL;

struct kiln_in_h2 {
    nghttp2_session *session;
    struct kiln_in_wire *wire;

    /* the call under way */
    int32_t stream;
    uint8_t head[FRAME_HEAD];
    struct kiln_str body; /* what of it is still to be sent */
    size_t head_left;
    bool closed;
    uint32_t reset; /* HTTP/2's error of a stream that was reset; 0: it ended well */
    int status, rpc_code;
    bool has_rpc_code;
    struct kiln_buf message, text, details;
};

/* ---- callbacks ---- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *context)
{
    struct kiln_in_h2 *h2 = context;
    struct kiln_str key = {(const char *)name, name_len}, text = {(const char *)value, value_len};
    uint64_t number;

    (void)session;
    (void)flags;
    if (frame->hd.stream_id != h2->stream)
        return 0;
    if (kiln_str_eq(key, KILN_STR(":status")) && kiln_str_parse_u64(text, &number) == 0) {
        h2->status = number > 999 ? 0 : (int)number;
    } else if (kiln_str_eq(key, KILN_STR("grpc-status"))) {
        h2->has_rpc_code = true;
        h2->rpc_code = UNKNOWN;
        if (kiln_str_parse_u64(text, &number) == 0 && number <= 16)
            h2->rpc_code = (int)number;
    } else if (kiln_str_eq(key, KILN_STR("grpc-message"))) {
        kiln_buf_add_str(&h2->text, text);
    } else if (kiln_str_eq(key, KILN_STR("grpc-status-details-bin"))) {
        kiln_buf_add_str(&h2->details, text);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t len, void *context)
{
    struct kiln_in_h2 *h2 = context;

    (void)session;
    (void)flags;
    if (stream == h2->stream)
        kiln_buf_add(&h2->message, data, len);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *context)
{
    struct kiln_in_h2 *h2 = context;

    (void)session;
    if (stream != h2->stream)
        return 0;
    h2->closed = true;
    h2->reset = error;
    return 0;
}

static ssize_t give_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t size,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
    struct kiln_in_h2 *h2 = context;
    size_t n = 0, part;

    (void)session;
    (void)stream;
    (void)source;
    part = h2->head_left < size ? h2->head_left : size;
    memcpy(to, h2->head + FRAME_HEAD - h2->head_left, part);
    h2->head_left -= part;
    n += part;
    part = h2->body.len < size - n ? h2->body.len : size - n;
    if (part)
        memcpy(to + n, h2->body.ptr, part);
    h2->body.ptr += part;
    h2->body.len -= part;
    n += part;
    if (!h2->head_left && !h2->body.len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* ---- sessions ---- */

static int make_session(struct kiln_in_h2 *h2)
{
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 32 << 10},
    };
    nghttp2_session_callbacks *callbacks;
    int r;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    r = nghttp2_session_client_new(&h2->session, callbacks, h2);
    nghttp2_session_callbacks_del(callbacks);
    if (r == 0)
        r = nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                                    KILN_ARRAY_LEN(settings));
    return r == 0 ? 0 : -ENOMEM;
}

int kiln_in_h2_new(struct kiln_in_wire *wire, struct kiln_in_h2 **ret_h2)
{
    struct kiln_in_h2 *h2 = kiln_calloc(1, sizeof(*h2));
    int r;

    if (!h2)
        return -ENOMEM;
    h2->wire = wire;
    kiln_buf_init(&h2->message, MESSAGE_MAX);
    kiln_buf_init(&h2->text, TEXT_MAX);
    kiln_buf_init(&h2->details, TEXT_MAX);
    r = make_session(h2);
    if (r < 0) {
        kiln_in_h2_free(h2);
        return r;
    }
    *ret_h2 = h2;
    return 0;
}

void kiln_in_h2_free(struct kiln_in_h2 *h2)
{
    if (!h2)
        return;
    nghttp2_session_del(h2->session);
    kiln_buf_done(&h2->message);
    kiln_buf_done(&h2->text);
    kiln_buf_done(&h2->details);
    kiln_free(h2);
}

/* ---- a call ---- */

static nghttp2_nv field(struct kiln_str name, struct kiln_str value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.ptr,
                        .namelen = name.len,
                        .value = (uint8_t *)(uintptr_t)value.ptr,
                        .valuelen = value.len};
}

static int submit(struct kiln_in_h2 *h2, const struct kiln_otlp_target *target, bool gzip)
{
    const nghttp2_data_provider provider = {.read_callback = give_body};
    const char *behind = strstr(target->server, "://");
    nghttp2_nv fields[FIELDS_MAX];
    size_t n = 0;

    fields[n++] = field(KILN_STR(":method"), KILN_STR("POST"));
    fields[n++] =
        field(KILN_STR(":scheme"), kiln_str_starts(kiln_str_of(target->server), KILN_STR("https:"))
                                       ? KILN_STR("https")
                                       : KILN_STR("http"));
    fields[n++] = field(KILN_STR(":path"), kiln_str_of(target->path));
    fields[n++] =
        field(KILN_STR(":authority"), behind ? kiln_str_of(behind + 3) : KILN_STR("localhost"));
    fields[n++] = field(KILN_STR("te"), KILN_STR("trailers"));
    fields[n++] = field(KILN_STR("content-type"), KILN_STR("application/grpc"));
    fields[n++] = field(KILN_STR("user-agent"), KILN_STR("libkiln/" KILN_VERSION));
    fields[n++] = field(KILN_STR("grpc-accept-encoding"), KILN_STR("identity"));
    if (gzip)
        fields[n++] = field(KILN_STR("grpc-encoding"), KILN_STR("gzip"));
    for (uint32_t i = 0; i < target->n_headers; i++)
        fields[n++] = field(target->headers[i].name, target->headers[i].value);
    h2->stream = nghttp2_submit_request(h2->session, NULL, fields, n, &provider, NULL);
    return h2->stream < 0 ? -EPIPE : 0;
}

static int flush(struct kiln_in_h2 *h2, const struct kiln_in_deadline *until)
{
    for (;;) {
        const uint8_t *bytes;
        ssize_t n = nghttp2_session_mem_send(h2->session, &bytes);
        int r;

        if (n <= 0)
            return n < 0 ? -EPROTO : 0;
        r = kiln_in_wire_write(h2->wire, (struct kiln_str){(const char *)bytes, (size_t)n}, until);
        if (r < 0)
            return r;
    }
}

static int run(struct kiln_in_h2 *h2, const struct kiln_in_deadline *until)
{
    uint8_t bytes[READ_BYTES];
    int r = flush(h2, until);

    while (r == 0 && !h2->closed) {
        int n = kiln_in_wire_read(h2->wire, bytes, sizeof(bytes), until);

        if (n <= 0)
            return n < 0 ? n : -ECONNRESET;
        if (nghttp2_session_mem_recv(h2->session, bytes, (size_t)n) != n)
            return -EPROTO;
        r = flush(h2, until);
    }
    return r;
}

static void begin(struct kiln_in_h2 *h2, struct kiln_str body, bool gzip)
{
    uint32_t n = (uint32_t)body.len;
    const uint8_t head[FRAME_HEAD] = {gzip, (uint8_t)(n >> 24), (uint8_t)(n >> 16),
                                      (uint8_t)(n >> 8), (uint8_t)n};

    memcpy(h2->head, head, sizeof(head));
    h2->head_left = FRAME_HEAD;
    h2->body = body;
    h2->closed = h2->has_rpc_code = false;
    h2->reset = 0;
    h2->status = h2->rpc_code = 0;
    kiln_buf_clear(&h2->message);
    kiln_buf_clear(&h2->text);
    kiln_buf_clear(&h2->details);
}

/* ---- what it says ---- */

static bool is_retryable(int code, bool has_retry_info)
{
    switch (code) {
    case CANCELLED:
    case DEADLINE_EXCEEDED:
    case ABORTED:
    case OUT_OF_RANGE:
    case UNAVAILABLE:
    case DATA_LOSS:
        return true;
    default:
        return code == RESOURCE_EXHAUSTED && has_retry_info;
    }
}

/* When to come back, out of the details; -1: not said. */
static int64_t read_details(struct kiln_in_h2 *h2, char *message, size_t size)
{
    struct kiln_str text = kiln_buf_str(&h2->details);
    char *bytes = text.len ? kiln_malloc(kiln_base64_room(text.len)) : NULL;
    int64_t retry_ms = -1;
    size_t n;

    if (bytes && kiln_base64_decode(text, bytes, &n) == 0)
        retry_ms = kiln_in_status_read((struct kiln_str){bytes, n}, message, size);
    kiln_free(bytes);
    return retry_ms;
}

static void judge_refusal(struct kiln_in_h2 *h2, struct kiln_in_verdict *verdict)
{
    char *message = verdict->result.message;
    size_t size = sizeof(verdict->result.message);
    int64_t retry_ms = read_details(h2, message, size);
    struct kiln_buf plain;

    kiln_buf_init(&plain, TEXT_MAX);
    if (!message[0] && kiln_percent_decode(kiln_buf_str(&h2->text), false, &plain) == 0)
        snprintf(message, size, "%.*s", (int)(plain.len < size ? plain.len : size - 1),
                 plain.ptr ? plain.ptr : "");
    kiln_buf_done(&plain);
    if (!message[0])
        snprintf(message, size, "gRPC status %d", verdict->rpc_code);
    verdict->retryable = is_retryable(verdict->rpc_code, retry_ms >= 0);
    if (retry_ms > 0)
        verdict->retry_after_ms = (uint32_t)retry_ms;
}

static void judge(struct kiln_in_h2 *h2, struct kiln_in_verdict *verdict)
{
    struct kiln_str message = kiln_buf_str(&h2->message);

    verdict->status = h2->status;
    verdict->rpc_code = h2->has_rpc_code ? h2->rpc_code : UNKNOWN;
    if (!h2->has_rpc_code && h2->status != 200) {
        /* Somebody on the way answered. */
        verdict->retryable = h2->status == 429 || (h2->status >= 502 && h2->status <= 504);
        snprintf(verdict->result.message, sizeof(verdict->result.message), "HTTP status %d",
                 h2->status);
    } else if (verdict->rpc_code != 0) {
        judge_refusal(h2, verdict);
    } else {
        verdict->taken = true;
        if (message.len > FRAME_HEAD && message.ptr[0] == 0)
            kiln_otlp_answer_decode(
                (struct kiln_str){message.ptr + FRAME_HEAD, message.len - FRAME_HEAD},
                &verdict->result);
    }
}

int kiln_in_grpc_call(struct kiln_in_caller *caller, struct kiln_str body, bool gzip,
                      const struct kiln_in_deadline *until, struct kiln_in_verdict *verdict,
                      struct kiln_err *err)
{
    struct kiln_in_h2 *h2 = caller->h2;
    int r = body.len > UINT32_MAX ? KILN_E_LIMIT : 0;

    if (r < 0)
        return kiln_err_set(err, r, NULL, "a message of more than 4 GiB");
    begin(h2, body, gzip);
    r = submit(h2, caller->target, gzip);
    if (r == 0)
        r = run(h2, until);
    if (r == 0 && h2->reset && !h2->has_rpc_code)
        r = kiln_err_set(err, -ECONNRESET, NULL, "the receiver has reset the call (%s)",
                         nghttp2_http2_strerror(h2->reset));
    if (r == 0) {
        judge(h2, verdict);
        caller->calls++;
    }
    return r;
}

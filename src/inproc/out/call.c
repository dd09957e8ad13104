/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/call.h"

#include <errno.h>
#include <stdio.h>

#include "codec/pb.h"
#include "inproc/out/answer.h"

enum { HEAD_MAX = 64 << 10, READ_BYTES = 4096 };

void kiln_in_caller_init(struct kiln_in_caller *caller, const struct kiln_otlp_target *target)
{
    *caller = (struct kiln_in_caller){.target = target};
}

static void hang_up(struct kiln_in_caller *caller)
{
    kiln_in_h2_free(caller->h2);
    kiln_in_wire_close(caller->wire);
    caller->h2 = NULL;
    caller->wire = NULL;
    caller->calls = 0;
}

void kiln_in_caller_done(struct kiln_in_caller *caller)
{
    hang_up(caller);
}

static int dial(struct kiln_in_caller *caller, const struct kiln_in_deadline *until,
                struct kiln_err *err)
{
    const struct kiln_otlp_target *target = caller->target;
    const struct kiln_in_wire_opts opts = {
        .server = target->server,
        .ca_file = target->ca_file,
        .cert_file = target->cert_file,
        .key_file = target->key_file,
        .insecure = target->insecure,
        .http2 = target->protocol == KILN_OTLP_GRPC,
    };
    int r = kiln_in_wire_open(&opts, until, &caller->wire, err);

    if (r == 0 && opts.http2)
        r = kiln_in_h2_new(caller->wire, &caller->h2);
    if (r < 0)
        hang_up(caller);
    return r;
}

/* A connection that was used before may have been closed by the other side since. */
static bool is_stale(const struct kiln_in_caller *caller, int code)
{
    return caller->calls > 0 && (code == -EPIPE || code == -ECONNRESET || code == KILN_E_TRUNCATED);
}

int kiln_in_call(struct kiln_in_caller *caller, struct kiln_str body, bool gzip,
                 const struct kiln_in_deadline *until, struct kiln_in_verdict *ret_verdict,
                 struct kiln_err *err)
{
    struct kiln_err first = {0};
    int r = 0;

    if (caller->wire && !kiln_in_wire_is_quiet(caller->wire))
        hang_up(caller);
    for (int tries = 0; tries < 2; tries++) {
        bool stale;

        first = (struct kiln_err){0};
        *ret_verdict = (struct kiln_in_verdict){0};
        r = caller->wire ? 0 : dial(caller, until, &first);
        if (r == 0)
            r = caller->h2 ? kiln_in_grpc_call(caller, body, gzip, until, ret_verdict, &first)
                           : kiln_in_http_call(caller, body, gzip, until, ret_verdict, &first);
        if (r == 0)
            return 0;
        stale = is_stale(caller, r);
        hang_up(caller);
        if (!stale)
            break;
    }
    return kiln_err_set(err, r, first.where, "%s", first.text[0] ? first.text : kiln_err_text(r));
}

/* ---- google.rpc.Status ---- */

/* A google.protobuf.Duration in milliseconds, rounded up. */
static int64_t read_duration(struct kiln_str bytes)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint64_t seconds = 0, nanos = 0;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_VARINT(1))
            seconds = f.number;
        else if (f.tag == KILN_PB_VARINT(2))
            nanos = f.number;
    }
    if (n < 0 || seconds > UINT32_MAX / 1000 || nanos > 999999999)
        return n < 0 ? -1 : (int64_t)UINT32_MAX;
    return (int64_t)(seconds * 1000 + (nanos + 999999) / 1000000);
}

/* A google.protobuf.Any that may be a RetryInfo. */
static int64_t read_detail(struct kiln_str bytes)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_str type = KILN_STR_NONE, value = KILN_STR_NONE;
    struct kiln_pb_field f;
    int n;

    while ((n = kiln_pb_next(&r, &f)) > 0) {
        if (f.tag == KILN_PB_BYTES(1))
            type = f.bytes;
        else if (f.tag == KILN_PB_BYTES(2))
            value = f.bytes;
    }
    if (n < 0 || !kiln_str_ends(type, KILN_STR("/google.rpc.RetryInfo")))
        return -1;
    r = kiln_pb_of(value);
    while ((n = kiln_pb_next(&r, &f)) > 0)
        if (f.tag == KILN_PB_BYTES(1))
            return read_duration(f.bytes);
    return n < 0 ? -1 : 0;
}

int64_t kiln_in_status_read(struct kiln_str bytes, char *message, size_t size)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    int64_t retry_ms = -1;

    while (kiln_pb_next(&r, &f) > 0) {
        if (f.tag == KILN_PB_BYTES(2))
            snprintf(message, size, "%.*s", (int)(f.bytes.len < size ? f.bytes.len : size - 1),
                     f.bytes.ptr);
        else if (f.tag == KILN_PB_BYTES(3) && retry_ms < 0)
            retry_ms = read_detail(f.bytes);
    }
    return retry_ms;
}

/* ---- HTTP/1.1 ---- */

/* What stands for the server in a request: all of its address but the scheme. */
static struct kiln_str authority(const char *server)
{
    const char *behind = strstr(server, "://");

    return behind ? kiln_str_of(behind + 3) : KILN_STR("localhost");
}

static void put_head(const struct kiln_otlp_target *target, size_t body_len, bool gzip,
                     struct kiln_buf *out)
{
    struct kiln_str host = authority(target->server);

    kiln_buf_printf(out,
                    "POST %s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: libkiln/%s\r\n"
                    "Content-Type: application/x-protobuf\r\nContent-Length: %zu\r\n",
                    target->path, KILN_STR_ARG(host), KILN_VERSION, body_len);
    if (gzip)
        kiln_buf_puts(out, "Content-Encoding: gzip\r\n");
    for (uint32_t i = 0; i < target->n_headers; i++) {
        kiln_buf_add_str(out, target->headers[i].name);
        kiln_buf_puts(out, ": ");
        kiln_buf_add_str(out, target->headers[i].value);
        kiln_buf_puts(out, "\r\n");
    }
    kiln_buf_puts(out, "\r\n");
}

static int read_answer(struct kiln_in_wire *wire, const struct kiln_in_deadline *until,
                       struct kiln_in_answer *answer)
{
    char bytes[READ_BYTES];
    int r = 1;

    while (r > 0) {
        int n = kiln_in_wire_read(wire, bytes, sizeof(bytes), until);

        if (n < 0)
            return n;
        if (n == 0)
            return kiln_in_answer_end(answer);
        r = kiln_in_answer_feed(answer, (struct kiln_str){bytes, (size_t)n});
    }
    return r;
}

static void judge(const struct kiln_in_answer *answer, struct kiln_in_verdict *verdict)
{
    struct kiln_str body = kiln_buf_str(&answer->body);
    char *message = verdict->result.message;
    int status = answer->status;

    verdict->status = status;
    verdict->taken = status >= 200 && status < 300;
    verdict->retryable = status == 429 || status == 502 || status == 503 || status == 504;
    verdict->retry_after_ms = answer->retry_after_ms;
    if (verdict->taken) {
        if (answer->is_protobuf)
            kiln_otlp_answer_decode(body, &verdict->result);
        return;
    }
    if (answer->is_protobuf)
        (void)kiln_in_status_read(body, message, sizeof(verdict->result.message));
    if (!message[0])
        snprintf(message, sizeof(verdict->result.message), "HTTP status %d", status);
}

int kiln_in_http_call(struct kiln_in_caller *caller, struct kiln_str body, bool gzip,
                      const struct kiln_in_deadline *until, struct kiln_in_verdict *verdict,
                      struct kiln_err *err)
{
    struct kiln_in_answer answer;
    struct kiln_buf head;
    int r;

    (void)err;
    kiln_in_answer_init(&answer);
    kiln_buf_init(&head, HEAD_MAX);
    put_head(caller->target, body.len, gzip, &head);
    r = head.error ? head.error : kiln_in_wire_write(caller->wire, kiln_buf_str(&head), until);
    if (r == 0)
        r = kiln_in_wire_write(caller->wire, body, until);
    /* One that refuses early may have said so before it closed. */
    if (r == 0 || ((r == -EPIPE || r == -ECONNRESET) && !caller->calls))
        r = read_answer(caller->wire, until, &answer);
    if (r == 0) {
        judge(&answer, verdict);
        caller->calls++;
        if (!answer.keep_alive)
            hang_up(caller);
    }
    kiln_buf_done(&head);
    kiln_in_answer_done(&answer);
    return r;
}

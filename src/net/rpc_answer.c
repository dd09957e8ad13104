/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each protocol says that it went well, and that it did not:
 *
 *              well                                  not
 *   gRPC       200, frame; trailers grpc-status 0    200, no body; trailers grpc-status and others
 *   gRPC-Web   200, frame, frame of trailers         200, frame of trailers
 *   Connect    200, message                          status by code, JSON
 *   HTTP       200, message                          status by code, google.rpc.Status
 */
#include <stdio.h>

#include "net/rpc_int.h"

#define ANSWER_MAX   (SIZE_MAX / 2)
#define TEXT_MAX     1024u /* of a sentence: grpc-message must fit into headers everywhere */
#define COMPRESS_MIN 1400u

void kiln_rpc_answer_init(struct kiln_rpc_answer *answer)
{
    *answer = (struct kiln_rpc_answer){0};
    kiln_buf_init(&answer->body, ANSWER_MAX);
    kiln_buf_init(&answer->text, ANSWER_MAX);
    kiln_buf_init(&answer->details, ANSWER_MAX);
}

void kiln_rpc_answer_done(struct kiln_rpc_answer *answer)
{
    kiln_buf_done(&answer->body);
    kiln_buf_done(&answer->text);
    kiln_buf_done(&answer->details);
}

static struct kiln_header pair(const char *name, struct kiln_str value)
{
    return (struct kiln_header){kiln_str_of(name), value};
}

static void put_header(struct kiln_reply *reply, const char *name, struct kiln_str value)
{
    reply->headers[reply->n_headers++] = pair(name, value);
}

static const char *content_type(struct kiln_rpc_kind kind)
{
    switch (kind.protocol) {
    case KILN_RPC_GRPC:
        return "application/grpc";
    case KILN_RPC_GRPC_WEB:
        return "application/grpc-web+proto";
    case KILN_RPC_CONNECT:
        return kind.json ? "application/json" : "application/proto";
    default:
        return kind.json ? "application/json" : "application/x-protobuf";
    }
}

static bool framed(struct kiln_rpc_kind kind)
{
    return kind.protocol == KILN_RPC_GRPC || kind.protocol == KILN_RPC_GRPC_WEB;
}

/* Where memory is lacking: an answer that needs none. */
static void answer_constant(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind)
{
    answer->reply = (struct kiln_reply){.status = 503, .as_is = true};
    put_header(&answer->reply, "retry-after", KILN_STR("1"));
    if (kind.protocol == KILN_RPC_GRPC) {
        answer->reply = (struct kiln_reply){.status = 200, .as_is = true};
        answer->reply.content_type = content_type(kind);
        answer->reply.trailers[answer->reply.n_trailers++] = pair("grpc-status", KILN_STR("14"));
    }
}

static void finish(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind)
{
    if (answer->body.error || answer->text.error || answer->details.error)
        answer_constant(answer, kind);
    else
        answer->reply.body = kiln_buf_str(&answer->body);
}

/* ---- trailers ---- */

static void put_trailer(struct kiln_rpc_answer *answer, const char *name, struct kiln_str value)
{
    answer->reply.trailers[answer->reply.n_trailers++] = pair(name, value);
}

/* gRPC-Web: the trailers as the text of a last frame. */
static void frame_trailers(struct kiln_rpc_answer *answer)
{
    struct kiln_reply *reply = &answer->reply;
    struct kiln_buf lines;

    kiln_buf_init(&lines, ANSWER_MAX);
    for (uint32_t i = 0; i < reply->n_trailers; i++) {
        kiln_buf_add_str(&lines, reply->trailers[i].name);
        kiln_buf_puts(&lines, ": ");
        kiln_buf_add_str(&lines, reply->trailers[i].value);
        kiln_buf_puts(&lines, "\r\n");
    }
    kiln_grpc_frame_put(&answer->body, KILN_GRPC_TRAILERS, kiln_buf_str(&lines));
    if (lines.error)
        answer->body.error = lines.error;
    kiln_buf_done(&lines);
    reply->n_trailers = 0;
}

static void end_frames(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind)
{
    answer->reply.as_is = true;
    if (kind.protocol == KILN_RPC_GRPC_WEB)
        frame_trailers(answer);
}

/* ---- a message ---- */

/* True if the message went out compressed, which is only done where it pays. */
static bool frame_compressed(struct kiln_rpc_answer *answer, struct kiln_str message)
{
    bool pays;

    if (kiln_compress(KILN_GZIP, 0, message, &answer->text) < 0) {
        kiln_buf_clear(&answer->text);
        return false;
    }
    pays = answer->text.len < message.len;
    if (pays)
        kiln_grpc_frame_put(&answer->body, KILN_GRPC_COMPRESSED, kiln_buf_str(&answer->text));
    return pays;
}

/* What the next message may be compressed with: who sends many can take the best of them. */
static void put_codings(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind)
{
    if (kind.protocol == KILN_RPC_GRPC)
        put_header(&answer->reply, "grpc-accept-encoding", KILN_STR(KILN_RPC_ENCODINGS));
    else if (kind.protocol == KILN_RPC_HTTP)
        put_header(&answer->reply, "accept-encoding", KILN_STR("gzip, zstd"));
}

void kiln_rpc_answer_message(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind,
                             struct kiln_str message)
{
    answer->reply.status = 200;
    answer->reply.content_type = content_type(kind);
    if (!framed(kind)) {
        kiln_buf_add_str(&answer->body, message);
    } else {
        if (kind.gzip && message.len >= COMPRESS_MIN && frame_compressed(answer, message))
            put_header(&answer->reply, "grpc-encoding", KILN_STR("gzip"));
        else
            kiln_grpc_frame_put(&answer->body, 0, message);
        put_trailer(answer, "grpc-status", KILN_STR("0"));
        end_frames(answer, kind);
    }
    put_codings(answer, kind);
    finish(answer, kind);
}

/* ---- a status ---- */

static void answer_grpc_status(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind,
                               const struct kiln_rpc_status *status)
{
    struct kiln_buf details;

    answer->reply.status = 200;
    answer->reply.content_type = content_type(kind);
    snprintf(answer->code, sizeof(answer->code), "%d", status->code);
    put_trailer(answer, "grpc-status", kiln_str_of(answer->code));
    kiln_grpc_text_put(&answer->text, kiln_str_of(status->message));
    put_trailer(answer, "grpc-message", kiln_buf_str(&answer->text));
    if (status->retry_after_s || status->field) {
        kiln_buf_init(&details, ANSWER_MAX);
        kiln_status_encode(status, &details);
        kiln_base64_bare_put(&answer->details, kiln_buf_str(&details));
        if (details.error)
            answer->details.error = details.error;
        kiln_buf_done(&details);
        put_trailer(answer, "grpc-status-details-bin", kiln_buf_str(&answer->details));
    }
    end_frames(answer, kind);
}

static void answer_http_status(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind,
                               const struct kiln_rpc_status *status)
{
    bool connect = kind.protocol == KILN_RPC_CONNECT;

    answer->reply.status =
        connect ? kiln_rpc_code_connect(status->code) : kiln_rpc_code_http(status->code);
    if (status->http_status)
        answer->reply.status = status->http_status;
    kind.json |= connect;
    answer->reply.content_type = content_type(kind);
    if (connect)
        kiln_status_format_connect(status, &answer->body);
    else if (kind.json)
        kiln_status_format(status, &answer->body);
    else
        kiln_status_encode(status, &answer->body);
    if (status->retry_after_s) {
        snprintf(answer->retry_after, sizeof(answer->retry_after), "%u", status->retry_after_s);
        put_header(&answer->reply, "retry-after", kiln_str_of(answer->retry_after));
    }
}

/* At most TEXT_MAX - 1 bytes of a text, whole characters of UTF-8 only. */
static void shorten(const char *text, char ret[TEXT_MAX])
{
    struct kiln_str rest = kiln_str_of(text);
    size_t n = 0;

    while (rest.len) {
        size_t len = kiln_utf8_len(rest);
        size_t step = len ? len : 1;

        if (n + step >= TEXT_MAX)
            break;
        if (len)
            memcpy(ret + n, rest.ptr, len);
        else
            ret[n] = '?';
        n += step;
        rest.ptr += step;
        rest.len -= step;
    }
    ret[n] = '\0';
}

void kiln_rpc_answer_status(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind,
                            const struct kiln_rpc_status *status)
{
    char message[TEXT_MAX], field[TEXT_MAX];
    struct kiln_rpc_status said = *status;

    shorten(status->message, message);
    said.message = message;
    if (status->field) {
        shorten(status->field, field);
        said.field = field;
    }
    if (framed(kind))
        answer_grpc_status(answer, kind, &said);
    else
        answer_http_status(answer, kind, &said);
    finish(answer, kind);
}

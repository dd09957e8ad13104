/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an answer says: its sentence out of text, JSON or google.rpc.Status, whether another try is
 * allowed, and when.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/client_int.h"
#include "net/grpc.h"

#define ANSWER_MAX (4u << 20)
#define HEADER_MAX (64u << 10)

void kiln_answer_init(struct kiln_answer *answer)
{
    *answer = (struct kiln_answer){0};
    kiln_buf_init(&answer->body, ANSWER_MAX);
}

void kiln_answer_done(struct kiln_answer *answer)
{
    kiln_buf_done(&answer->body);
}

/* ---- collecting ---- */

void kiln_collected_init(struct kiln_collected *c, struct kiln_answer *answer, const char *server,
                         size_t answer_max)
{
    struct kiln_buf body = answer->body;

    kiln_buf_clear(&body);
    body.max = answer_max + KILN_GRPC_HEAD_BYTES;
    *answer = (struct kiln_answer){.body = body};
    *c = (struct kiln_collected){.answer = answer, .server = server, .answer_max = answer_max};
    kiln_buf_init(&c->message, HEADER_MAX);
    kiln_buf_init(&c->details, HEADER_MAX);
}

void kiln_collected_done(struct kiln_collected *c)
{
    kiln_buf_done(&c->message);
    kiln_buf_done(&c->details);
}

void kiln_keep_text(struct kiln_str text, char *ret, size_t size)
{
    snprintf(ret, size, "%.*s", text.len >= size ? (int)size - 1 : (int)text.len,
             text.ptr ? text.ptr : "");
}

static bool names(struct kiln_str name, const char *wanted)
{
    return name.len == strlen(wanted) && strncasecmp(name.ptr, wanted, name.len) == 0;
}

bool kiln_collected_line(struct kiln_collected *c, struct kiln_str line)
{
    struct kiln_str name = kiln_str_cut(&line, ':');

    return kiln_collected_field(c, name, kiln_str_trim(line));
}

bool kiln_collected_field(struct kiln_collected *c, struct kiln_str name, struct kiln_str line)
{
    c->header_bytes += name.len + line.len;
    if (c->header_bytes > HEADER_MAX)
        return false;
    if (names(name, "content-type"))
        kiln_keep_text(line, c->type, sizeof(c->type));
    else if (names(name, "grpc-encoding"))
        kiln_keep_text(line, c->encoding, sizeof(c->encoding));
    else if (names(name, "grpc-status"))
        kiln_keep_text(line, c->grpc_status, sizeof(c->grpc_status));
    else if (names(name, "retry-after"))
        kiln_keep_text(line, c->retry_after, sizeof(c->retry_after));
    else if (names(name, "grpc-accept-encoding") || names(name, "accept-encoding"))
        c->answer->takes_zstd = kiln_str_contains(line, KILN_STR("zstd"));
    else if (names(name, "x-kiln-notes"))
        kiln_keep_text(line, c->answer->notes, sizeof(c->answer->notes));
    else if (names(name, "grpc-message"))
        kiln_buf_add_str(&c->message, line);
    else if (names(name, "grpc-status-details-bin"))
        kiln_buf_add_str(&c->details, line);
    return true;
}

bool kiln_collected_bytes(struct kiln_collected *c, struct kiln_str bytes)
{
    kiln_buf_add_str(&c->answer->body, bytes);
    return !c->answer->body.error;
}

/* ---- HTTP ---- */

/* "120" or "Sun, 06 Nov 1994 08:49:37 GMT", in milliseconds from now; 0 for neither. */
static uint32_t parse_retry_after(const char *text)
{
    uint64_t ms;

    if (kiln_str_parse_u64(kiln_str_of(text), &ms) == 0) {
        ms = ms > UINT32_MAX ? UINT32_MAX : ms * 1000;
    } else {
        int64_t at = text[0] ? (int64_t)curl_getdate(text, NULL) : -1;
        int64_t now = (int64_t)(kiln_clock_unix_ns() / KILN_NS_PER_MS);

        ms = at > 0 && at * 1000 > now ? (uint64_t)(at * 1000 - now) : 0;
    }
    return ms > UINT32_MAX ? UINT32_MAX : (uint32_t)ms;
}

/* The "message" (else "error") of an object; of {"error": {"code": ..., "message": ...}} the inner
 * one, and its code. */
static int read_message(struct kiln_json *r, bool inner, struct kiln_answer *answer)
{
    struct kiln_str name, text;
    bool found = false;
    int n = kiln_json_object(r);

    while (n == 0 && kiln_json_member(r, &name) > 0) {
        bool message = kiln_str_eq(name, KILN_STR("message"));
        bool error = !found && kiln_str_eq(name, KILN_STR("error"));
        bool code = inner && kiln_str_eq(name, KILN_STR("code"));
        enum kiln_json_kind kind = kiln_json_peek(r);

        if (error && !inner && kind == KILN_JSON_OBJECT) {
            n = read_message(r, true, answer);
            continue;
        }
        if (!(message || error || code) || kind != KILN_JSON_STRING) {
            n = kiln_json_skip(r);
            continue;
        }
        n = kiln_json_string(r, &text);
        if (n == 0 && code)
            kiln_keep_text(text, answer->word, sizeof(answer->word));
        else if (n == 0)
            kiln_keep_text(text, answer->message, sizeof(answer->message));
        found |= n == 0 && message;
    }
    return n;
}

static void json_message(struct kiln_str body, struct kiln_answer *answer)
{
    struct kiln_json r;

    kiln_json_init(&r, body, NULL);
    (void)!read_message(&r, false, answer);
    kiln_json_done(&r);
}

static void read_refusal(const struct kiln_collected *c)
{
    struct kiln_answer *answer = c->answer;
    struct kiln_str type = kiln_str_of(c->type);
    struct kiln_str body = kiln_buf_str(&answer->body);
    struct kiln_status_info info;

    if (kiln_str_contains(type, KILN_STR("protobuf")) && kiln_status_decode(body, &info) == 0)
        kiln_keep_text(info.message, answer->message, sizeof(answer->message));
    else if (kiln_str_contains(type, KILN_STR("json")))
        json_message(body, answer);
    else if (kiln_str_starts(type, KILN_STR("text/plain")))
        kiln_keep_text(kiln_str_trim(kiln_str_cut(&body, '\n')), answer->message,
                       sizeof(answer->message));
    if (!answer->message[0])
        snprintf(answer->message, sizeof(answer->message), "HTTP status %d", answer->status);
}

void kiln_collected_http(struct kiln_collected *c)
{
    int status = c->answer->status;

    if (status >= 200 && status < 300)
        return;
    c->answer->retryable = status == 429 || status == 502 || status == 503 || status == 504;
    c->answer->retry_after_ms = parse_retry_after(c->retry_after);
    read_refusal(c);
}

/* ---- gRPC ---- */

static bool grpc_retryable(int code, bool has_retry_info)
{
    switch (code) {
    case KILN_RPC_CANCELLED:
    case KILN_RPC_DEADLINE_EXCEEDED:
    case KILN_RPC_ABORTED:
    case KILN_RPC_OUT_OF_RANGE:
    case KILN_RPC_UNAVAILABLE:
    case KILN_RPC_DATA_LOSS:
        return true;
    case KILN_RPC_RESOURCE_EXHAUSTED:
        return has_retry_info;
    default:
        return false;
    }
}

/* RetryInfo out of grpc-status-details-bin; true if there is one. */
static bool read_details(struct kiln_answer *answer, struct kiln_str text)
{
    char *bytes = text.len ? kiln_malloc(kiln_base64_room(text.len)) : NULL;
    struct kiln_status_info info = {0};
    size_t len;

    if (!bytes)
        return false;
    if (kiln_base64_decode(text, bytes, &len) < 0 ||
        kiln_status_decode((struct kiln_str){bytes, len}, &info) < 0)
        info.has_retry = false;
    kiln_free(bytes);
    if (info.has_retry)
        answer->retry_after_ms = info.retry_after_ms;
    return info.has_retry;
}

static void grpc_refusal(const struct kiln_collected *c)
{
    struct kiln_answer *answer = c->answer;
    struct kiln_buf text;
    bool has_retry_info;

    kiln_buf_init(&text, HEADER_MAX);
    kiln_grpc_text_get(&text, kiln_buf_str(&c->message));
    kiln_keep_text(kiln_buf_str(&text), answer->message, sizeof(answer->message));
    kiln_buf_done(&text);
    if (!answer->message[0])
        snprintf(answer->message, sizeof(answer->message), "gRPC status %s",
                 kiln_rpc_code_word((enum kiln_rpc_code)answer->rpc_code));
    has_retry_info = read_details(answer, kiln_buf_str(&c->details));
    answer->retryable = grpc_retryable(answer->rpc_code, has_retry_info);
    kiln_buf_clear(&answer->body);
}

/* The message of the answer takes the place of its frame. */
static int unwrap_message(const struct kiln_collected *c, struct kiln_err *err)
{
    struct kiln_str rest = kiln_buf_str(&c->answer->body);
    enum kiln_compression compression = KILN_PLAIN;
    struct kiln_grpc_frame frame;
    struct kiln_buf message;
    int r = kiln_grpc_frame_next(&rest, c->answer_max, &frame);

    if (r <= 0 || rest.len || (frame.flags & KILN_GRPC_TRAILERS))
        return kiln_err_set(err, KILN_E_MALFORMED, c->server, "the answer is not one gRPC message");
    if ((frame.flags & KILN_GRPC_COMPRESSED) &&
        (kiln_grpc_encoding(kiln_str_of(c->encoding), &compression) < 0 || !compression))
        return kiln_err_set(err, KILN_E_UNSUPPORTED, c->server,
                            "the answer is compressed with \"%s\"", c->encoding);
    kiln_buf_init(&message, c->answer_max);
    r = kiln_decompress(compression, frame.payload, &message, err);
    if (r < 0) {
        kiln_buf_done(&message);
        kiln_err_within(err, "%s", c->server);
        return r;
    }
    kiln_buf_done(&c->answer->body);
    c->answer->body = message;
    return 0;
}

/* Without a status of gRPC's: somebody on the way answered, or it is no gRPC server at all. */
static void no_grpc_status(struct kiln_collected *c)
{
    struct kiln_answer *answer = c->answer;

    kiln_collected_http(c);
    answer->rpc_code =
        answer->status == 200 ? KILN_RPC_UNKNOWN : (int)kiln_rpc_code_of_http(answer->status);
    if (answer->status == 200)
        snprintf(answer->message, sizeof(answer->message), "the answer has no gRPC status");
}

int kiln_collected_grpc(struct kiln_collected *c, struct kiln_err *err)
{
    uint64_t code;

    if (c->grpc_status[0] == '\0') {
        no_grpc_status(c);
        return 0;
    }
    c->answer->rpc_code = KILN_RPC_UNKNOWN;
    if (kiln_str_parse_u64(kiln_str_of(c->grpc_status), &code) == 0 && code <= 16)
        c->answer->rpc_code = (int)code;
    c->answer->rpc_ok = c->answer->rpc_code == KILN_RPC_OK;
    if (c->answer->rpc_ok)
        return unwrap_message(c, err);
    grpc_refusal(c);
    return 0;
}

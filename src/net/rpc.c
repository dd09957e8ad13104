/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a call and back.  A route of the router leads here (dispatch); the row that
 * says which handler is meant is the route's context and lives as long as the router.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "net/rpc_int.h"

/* ---- how the caller speaks ---- */

static const struct {
    const char *type;
    enum kiln_rpc_protocol protocol;
    bool json;
    bool on_http_paths;
} types[] = {
    {"application/grpc", KILN_RPC_GRPC, false, false},
    {"application/grpc+proto", KILN_RPC_GRPC, false, false},
    {"application/grpc-web", KILN_RPC_GRPC_WEB, false, false},
    {"application/grpc-web+proto", KILN_RPC_GRPC_WEB, false, false},
    {"application/proto", KILN_RPC_CONNECT, false, false},
    {"application/json", KILN_RPC_CONNECT, true, true},
    {"application/x-protobuf", KILN_RPC_HTTP, false, true},
    {"application/protobuf", KILN_RPC_HTTP, false, true},
};

#define TYPES_ALL                                                                                  \
    "application/grpc, application/grpc+proto, application/grpc-web, "                             \
    "application/grpc-web+proto, application/proto, application/json, application/x-protobuf"
#define TYPES_HTTP "application/x-protobuf, application/protobuf, application/json"

static bool eq_any_case(struct kiln_str a, const char *b)
{
    return a.len == strlen(b) && (a.len == 0 || strncasecmp(a.ptr, b, a.len) == 0);
}

/* True if a list like "gzip, identity;q=1" has this word. */
static bool lists(struct kiln_str list, const char *word)
{
    while (list.len) {
        struct kiln_str item = kiln_str_cut(&list, ',');

        if (eq_any_case(kiln_str_trim(kiln_str_cut(&item, ';')), word))
            return true;
    }
    return false;
}

int kiln_rpc_kind_of(const struct kiln_request *request, bool http_only,
                     struct kiln_rpc_kind *ret_kind)
{
    struct kiln_str header = kiln_request_header(request, "content-type");
    struct kiln_str type = kiln_str_trim(kiln_str_cut(&header, ';'));

    *ret_kind = (struct kiln_rpc_kind){.protocol = KILN_RPC_HTTP};
    for (size_t i = 0; i < KILN_ARRAY_LEN(types); i++) {
        if (!eq_any_case(type, types[i].type))
            continue;
        ret_kind->protocol = types[i].protocol;
        ret_kind->json = types[i].json;
        if (http_only && types[i].on_http_paths)
            ret_kind->protocol = KILN_RPC_HTTP;
        if (http_only && !types[i].on_http_paths)
            return KILN_E_UNSUPPORTED;
        ret_kind->gzip = lists(kiln_request_header(request, "grpc-accept-encoding"), "gzip");
        return 0;
    }
    ret_kind->json = kiln_str_ends(type, KILN_STR("json"));
    return KILN_E_UNSUPPORTED;
}

/* ---- answers ---- */

static void send_status(struct kiln_request *request, struct kiln_rpc_kind kind,
                        const struct kiln_rpc_status *status, const struct kiln_header *more)
{
    struct kiln_rpc_answer answer;

    kiln_rpc_answer_init(&answer);
    kiln_rpc_answer_status(&answer, kind, status);
    if (more)
        answer.reply.headers[answer.reply.n_headers++] = *more;
    kiln_request_reply(request, &answer.reply);
    kiln_rpc_answer_done(&answer);
}

static struct kiln_rpc_kind kind_of_call(const struct kiln_rpc *rpc)
{
    struct kiln_str accepted = kiln_request_header(rpc->request, "grpc-accept-encoding");

    return (struct kiln_rpc_kind){rpc->protocol, rpc->json, lists(accepted, "gzip")};
}

void kiln_rpc_reply(struct kiln_rpc *rpc, struct kiln_str message)
{
    struct kiln_rpc_answer answer;

    kiln_rpc_answer_init(&answer);
    kiln_rpc_answer_message(&answer, kind_of_call(rpc), message);
    kiln_request_reply(rpc->request, &answer.reply);
    kiln_rpc_answer_done(&answer);
    kiln_free(rpc);
}

void kiln_rpc_leave(struct kiln_rpc *rpc)
{
    kiln_free(rpc);
}

void kiln_rpc_fail(struct kiln_rpc *rpc, const struct kiln_rpc_status *status)
{
    send_status(rpc->request, kind_of_call(rpc), status, NULL);
    kiln_free(rpc);
}

/* ---- calls ---- */

struct method {
    struct kiln_rpc_route route;
    size_t message_max;
};

static int refuse(struct kiln_rpc_status *status, enum kiln_rpc_code code, const char *message)
{
    *status = (struct kiln_rpc_status){.code = code, .message = message};
    return -EINVAL;
}

static int refuse_frame(struct kiln_rpc_status *status, int error)
{
    switch (error) {
    case 0:
        return refuse(status, KILN_RPC_UNIMPLEMENTED, "the call has no message, but takes one");
    case KILN_E_LIMIT:
        return refuse(status, KILN_RPC_RESOURCE_EXHAUSTED,
                      "the message is larger than this method takes");
    case KILN_E_TRUNCATED:
        return refuse(status, KILN_RPC_INTERNAL, "the message is shorter than its frame says");
    default:
        return refuse(status, KILN_RPC_INTERNAL, "the frame has flags that gRPC does not define");
    }
}

int kiln_rpc_unwrap(const struct kiln_request *request, size_t max, struct kiln_rpc *rpc,
                    struct kiln_rpc_status *status)
{
    struct kiln_str rest = request->body;
    struct kiln_grpc_frame frame;
    int n;

    if (request->encoding != KILN_PLAIN)
        return refuse(status, KILN_RPC_UNIMPLEMENTED,
                      "gRPC compresses messages (grpc-encoding), not bodies (content-encoding)");
    n = kiln_grpc_frame_next(&rest, max, &frame);
    if (n <= 0)
        return refuse_frame(status, n);
    if (rest.len)
        return refuse(status, KILN_RPC_UNIMPLEMENTED, "the call has more than one message");
    if (frame.flags & KILN_GRPC_TRAILERS)
        return refuse_frame(status, KILN_E_MALFORMED);
    if (kiln_grpc_encoding(kiln_request_header(request, "grpc-encoding"), &rpc->compression) < 0)
        return refuse(status, KILN_RPC_UNIMPLEMENTED,
                      "this grpc-encoding is not known here (" KILN_RPC_ENCODINGS " are)");
    if (!(frame.flags & KILN_GRPC_COMPRESSED))
        rpc->compression = KILN_PLAIN;
    else if (rpc->compression == KILN_PLAIN)
        return refuse(status, KILN_RPC_INTERNAL,
                      "the message is marked as compressed, but grpc-encoding names nothing");
    rpc->message = frame.payload;
    return 0;
}

/* Content types that a path does not take. */
static void refuse_type(struct kiln_request *request, struct kiln_rpc_kind kind, bool http_only)
{
    const char *taken = http_only ? TYPES_HTTP : TYPES_ALL;
    const struct kiln_header accept = {KILN_STR("accept-post"), kiln_str_of(taken)};
    struct kiln_str type = kiln_request_header(request, "content-type");
    char message[512];

    snprintf(message, sizeof(message), "content type \"%.*s\" is not taken here; taken are %s",
             type.len > 80 ? 80 : (int)type.len, type.ptr ? type.ptr : "", taken);
    send_status(request, kind,
                &(struct kiln_rpc_status){
                    .code = KILN_RPC_UNIMPLEMENTED, .http_status = 415, .message = message},
                &accept);
}

static int frame_call(struct kiln_request *request, const struct method *method,
                      struct kiln_rpc_kind kind, struct kiln_rpc *call)
{
    static const struct kiln_header encodings = {
        {"grpc-accept-encoding", 20}, {KILN_RPC_ENCODINGS, sizeof(KILN_RPC_ENCODINGS) - 1}};
    struct kiln_rpc_status status;

    if (kiln_rpc_unwrap(request, method->message_max, call, &status) == 0)
        return 0;
    send_status(request, kind, &status, &encodings);
    return -EINVAL;
}

/* "grpc-timeout: 1500m": at most eight digits and a unit; anything else says nothing. */
static uint64_t grpc_timeout_ms(struct kiln_str value)
{
    static const struct {
        char unit;
        uint32_t ms, parts; /* of a millisecond */
    } units[] = {{'H', 3600000, 1}, {'M', 60000, 1}, {'S', 1000, 1},
                 {'m', 1, 1},       {'u', 1, 1000},  {'n', 1, 1000000}};
    uint64_t n;

    if (value.len < 2 || value.len > 9 ||
        kiln_str_parse_u64((struct kiln_str){value.ptr, value.len - 1}, &n) < 0)
        return 0;
    for (size_t i = 0; i < KILN_ARRAY_LEN(units); i++)
        if (value.ptr[value.len - 1] == units[i].unit)
            return n ? (n * units[i].ms + units[i].parts - 1) / units[i].parts : 1;
    return 0;
}

uint64_t kiln_rpc_timeout_ms(const struct kiln_request *request, enum kiln_rpc_protocol protocol)
{
    struct kiln_str value;
    uint64_t ms;

    if (protocol == KILN_RPC_GRPC || protocol == KILN_RPC_GRPC_WEB)
        return grpc_timeout_ms(kiln_request_header(request, "grpc-timeout"));
    if (protocol != KILN_RPC_CONNECT)
        return 0;
    value = kiln_request_header(request, "connect-timeout-ms");
    if (value.len == 0 || value.len > 10 || kiln_str_parse_u64(value, &ms) < 0)
        return 0;
    return ms ? ms : 1;
}

static bool is_framed(enum kiln_rpc_protocol protocol)
{
    return protocol == KILN_RPC_GRPC || protocol == KILN_RPC_GRPC_WEB;
}

static struct kiln_rpc call_of(struct kiln_request *request, const struct method *method,
                               struct kiln_rpc_kind kind)
{
    return (struct kiln_rpc){.request = request,
                             .protocol = kind.protocol,
                             .json = kind.json,
                             .message = request->body,
                             .compression = request->encoding,
                             .timeout_ms = kiln_rpc_timeout_ms(request, kind.protocol),
                             .context = method->route.context};
}

static struct kiln_rpc *copy_of(const struct kiln_rpc *made)
{
    struct kiln_rpc *rpc = kiln_malloc(sizeof(*rpc));

    if (rpc)
        *rpc = *made;
    return rpc;
}

/* Makes a call of the request and hands it to the handler. */
static void call(struct kiln_request *request, const struct method *method,
                 struct kiln_rpc_kind kind)
{
    struct kiln_rpc made = call_of(request, method, kind), *rpc;

    if (is_framed(kind.protocol) && frame_call(request, method, kind, &made) < 0)
        return;
    rpc = copy_of(&made);
    if (!rpc) {
        send_status(request, kind,
                    &(struct kiln_rpc_status){.code = KILN_RPC_UNAVAILABLE,
                                              .retry_after_s = 1,
                                              .message = "out of memory"},
                    NULL);
        return;
    }
    method->route.handler(rpc);
}

/* Whatever is wrong with it is said by dispatch(), on a worker. */
static bool dispatch_at_once(struct kiln_request *request)
{
    const struct method *method = request->context;
    struct kiln_rpc_status status;
    struct kiln_rpc_kind kind;
    struct kiln_rpc made, *rpc;

    if (kiln_rpc_kind_of(request, method->route.http_only, &kind) < 0)
        return false;
    made = call_of(request, method, kind);
    if (is_framed(kind.protocol) &&
        kiln_rpc_unwrap(request, method->message_max, &made, &status) < 0)
        return false;
    rpc = copy_of(&made);
    if (rpc && method->route.at_once(rpc))
        return true;
    kiln_free(rpc);
    return false;
}

static void dispatch(struct kiln_request *request)
{
    const struct method *method = request->context;
    struct kiln_rpc_kind kind;

    if (kiln_rpc_kind_of(request, method->route.http_only, &kind) < 0)
        refuse_type(request, kind, method->route.http_only);
    else
        call(request, method, kind);
}

int kiln_rpc_add(struct kiln_router *router, const struct kiln_rpc_route *route)
{
    struct method *method = kiln_calloc(1, sizeof(*method));
    int r;

    if (!method)
        return -ENOMEM;
    method->route = *route;
    method->route.path = NULL; /* the router keeps it */
    method->message_max = route->body_max ? route->body_max : UINT32_MAX;
    kiln_router_translate(router, kiln_rpc_translate);
    r = kiln_router_add(router,
                        &(struct kiln_route){.method = "POST",
                                             .path = route->path,
                                             .access = route->access,
                                             .handler = dispatch,
                                             .at_once = route->at_once ? dispatch_at_once : NULL,
                                             .context = method,
                                             .done = kiln_free,
                                             .body_max = route->body_max,
                                             .lane = route->lane});
    if (r < 0)
        kiln_free(method);
    return r;
}

/* ---- refusals ---- */

/* "/package.Service/Method" */
static bool looks_like_a_method(struct kiln_str path)
{
    struct kiln_str service;

    if (path.len < 2 || path.ptr[0] != '/')
        return false;
    path.ptr++;
    path.len--;
    service = kiln_str_cut(&path, '/');
    return path.len && memchr(service.ptr, '.', service.len) && !memchr(path.ptr, '/', path.len);
}

/* As kiln_rpc_kind_of() where the route is not known: JSON is Connect's only on a method's path. */
static bool speaks_rpc(const struct kiln_request *request, struct kiln_rpc_kind *ret_kind)
{
    bool http_only = !looks_like_a_method(request->path);
    int r = kiln_rpc_kind_of(request, false, ret_kind);

    if (r == 0 && ret_kind->json && http_only)
        ret_kind->protocol = KILN_RPC_HTTP;
    return r == 0;
}

void kiln_rpc_unknown(struct kiln_request *request)
{
    struct kiln_rpc_status status = {.code = KILN_RPC_UNIMPLEMENTED};
    struct kiln_rpc_kind kind;
    char message[256];

    snprintf(message, sizeof(message), "no such path: %.*s",
             request->path.len > 200 ? 200 : (int)request->path.len, request->path.ptr);
    status.message = message;
    if (speaks_rpc(request, &kind))
        send_status(request, kind, &status, NULL);
    else
        kiln_request_reply_text(request, 404, "%s\n", message);
}

static uint32_t retry_after_of(const struct kiln_reply *reply)
{
    uint64_t seconds = 0;

    for (uint32_t i = 0; i < reply->n_headers; i++)
        if (eq_any_case(reply->headers[i].name, "retry-after") &&
            kiln_str_parse_u64(reply->headers[i].value, &seconds) < 0)
            seconds = 1;
    return seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
}

static void move_text(struct kiln_buf *scratch, struct kiln_str *text)
{
    const char *to = scratch->ptr + scratch->len;

    kiln_buf_add_str(scratch, *text);
    text->ptr = to;
}

/* Makes the texts of a reply stand in `scratch`, which outlives the answer they were made in. */
static void move_texts(struct kiln_reply *reply, struct kiln_buf *scratch)
{
    size_t need = reply->body.len;

    for (uint32_t i = 0; i < reply->n_headers; i++)
        need += reply->headers[i].value.len;
    for (uint32_t i = 0; i < reply->n_trailers; i++)
        need += reply->trailers[i].value.len;
    if (!kiln_buf_reserve(scratch, need))
        return;
    for (uint32_t i = 0; i < reply->n_headers; i++)
        move_text(scratch, &reply->headers[i].value);
    for (uint32_t i = 0; i < reply->n_trailers; i++)
        move_text(scratch, &reply->trailers[i].value);
    move_text(scratch, &reply->body);
}

/* Headers of the refusal that HTTP callers want to see too (Allow, WWW-Authenticate). */
static void keep_headers(const struct kiln_reply *from, struct kiln_reply *to)
{
    for (uint32_t i = 0; i < from->n_headers && to->n_headers < KILN_REPLY_HEADERS; i++)
        if (!eq_any_case(from->headers[i].name, "retry-after"))
            to->headers[to->n_headers++] = from->headers[i];
}

void kiln_rpc_translate(const struct kiln_request *request, struct kiln_reply *reply,
                        struct kiln_buf *scratch)
{
    struct kiln_str text = kiln_str_trim(reply->body);
    struct kiln_rpc_answer answer;
    struct kiln_rpc_kind kind;
    struct kiln_reply made;
    char message[512];

    if (reply->status < 400 || !speaks_rpc(request, &kind))
        return;
    snprintf(message, sizeof(message), "%.*s", text.len > 500 ? 500 : (int)text.len,
             text.ptr ? text.ptr : "");
    kiln_rpc_answer_init(&answer);
    kiln_rpc_answer_status(&answer, kind,
                           &(struct kiln_rpc_status){.code = kiln_rpc_code_of_http(reply->status),
                                                     .http_status = reply->status,
                                                     .retry_after_s = retry_after_of(reply),
                                                     .message = message[0] ? message : "refused"});
    made = answer.reply;
    if (made.n_trailers == 0)
        keep_headers(reply, &made);
    move_texts(&made, scratch);
    if (!scratch->error) {
        made.close = reply->close;
        *reply = made;
    }
    kiln_rpc_answer_done(&answer);
}

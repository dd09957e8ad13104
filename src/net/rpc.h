/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc - one handler for a method, called by gRPC, gRPC-Web, Connect or plain HTTP.
 *
 * The Content-Type of a POST says which:
 *   application/grpc, +proto            gRPC: 5-byte frames, status in trailers
 *   application/grpc-web, +proto        the same with the trailers in a last frame
 *   application/proto, application/json Connect (unary): bare message, errors as JSON
 *   application/x-protobuf              plain OTLP/HTTP: errors as google.rpc.Status
 * A handler sees the message and its encoding, and answers with a message or a status.
 *
 * Threads: as net/server.h.
 */
#ifndef KILN_NET_RPC_H
#define KILN_NET_RPC_H

#include "net/server.h"

/* number, name, Connect's word, HTTP status under Connect, HTTP status under OTLP/HTTP */
#define KILN_RPC_CODE_MAP(X)                                                                       \
    X(0, OK, "ok", 200, 200)                                                                       \
    X(1, CANCELLED, "canceled", 499, 503)                                                          \
    X(2, UNKNOWN, "unknown", 500, 500)                                                             \
    X(3, INVALID_ARGUMENT, "invalid_argument", 400, 400)                                           \
    X(4, DEADLINE_EXCEEDED, "deadline_exceeded", 504, 504)                                         \
    X(5, NOT_FOUND, "not_found", 404, 404)                                                         \
    X(6, ALREADY_EXISTS, "already_exists", 409, 409)                                               \
    X(7, PERMISSION_DENIED, "permission_denied", 403, 403)                                         \
    X(8, RESOURCE_EXHAUSTED, "resource_exhausted", 429, 429)                                       \
    X(9, FAILED_PRECONDITION, "failed_precondition", 400, 400)                                     \
    X(10, ABORTED, "aborted", 409, 503)                                                            \
    X(11, OUT_OF_RANGE, "out_of_range", 400, 400)                                                  \
    X(12, UNIMPLEMENTED, "unimplemented", 501, 404)                                                \
    X(13, INTERNAL, "internal", 500, 500)                                                          \
    X(14, UNAVAILABLE, "unavailable", 503, 503)                                                    \
    X(15, DATA_LOSS, "data_loss", 500, 500)                                                        \
    X(16, UNAUTHENTICATED, "unauthenticated", 401, 401)

enum kiln_rpc_code {
#define X(number, name, word, connect, http) KILN_RPC_##name = (number),
    KILN_RPC_CODE_MAP(X)
#undef X
};

enum kiln_rpc_protocol { KILN_RPC_GRPC, KILN_RPC_GRPC_WEB, KILN_RPC_CONNECT, KILN_RPC_HTTP };

/* One call; lives until it is answered. */
struct kiln_rpc {
    struct kiln_request *request;
    enum kiln_rpc_protocol protocol;
    bool json;                         /* the message is JSON, and so shall the answer be */
    struct kiln_str message;           /* as received */
    enum kiln_compression compression; /* of the message */
    uint64_t timeout_ms;               /* how long the client waits; 0: it did not say */
    void *context;
};

struct kiln_rpc_status {
    enum kiln_rpc_code code;
    int http_status;        /* 0: by the table; 413 for what is too large */
    uint32_t retry_after_s; /* > 0: Retry-After, and google.rpc.RetryInfo */
    const char *message;    /* for a person */
    const char *field;      /* BadRequest's field violation, "" where it is not known; NULL: none */
};

/* Answers with a message (protobuf or JSON as the call was); the call is gone afterwards. */
void kiln_rpc_reply(struct kiln_rpc *rpc, struct kiln_str message);
/* Frees the call without an answer: its request will be handled again. */
void kiln_rpc_leave(struct kiln_rpc *rpc);
/* Answers with a status that is not OK. */
void kiln_rpc_fail(struct kiln_rpc *rpc, const struct kiln_rpc_status *status);

/*
 * Registers POST `path` (with more paths for the same method as aliases, by calling again).  A
 * guard's refusal is translated for the caller's protocol too.
 */
struct kiln_rpc_route {
    const char *path;
    enum kiln_access access;
    void (*handler)(struct kiln_rpc *rpc);
    /* As that of a kiln_route, for calls that are framed well; NULL: nobody is asked. */
    bool (*at_once)(struct kiln_rpc *rpc);
    void *context;
    size_t body_max;
    enum kiln_lane lane;
    bool http_only; /* refuse Connect's and gRPC's content types: an OTLP/HTTP path */
};
KILN_CHECK int kiln_rpc_add(struct kiln_router *router, const struct kiln_rpc_route *route);

/* The router's fallback that answers gRPC and Connect callers UNIMPLEMENTED, others 404. */
void kiln_rpc_unknown(struct kiln_request *request);

/*
 * What the server refuses by itself (a guard, 404, 413, 503), in the words of gRPC, Connect or
 * OTLP; answers to other callers stay as they are.  kiln_rpc_add() gives it to
 * kiln_router_translate().
 */
void kiln_rpc_translate(const struct kiln_request *request, struct kiln_reply *reply,
                        struct kiln_buf *scratch);

#endif /* KILN_NET_RPC_H */

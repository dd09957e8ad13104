/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_int - how a call speaks, and an answer in that way of speaking.  Of rpc.c alone; apart, so
 * that tests can look at answers without a connection.
 */
#ifndef KILN_NET_RPC_INT_H
#define KILN_NET_RPC_INT_H

#include "net/grpc.h"

/* What a message may be compressed with, as gRPC has it. */
#define KILN_RPC_ENCODINGS "identity,gzip,zstd"

/* How the caller speaks. */
struct kiln_rpc_kind {
    enum kiln_rpc_protocol protocol;
    bool json;
    bool gzip; /* gRPC: takes messages that are compressed with gzip */
};

/*
 * By Content-Type; `http_only` as in struct kiln_rpc_route.  Returns 0 or KILN_E_UNSUPPORTED, and
 * then *ret_kind is plain HTTP with JSON where the type ends in "json".
 */
KILN_CHECK int kiln_rpc_kind_of(const struct kiln_request *request, bool http_only,
                                struct kiln_rpc_kind *ret_kind);

/* How long the caller says that it waits, rounded up; 0: it did not say. */
uint64_t kiln_rpc_timeout_ms(const struct kiln_request *request, enum kiln_rpc_protocol protocol);

/* A reply, and the memory its texts point to. */
struct kiln_rpc_answer {
    struct kiln_reply reply;
    struct kiln_buf body, text, details;
    char code[12], retry_after[12];
};
void kiln_rpc_answer_init(struct kiln_rpc_answer *answer);
void kiln_rpc_answer_done(struct kiln_rpc_answer *answer);

void kiln_rpc_answer_message(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind,
                             struct kiln_str message);
void kiln_rpc_answer_status(struct kiln_rpc_answer *answer, struct kiln_rpc_kind kind,
                            const struct kiln_rpc_status *status);

/* The one message of a gRPC body.  Returns 0, or negative with *status saying why. */
KILN_CHECK int kiln_rpc_unwrap(const struct kiln_request *request, size_t max, struct kiln_rpc *rpc,
                               struct kiln_rpc_status *status);

#endif /* KILN_NET_RPC_INT_H */

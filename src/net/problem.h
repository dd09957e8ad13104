/* SPDX-License-Identifier: Apache-2.0 */
/*
 * problem - errors of our own API, in the one shape that it has for them:
 *
 *   {"error":{"code":"not_found","message":"no such path: /api/v1/x","where":""}}
 *
 * `code` is for programs, `message` for people, `where` the parameter or place whose fault it is.
 *
 * Threads: no state.
 */
#ifndef KILN_NET_PROBLEM_H
#define KILN_NET_PROBLEM_H

#include "net/server.h"

void kiln_problem_format(const char *code, struct kiln_str message, struct kiln_str where,
                         struct kiln_buf *out);

/* Answers with the code that goes with a status. */
void kiln_problem_reply(struct kiln_request *request, int status, const char *where,
                        const char *fmt, ...) KILN_PRINTF(4, 5);

/*
 * For kiln_router_translate() and kiln_router_fallback(): below /api/v1/ what the server refuses by
 * itself has this shape, elsewhere that of net/rpc.h.  gRPC is gRPC everywhere.
 */
void kiln_problem_translate(const struct kiln_request *request, struct kiln_reply *reply,
                            struct kiln_buf *scratch);
void kiln_problem_unknown(struct kiln_request *request);

#endif /* KILN_NET_PROBLEM_H */

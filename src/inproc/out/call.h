/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call - gives one encoded request to the receiver, over HTTP/1.1 or gRPC, and says what became of
 * it by OTLP's rules.
 *
 * The connection stays open for the next call; one that has gone stale meanwhile is opened anew.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_OUT_CALL_H
#define KILN_INPROC_OUT_CALL_H

#include "codec/otlp_answer.h"
#include "codec/otlp_target.h"
#include "inproc/out/wire.h"

/* What an answer says.  Without one the call has failed. */
struct kiln_in_verdict {
    bool taken;                       /* the receiver has it, but for what `result` says */
    bool retryable;                   /* not taken, but another try may go better */
    int status;                       /* of HTTP */
    int rpc_code;                     /* of gRPC; 0 where it is not */
    uint32_t retry_after_ms;          /* 0: not said */
    struct kiln_export_result result; /* of what was taken; or why it was not */
};

struct kiln_in_h2;

struct kiln_in_caller {
    const struct kiln_otlp_target *target; /* borrowed */
    struct kiln_in_wire *wire;             /* NULL: not connected */
    struct kiln_in_h2 *h2;                 /* of gRPC, while connected */
    uint64_t calls;                        /* over this connection */
};

void kiln_in_caller_init(struct kiln_in_caller *caller, const struct kiln_otlp_target *target);
void kiln_in_caller_done(struct kiln_in_caller *caller);

/*
 * `body` is an ExportProfilesServiceRequest, gzipped where `gzip`.  0: there was an answer.
 * Negative: there was none (the address, the connection, time), which is worth another try.
 */
KILN_CHECK int kiln_in_call(struct kiln_in_caller *caller, struct kiln_str body, bool gzip,
                            const struct kiln_in_deadline *until,
                            struct kiln_in_verdict *ret_verdict, struct kiln_err *err);

/* ---- the two protocols, over a wire that is open ---- */

KILN_CHECK int kiln_in_http_call(struct kiln_in_caller *caller, struct kiln_str body, bool gzip,
                                 const struct kiln_in_deadline *until,
                                 struct kiln_in_verdict *verdict, struct kiln_err *err);

KILN_CHECK int kiln_in_h2_new(struct kiln_in_wire *wire, struct kiln_in_h2 **ret_h2);
void kiln_in_h2_free(struct kiln_in_h2 *h2);
KILN_CHECK int kiln_in_grpc_call(struct kiln_in_caller *caller, struct kiln_str body, bool gzip,
                                 const struct kiln_in_deadline *until,
                                 struct kiln_in_verdict *verdict, struct kiln_err *err);

/* What google.rpc.Status says: its sentence into `message`, and when to come back: milliseconds, or
 * -1 where it does not say. */
int64_t kiln_in_status_read(struct kiln_str bytes, char *message, size_t size);

#endif /* KILN_INPROC_OUT_CALL_H */

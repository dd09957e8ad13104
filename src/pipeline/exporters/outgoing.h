/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outgoing - what all senders over HTTP and gRPC have: where to, in which form, and as whom.
 *
 * Threads: constant once opened; calls are made from anywhere.
 */
#ifndef KILN_PIPELINE_EXPORTERS_OUTGOING_H
#define KILN_PIPELINE_EXPORTERS_OUTGOING_H

#include "pipeline/exporters/sender.h"

enum { KILN_OUTGOING_ANSWER_MAX = 4 << 20 };

struct kiln_outgoing {
    struct kiln_sender sender; /* first */
    struct kiln_otlp_target target;
    struct kiln_export_shape shape;
    struct kiln_credential credential;
    const char *content_type; /* NULL: OTLP's */
};

/* `out` is zero, and must stay where it is; done also after a failure. */
KILN_CHECK int kiln_outgoing_open(struct kiln_outgoing *out,
                                  const struct kiln_otlp_sender_opts *opts, struct kiln_err *err);
void kiln_outgoing_done(struct kiln_outgoing *out);

/* A call with all its headers, where they are. */
struct kiln_outgoing_call {
    struct kiln_call call;
    struct kiln_signed headers;
};

/* `ret` stays where it is until it is done, which it need not be after a failure. */
KILN_CHECK int kiln_outgoing_call(const struct kiln_outgoing *out,
                                  const struct kiln_export_item *item,
                                  struct kiln_outgoing_call *ret, struct kiln_err *err);
void kiln_outgoing_call_done(struct kiln_outgoing_call *call);

#endif /* KILN_PIPELINE_EXPORTERS_OUTGOING_H */

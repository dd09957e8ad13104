/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push - the two halves of Pyroscope's Push: reading requests (push_read.c), and what becomes of
 * the profiles in them (push.c).
 *
 * Threads: as receivers.h.
 */
#ifndef KILN_PIPELINE_RECEIVERS_PUSH_H
#define KILN_PIPELINE_RECEIVERS_PUSH_H

#include "net/rpc.h"
#include "pipeline/receivers/tags.h"

struct push;

/* The handler; the route's context is the receivers. */
void kiln_push_handle(struct kiln_rpc *rpc);

/* Hands one pprof on, with the labels of its series. */
void kiln_push_sample(struct push *push, struct kiln_tags *tags, struct kiln_str raw,
                      struct kiln_str id);
/* Notes that a series cannot be taken; the others go on. */
void kiln_push_bad_series(struct push *push, int code, const struct kiln_err *err);

/* Read a request, and call the two above for all that is in it. */
KILN_CHECK int kiln_push_protobuf(struct push *push, struct kiln_str message, struct kiln_err *err);
KILN_CHECK int kiln_push_json(struct push *push, struct kiln_str message, struct kiln_err *err);

#endif /* KILN_PIPELINE_RECEIVERS_PUSH_H */

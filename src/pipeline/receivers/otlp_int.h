/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_int - what OTLP's signals share: otlp.c has profiles and routes, otlp_others*.c the rest. */
#ifndef KILN_PIPELINE_RECEIVERS_OTLP_INT_H
#define KILN_PIPELINE_RECEIVERS_OTLP_INT_H

#include "pipeline/receivers/arrival.h"

/* Answers that all was taken but `rejected`, and `why` (""). */
void kiln_otlp_reply(struct kiln_rpc *rpc, enum kiln_signal signal, uint64_t rejected,
                     const char *why);

/* Takes a call of another signal than profiles, and hands it to who takes that one. */
void kiln_otlp_pass_on(struct kiln_rpc *rpc, enum kiln_signal signal);

/*
 * How many spans, data points or log records an Export...ServiceRequest holds.  Fails where the
 * messages around them are not well-formed; what is in them is not looked at.
 */
KILN_CHECK int kiln_otlp_count_items(enum kiln_signal signal, struct kiln_str message,
                                     uint64_t *ret_items);
/* The same in JSON; err says where it is not. */
KILN_CHECK int kiln_otlp_count_json_items(enum kiln_signal signal, struct kiln_str message,
                                          uint64_t *ret_items, struct kiln_err *err);

#endif /* KILN_PIPELINE_RECEIVERS_OTLP_INT_H */

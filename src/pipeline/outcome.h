/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome - what a sender is told about a delivery, and under which name it is counted.
 *
 * One table for all receivers, from the codes of pipeline.h to the statuses of gRPC and HTTP.
 *
 * Threads: no state.
 */
#ifndef KILN_PIPELINE_OUTCOME_H
#define KILN_PIPELINE_OUTCOME_H

#include "net/rpc.h"
#include "pipeline/pipeline.h"

/* enum suffix, value of the label "outcome" */
#define KILN_OUTCOME_MAP(X)                                                                        \
    X(ACCEPTED, "accepted")                                                                        \
    X(REJECTED, "rejected")   /* the data is at fault */                                           \
    X(TOO_LARGE, "too_large") /* and always will be */                                             \
    X(BUSY, "busy")           /* no memory, or too much at once */                                 \
    X(STORAGE, "storage")     /* the disk is full, or failed */                                    \
    X(STOPPING, "stopping")

enum kiln_outcome_kind {
#define X(suffix, name) KILN_OUTCOME_##suffix,
    KILN_OUTCOME_MAP(X)
#undef X
        KILN_N_OUTCOMES
};

extern const char *const kiln_outcome_names[KILN_N_OUTCOMES];

enum kiln_outcome_kind kiln_outcome_kind(int code);

/*
 * Which of two parts of a delivery went worse, so that the whole did: one that may be tried again
 * counts as worse than one that may not, so that nothing is lost where something may come twice.
 */
bool kiln_outcome_is_worse(const struct kiln_outcome *a, const struct kiln_outcome *b);

/*
 * The status that says it.  The message, "place: sentence", is written to `text`, to which the
 * status points; its field is the outcome's place.  Not for code 0.
 */
struct kiln_rpc_status kiln_outcome_status(const struct kiln_outcome *outcome, char *text,
                                           size_t size);
enum {
    KILN_OUTCOME_TEXT =
        sizeof(((struct kiln_err *)0)->where) + sizeof(((struct kiln_err *)0)->text) + 2
};

#endif /* KILN_PIPELINE_OUTCOME_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statements - lists of OTTL (pipeline/ottl/ottl.h), as the processors `filter` and `transform`
 * have them, and what they make of a batch.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_PROCESSORS_STATEMENTS_H
#define KILN_PIPELINE_PROCESSORS_STATEMENTS_H

#include "base/log.h"
#include "base/metric.h"
#include "pipeline/ottl/ottl.h"

/* What becomes of a delivery where a statement cannot be run on something in it. */
enum kiln_error_mode {
    KILN_ERROR_IGNORE,    /* goes on without, and the log says so */
    KILN_ERROR_SILENT,    /* goes on without */
    KILN_ERROR_PROPAGATE, /* it is refused */
};

/* A statement, and conditions that were written beside its group: one of them has to hold. */
struct kiln_guarded {
    struct kiln_ottl *ottl;    /* owned */
    struct kiln_ottl **guards; /* owned; those of a group are the same for all its statements */
    uint32_t n_guards;
    uint32_t group;
    enum kiln_ottl_context context; /* the innermost of its group, conditions and all */
    enum kiln_error_mode mode;
};

struct kiln_statements {
    struct kiln_guarded *list;
    uint32_t n, cap;
    enum kiln_error_mode mode; /* of those that are read without one of their own */
    struct kiln_log *log;
    struct kiln_metric *filtered; /* samples that a filter dropped */
    _Atomic uint64_t said;        /* when the log was last told */
};

/* Frees what is in it. */
void kiln_statements_done(struct kiln_statements *statements);

/*
 * Both are a `change` of pipeline/processors/changer.h, with struct kiln_statements as context.
 * Filter: conditions; what one of them holds for goes, with all that is in it.
 * Transform: groups of statements, one after the other; each on all that it is for, of which
 * one has all statements of the group behind it, and their cache, before the next has the first.
 */
KILN_CHECK int kiln_statements_filter(void *statements, struct kiln_batch **batch,
                                      struct kiln_err *err);
KILN_CHECK int kiln_statements_transform(void *statements, struct kiln_batch **batch,
                                         struct kiln_err *err);

#endif /* KILN_PIPELINE_PROCESSORS_STATEMENTS_H */

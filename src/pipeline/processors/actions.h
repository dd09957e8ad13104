/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions - what the processors `resource` and `attributes` do to a set of attributes, one action
 * after the other.
 *
 * Threads: one owner at a time (expressions are written to by matching).
 */
#ifndef KILN_PIPELINE_PROCESSORS_ACTIONS_H
#define KILN_PIPELINE_PROCESSORS_ACTIONS_H

#include "base/regex.h"
#include "core/draft.h"
#include "pipeline/metadata.h"
#include "pipeline/ottl/ottl.h"

/* name in a configuration */
#define KILN_ACTION_MAP(X)                                                                         \
    X(INSERT, "insert")   /* where the key is not there */                                         \
    X(UPDATE, "update")   /* where it is */                                                        \
    X(UPSERT, "upsert")   /* either way */                                                         \
    X(DELETE, "delete")   /* the key, and keys that match the pattern */                           \
    X(HASH, "hash")       /* the same, to the SHA-256 of the value */                              \
    X(EXTRACT, "extract") /* named groups of the pattern, in the value, become attributes */       \
    X(CONVERT, "convert") /* the value to another type, where it can be */

enum kiln_action_kind {
#define X(suffix, name) KILN_ACTION_##suffix,
    KILN_ACTION_MAP(X)
#undef X
        KILN_N_ACTIONS
};
extern const char *const kiln_action_names[KILN_N_ACTIONS];

/* A value of a configuration. */
struct kiln_plain_value {
    enum kiln_value_kind kind; /* EMPTY: none */
    struct kiln_str text;      /* STRING */
    union {
        int64_t i; /* INT, BOOL */
        double d;
    };
};

struct kiln_action {
    enum kiln_action_kind kind;
    struct kiln_str key;
    struct kiln_plain_value value;
    struct kiln_str from;            /* another attribute whose value is taken; ptr NULL: none */
    struct kiln_str from_context;    /* "client.address", "metadata.x-team"; ptr NULL: none */
    struct kiln_regex *pattern;      /* owned; NULL: none */
    enum kiln_value_kind convert_to; /* STRING, INT or DOUBLE */
};

struct kiln_actions {
    struct kiln_action *list;
    uint32_t n, cap;
    const struct kiln_remote *remote; /* of the batch that is changed; NULL: nobody */
    struct kiln_ottl *only;           /* on samples: those for which it holds; owned; NULL: all */
};

void kiln_actions_done(struct kiln_actions *actions);
/* Where values of contexts come from, from now on; a `meet`. */
void kiln_actions_meet(void *actions, const struct kiln_remote *remote);

/* Changes a draft.  Returns 0, or a code where an expression took too long: nothing may go on. */
KILN_CHECK int kiln_actions_apply(const struct kiln_actions *actions, struct kiln_draft *draft,
                                  struct kiln_err *err);

/* A value of the builder, to be put into a draft. */
struct kiln_value kiln_plain_value_in(struct kiln_builder *b, const struct kiln_plain_value *value);

/* The same to the attributes of every resource, or of every sample, of a batch: a `change`. */
KILN_CHECK int kiln_actions_on_resources(void *actions, struct kiln_batch **batch,
                                         struct kiln_err *err);
KILN_CHECK int kiln_actions_on_samples(void *actions, struct kiln_batch **batch,
                                       struct kiln_err *err);

#endif /* KILN_PIPELINE_PROCESSORS_ACTIONS_H */

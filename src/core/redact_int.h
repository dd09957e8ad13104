/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redact_int - a rule, shared by redact_rules.c (reading) and redact.c (applying).
 */
#ifndef KILN_CORE_REDACT_INT_H
#define KILN_CORE_REDACT_INT_H

#include "base/mem.h"
#include "base/regex.h"
#include "core/redact.h"

struct kiln_redact_rule {
    enum kiln_redact_match match;
    enum kiln_redact_action action;
    struct kiln_regex *key;      /* of attributes; NULL: any */
    struct kiln_regex *regex;    /* of the text; NULL: any */
    struct kiln_str replacement; /* owned */
    kiln_redact_mask *mask;      /* in the place of the replacement, or NULL */
    const void *context;         /* of mask */
    bool texts_only;             /* numbers and truths are not looked at */
    bool outermost;              /* keys inside maps are not asked */
    uint32_t line;               /* where it was read */
};

struct kiln_redact {
    struct kiln_redact_rule *rules;
    uint32_t n, cap;
    struct kiln_budget budget; /* for the array */
};

#endif /* KILN_CORE_REDACT_INT_H */

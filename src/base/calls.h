/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls - which system calls this process may still make, from now on and for good: a seccomp
 * filter made of a list and of rules about one argument each.
 *
 * Children and programs that are started inherit it.  It needs no_new_privs, or CAP_SYS_ADMIN.
 * Calls for another architecture than this one end the process.
 *
 * Threads: any; with `all_threads` it holds for those that there are, else for the caller and what
 * it starts.
 */
#ifndef KILN_BASE_CALLS_H
#define KILN_BASE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum { KILN_CALLS_MAX = 250, KILN_CALL_RULES_MAX = 16 };

enum kiln_call_test {
    KILN_CALL_IF_IS,     /* passes if the argument is the value, else is refused */
    KILN_CALL_IF_NONE,   /* passes if none of the bits of the value is set, else is refused */
    KILN_CALL_UNLESS_IS, /* is refused if the argument is the value, else the list counts */
};

/* Looks at the low 32 bits of an argument. */
struct kiln_call_rule {
    uint32_t call, argument;
    enum kiln_call_test test;
    uint32_t value;
};

struct kiln_call_filter {
    const uint32_t *calls; /* SYS_*: those that pass */
    uint32_t n_calls;
    const struct kiln_call_rule *rules; /* come before the list */
    uint32_t n_rules;
    bool all_but;      /* the list has those that do not pass */
    bool all_threads;  /* of this process */
    int refused_errno; /* what a refused call returns; 0: it ends the process */
};

/* -EINVAL: too many; else what the kernel says. */
KILN_CHECK int kiln_calls_confine(const struct kiln_call_filter *filter);

#endif /* KILN_BASE_CALLS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grants - the capabilities that the host profiler has a use for: what each is for, and what is
 * missing without it.
 *
 * Threads: no state.
 */
#ifndef KILN_HOST_GRANTS_H
#define KILN_HOST_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

enum { KILN_GRANTS = 7 };

struct kiln_grant {
    int number;          /* CAP_* */
    const char *name;    /* "CAP_BPF" */
    const char *use;     /* "loading programs into the kernel" */
    const char *without; /* a sentence without its full stop */
    bool needed;         /* nothing works without it */
};
extern const struct kiln_grant kiln_grants[KILN_GRANTS];

/* All of their names: "CAP_BPF CAP_PERFMON ...". */
#define KILN_GRANT_NAMES                                                                           \
    "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_CHECKPOINT_RESTORE CAP_SYSLOG "    \
    "CAP_IPC_LOCK"

/* Whether this set (base/capability.h) has what is granted; CAP_SYS_ADMIN stands for some. */
bool kiln_grant_held(const struct kiln_grant *grant, uint64_t set);
/* What the profiler keeps of a set. */
uint64_t kiln_grants_of(uint64_t set);

#endif /* KILN_HOST_GRANTS_H */

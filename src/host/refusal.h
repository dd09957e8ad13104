/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the kernel refuses a step of the host profiler with EPERM or EACCES, and what to do about it.
 *
 * The kernel returns the same two errors for missing capabilities, perf_event_paranoid, seccomp,
 * lockdown, user namespaces and locked memory.  Each of them can be read from a file.
 *
 * Threads: no state.
 */
#ifndef KILN_HOST_REFUSAL_H
#define KILN_HOST_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

enum kiln_step {
    KILN_STEP_LOAD,   /* bpf(): programs and maps */
    KILN_STEP_EVENT,  /* perf_event_open() */
    KILN_STEP_BUFFER, /* mmap() of an event */
};

/* What the kernel says about this process and itself. */
struct kiln_restraints {
    uint64_t capabilities; /* in effect */
    int64_t paranoid;      /* kernel.perf_event_paranoid */
    bool filtered;         /* by seccomp */
    bool locked_down;      /* confidentiality: nothing may read the kernel's memory */
    bool in_namespace;     /* a user namespace other than the first */
};
void kiln_restraints_read(struct kiln_restraints *ret_restraints);

struct kiln_refusal {
    const char *why;    /* a clause: "a seccomp filter forbids it" */
    const char *advice; /* a command, or what else to do */
};
/* The most likely one; never NULL. */
const struct kiln_refusal *kiln_refusal_of(const struct kiln_restraints *restraints,
                                           enum kiln_step step, int code);

#endif /* KILN_HOST_REFUSAL_H */

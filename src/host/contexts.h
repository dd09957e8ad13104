/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contexts - tells the programs in the kernel where the threads of processes keep their spans, as
 * processes begin to say that they do and for as long as they do.
 *
 * Only a process whose context (OTEP 4719, host/process_context.h) says that its threads have one
 * is looked through.
 *
 * Threads: the reader's.
 */
#ifndef KILN_HOST_CONTEXTS_H
#define KILN_HOST_CONTEXTS_H

#include "host/process.h"

/* Who is told: the kernel, or a test. */
struct kiln_context_sink {
    int (*put)(void *self, uint32_t pid, const struct kiln_context_place *place);
    void (*drop)(void *self, uint32_t pid, uint64_t era); /* unless it is another's by now */
    void *self;
};

struct kiln_contexts {
    struct kiln_processes *processes; /* borrowed */
    struct kiln_context_sink sink;
    uint64_t wake_ns;  /* when samples should be looked at, not to miss a beginning; 0: any time */
    uint64_t n_placed; /* processes of which the kernel knows */
    uint64_t n_failed; /* times that a process says so and it was not found */
};

/* With each sample of a process, at its time, after kiln_process_identity(). */
void kiln_contexts_follow(struct kiln_contexts *contexts, struct kiln_process *process,
                          uint64_t now_ns);
/* What is known of it is void. */
void kiln_contexts_drop(struct kiln_contexts *contexts, struct kiln_process *process);

#endif /* KILN_HOST_CONTEXTS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frozen - processes that stand still, to walk their stacks: a child stopped by ptrace, or a core
 * file.  Both give registers, memory and mappings; both are walked by the tables that the kernel's
 * programs walk by, in plain memory.
 *
 *   struct frozen_host host;               struct frozen f;
 *   frozen_host_init(&host, NULL);         frozen_stop(&f, pid, tid);
 *                                          frozen_walk(&host, &f, &walked);
 *   frozen_host_done(&host);               frozen_go(&f);
 */
#ifndef KILN_TESTS_SUPPORT_FROZEN_H
#define KILN_TESTS_SUPPORT_FROZEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/rewind.h"

struct frozen {
    pid_t pid, tid;
    struct kiln_registers registers;
    struct kiln_stack_memory memory;
    /* of a core file: */
    uint8_t *core;
    size_t core_size;
    char proc[64]; /* a folder like /proc that has this one process */
};

/*
 * Stops a thread that is ptraced already, by PTRACE_SEIZE.  -ESRCH: it is gone; -EAGAIN: it cannot
 * be stopped just now (vfork), and will be later.
 */
int frozen_stop(struct frozen *f, pid_t pid, pid_t tid);
int frozen_go(struct frozen *f);

/* A core file of one process, its first thread.  Makes a folder that frozen_close() removes. */
int frozen_open_core(struct frozen *f, const char *path);
void frozen_close(struct frozen *f);

/* Tables and processes, in plain memory. */
struct frozen_host {
    struct kiln_table_memory *memory;
    struct kiln_tables *tables;
    struct kiln_processes *processes;
    uint64_t maps_hash; /* of the mappings that were seen last */
    const char *proc;
};

/* `proc`: NULL, or that of a core file. */
int frozen_host_init(struct frozen_host *host, const char *proc);
void frozen_host_done(struct frozen_host *host);

/* Begins anew where the process' mappings of code have changed. */
int frozen_walk(struct frozen_host *host, struct frozen *f, struct kiln_walked *ret_walked);

#endif /* KILN_TESTS_SUPPORT_FROZEN_H */

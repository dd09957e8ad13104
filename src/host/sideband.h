/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sideband - what processes do, as the kernel tells it: mappings of code, names, forks, exits.
 *
 * One perf buffer a processor (PERF_RECORD_MMAP2 with build ids, COMM, FORK, EXIT), stamped with
 * CLOCK_MONOTONIC like samples, so that host/merge.h can put both into one order of time.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_HOST_SIDEBAND_H
#define KILN_HOST_SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "symbol/elf.h"

enum kiln_event_kind {
    KILN_EVENT_MAP,  /* executable memory was mapped, or made executable */
    KILN_EVENT_COMM, /* a thread has another name; with `exec`, the process runs another program */
    KILN_EVENT_FORK, /* tid is a new thread of pid (pid == ppid), or the first of a new process */
    KILN_EVENT_EXIT, /* a thread ended */
    KILN_EVENT_LOST, /* `n` events were lost: what is known of processes may be old */
};

/* Texts live until the visit ends. */
struct kiln_event {
    uint32_t kind; /* enum kiln_event_kind */
    uint32_t pid, tid;
    uint32_t ppid, ptid; /* FORK */
    bool exec;           /* COMM */
    uint64_t time_ns;    /* CLOCK_MONOTONIC */
    uint64_t n;          /* LOST */
    const char *name;    /* MAP: path as the process sees it, "//anon", "[vdso]"; COMM */
    uint64_t start, length, offset;
    uint32_t major, minor; /* MAP: of the device; 0 where a build id came instead */
    uint64_t inode, inode_generation;
    uint8_t build_id[KILN_BUILD_ID_MAX];
    uint8_t build_id_len; /* 0: none came */
};

struct kiln_sideband;

/* `pages`: of each buffer, a power of two; 0: 64. */
KILN_CHECK int kiln_sideband_open(uint32_t pages, struct kiln_sideband **ret_sideband,
                                  struct kiln_err *err);
void kiln_sideband_close(struct kiln_sideband *sideband);

/* Readable when a buffer is a quarter full. */
int kiln_sideband_fd(const struct kiln_sideband *sideband);
/* What is there by now can be shown from now on; a processor that came later is watched too. */
KILN_CHECK int kiln_sideband_look(struct kiln_sideband *sideband);
/*
 * Shows all of it that is older than a time, in order of time; the rest stays where the kernel has
 * written it.  Returns how many there were.
 */
uint32_t kiln_sideband_drain(struct kiln_sideband *sideband, uint64_t before_ns,
                             void (*visit)(void *context, const struct kiln_event *event),
                             void *context);

/* Tells nothing while it pauses. */
void kiln_sideband_pause(struct kiln_sideband *sideband, bool pauses);

#endif /* KILN_HOST_SIDEBAND_H */

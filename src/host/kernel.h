/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel - the programs in the kernel: loading, attaching to a clock on every processor, their
 * records, their tables, their counters.
 *
 * What the kernel offers is probed, never assumed: kiln_kernel_open() either works or says in one
 * sentence what is missing and how to grant it.
 *
 * Threads: opened, drained and closed by one thread; set_rate and counts from anywhere.
 */
#ifndef KILN_HOST_KERNEL_H
#define KILN_HOST_KERNEL_H

#include "base/err.h"
#include "host/bpf/record.h"
#include "host/memory.h"

struct kiln_kernel;

enum { KILN_HOST_HZ_MAX = 1000 };

/* Who is sampled: where nothing is wanted by name, everybody but those that are not wanted. */
struct kiln_host_filter {
    const uint32_t *pids;       /* and their descendants */
    const char *const *cgroups; /* paths below the mount of the unified hierarchy, and all below */
    const char *const *comms;   /* names of threads, exactly */
    uint32_t n_pids, n_cgroups, n_comms;
    bool exclude; /* all but these */
};

/* How waits can be taken. */
enum kiln_wait_way {
    KILN_WAIT_WAY_NONE,   /* not at all, or nobody wanted them */
    KILN_WAIT_WAY_EXIT,   /* by the thread itself, when it runs again */
    KILN_WAIT_WAY_SWITCH, /* chosen when it leaves: two records a wait, host/begun.h */
};

struct kiln_kernel_opts {
    uint32_t hz;                 /* samples a second and processor, 1 to KILN_HOST_HZ_MAX */
    uint64_t table_bytes;        /* of --unwind-memory */
    uint32_t ring_bytes;         /* 0: by processors and rate */
    uint64_t ring_max;           /* but no more than this; 0: 64 MiB */
    uint32_t raw_per_s;          /* raw records a second and processor; 0: 500 */
    bool off_cpu;                /* waits too: kiln_kernel_wait_attach() */
    enum kiln_wait_way wait_way; /* NONE: the best that there is */
    bool paused;                 /* attached, but the clocks stand until set_rate */
    const struct kiln_host_filter *filter; /* NULL: everybody */
};

/* -EPERM, -ENOSYS, -EOPNOTSUPP: this host or user cannot; err says what is missing. */
KILN_CHECK int kiln_kernel_open(const struct kiln_kernel_opts *opts,
                                struct kiln_kernel **ret_kernel, struct kiln_err *err);
void kiln_kernel_close(struct kiln_kernel *kernel);

/* 0: the clocks stand still. */
KILN_CHECK int kiln_kernel_set_rate(struct kiln_kernel *kernel, uint32_t hz);
/*
 * The same with clocks that run faster, for processes that have rates of their own; all others are
 * sampled at `hz`, which may be 0.
 */
KILN_CHECK int kiln_kernel_set_rates(struct kiln_kernel *kernel, uint32_t hz, uint32_t clock_hz);
/* A process' own rate, at most the clocks'; 0: it is paused.  -E2BIG: there are too many. */
KILN_CHECK int kiln_kernel_put_rate(struct kiln_kernel *kernel, uint32_t pid, uint32_t hz);
/* It has none any more. */
void kiln_kernel_drop_rate(struct kiln_kernel *kernel, uint32_t pid);

/* ---- waits ---- */

struct kiln_wait_stats {
    enum kiln_wait_way way;
    bool attached;
    uint64_t there_ns; /* time that it was, in all */
    uint64_t period_ns;
    uint64_t runs, run_ns; /* of the hook; 0 without kernel.bpf_stats_enabled */
};
/* What it sees is in counts: SWITCHES, WAITS, WAITS_MISSED.  From the thread that drains. */
void kiln_kernel_wait_stats(const struct kiln_kernel *kernel, struct kiln_wait_stats *ret_stats);

/* The hook comes or goes; it is away at first.  From the thread that drains. */
KILN_CHECK int kiln_kernel_wait_attach(struct kiln_kernel *kernel, bool on);
/* From now on, waits that are shorter than this are taken by chance; at first 1 / hz. */
KILN_CHECK int kiln_kernel_wait_period(struct kiln_kernel *kernel, uint64_t period_ns);

/* ---- records ---- */

/* Readable when there are records, at the latest when a quarter of the ring is full. */
int kiln_kernel_fd(const struct kiln_kernel *kernel);
/*
 * Shows every record that is there, in no order of time.  A record is whole: its counts agree with
 * its size.  It is shown where the kernel wrote it, in memory that only the kernel can write and
 * soon writes over: its slice is copied nowhere, and lives until the visit ends.  Returns how many
 * there were, or a negative error.
 */
int kiln_kernel_drain(struct kiln_kernel *kernel,
                      void (*visit)(void *context, const struct kiln_record *record),
                      void *context);

/* The tables that the programs walk by, as host/tables.h fills them. */
struct kiln_table_memory *kiln_kernel_tables(struct kiln_kernel *kernel);

/* Where the threads of a process keep their spans (host/contexts.h).  -E2BIG: too many do. */
KILN_CHECK int kiln_kernel_put_context(struct kiln_kernel *kernel, uint32_t pid,
                                       const struct kiln_context_place *place);
void kiln_kernel_drop_context(struct kiln_kernel *kernel, uint32_t pid, uint64_t era);

struct kiln_kernel_stats {
    uint64_t counts[KILN_COUNTS];
    uint64_t runs, run_ns; /* of the sampling program; 0 without kernel.bpf_stats_enabled */
    uint64_t map_bytes;    /* that the maps take in the kernel */
    uint64_t mapped_bytes; /* of those, what this process sees, too */
    uint32_t verified;     /* instructions that the verifier looked at; it stops at a million */
    uint32_t processors;
    struct kiln_wait_stats wait;
};
void kiln_kernel_stats(struct kiln_kernel *kernel, struct kiln_kernel_stats *ret_stats);
/* Asks the kernel to measure the programs (bpf_stats) for as long as it is open. */
KILN_CHECK int kiln_kernel_measure(struct kiln_kernel *kernel);

#endif /* KILN_HOST_KERNEL_H */

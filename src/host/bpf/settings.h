/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * settings - what the agent tells the programs in the kernel, and may change while they run.
 *
 * Compiled for BPF and for user space.
 *
 * Threads: written by the agent, read on every processor.
 */
#ifndef KILN_HOST_BPF_SETTINGS_H
#define KILN_HOST_BPF_SETTINGS_H

#include <linux/types.h>

struct kiln_settings {
    __u32 pid_namespace;  /* inode of the agent's own: ids of processes are of it */
    __u32 filter_kinds;   /* bit per enum kiln_filter_kind that is looked at; 0: no filter */
    __u32 filter_exclude; /* else only who is found is wanted */
    __u32 raw_per_s;      /* a processor */
    __u32 wake_bytes;     /* in the ring: the reader is woken */
    __u32 hz;             /* of processes that no order is for */
    __u64 wait_period_ns; /* waits as long as this are all taken, shorter ones by chance */
    __u64 wait_rate;      /* 2^64 / wait_period_ns */
    __u64 wait_first_ns;  /* how long waits of a thread are of which nothing is known yet */
    __u32 stamp_mask;     /* sets of stamps - 1: a power of two - 1 */
    __u32 clock_hz;       /* at which the clocks run */
    __u32 rates;          /* some processes have rates of their own */
    __u32 pad;
};

enum {
    KILN_CONTEXTS_MAX = 8192, /* processes that tell their spans */
    KILN_FILTERS_MAX = 4096,  /* entries of the filter */
    KILN_RATES_MAX = 16384,   /* processes with rates of their own */
};

#endif /* KILN_HOST_BPF_SETTINGS_H */

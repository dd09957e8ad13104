/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * rates - how often each process is sampled, and which ticks of a clock are for whom.
 *
 * The clocks run at the highest rate that anybody is sampled at.  Of their ticks a process with a
 * lower rate has every so many, spread evenly: of the ticks n = 0, 1, 2... those where
 * (n x rate) mod clock < rate, which are exactly `rate` of each `clock`, whoever runs at them.
 *
 * Threads: BPF only.
 */
#ifndef KILN_HOST_BPF_RATES_H
#define KILN_HOST_BPF_RATES_H

#include "host/bpf/settings.h"
#include "host/bpf/task.h"

/* By id of the process: its rate; 0: it is paused.  Who is not in it has the settings' rate. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, KILN_RATES_MAX);
    __type(key, __u32);
    __type(value, __u32);
} kiln_rates SEC(".maps");

static __always_inline __u32 kiln_rate_of(const struct kiln_settings *settings,
                                          struct task_struct *task)
{
    __u32 pid, *hz;
    if (!settings->rates)
        return settings->hz;
    pid = kiln_task_number(task->group_leader, settings->pid_namespace);
    hz = bpf_map_lookup_elem(&kiln_rates, &pid);
    return hz ? *hz : settings->hz;
}

static __always_inline int kiln_rate_is_paused(const struct kiln_settings *settings,
                                               struct task_struct *task)
{
    return settings->rates && !kiln_rate_of(settings, task);
}

static __always_inline int kiln_rate_has(__u32 hz, __u64 tick, __u32 clock_hz)
{
    return tick * hz % (clock_hz ? clock_hz : 1) < hz;
}

#endif /* KILN_HOST_BPF_RATES_H */

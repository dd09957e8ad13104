/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Runs at each tick of a processor's clock: takes the thread that runs (host/bpf/take.h), if it is
 * wanted and the tick is one for its process (host/bpf/rates.h).  Waits have programs of their own
 * (host/bpf/wait.h).
 */
#include "host/bpf/filter.h"
#include "host/bpf/rates.h"
#include "host/bpf/take.h"
#include "host/bpf/wait.h"
#include "host/bpf/wait_switch.h"

char kiln_license[] SEC("license") = "Dual BSD/GPL";

/* The context that the kernel gives: the registers first. */
struct tick {
    struct kiln_arch_regs regs;
    __u64 sample_period, addr;
};

/* The rate of the thread that runs, if this tick is for it; else 0. */
static __always_inline __u32 rate_now(struct scratch *s, const struct kiln_settings *settings,
                                      struct task_struct *task)
{
    __u64 tick = s->ticks++;
    __u32 clock_hz = settings->clock_hz, hz = kiln_rate_of(settings, task);
    if (!hz && kiln_rate_has(settings->hz, tick, clock_hz))
        count(KILN_COUNT_PAUSED);
    if (!kiln_rate_has(hz, tick, clock_hz))
        return 0;
    return hz < clock_hz ? hz : clock_hz;
}

SEC("perf_event")
int kiln_sample(struct tick *tick)
{
    __u32 zero = 0;
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct kiln_settings *settings = bpf_map_lookup_elem(&kiln_settings, &zero);
    struct scratch *s = scratch_of(KILN_KIND_CPU);
    int user_mode = (tick->regs.cs & 3) == 3;
    if (!settings || !s || !task->pid)
        return 0;
    __u32 hz = rate_now(s, settings, task);
    if (!hz)
        return 0;
    if (!kiln_filter_passes(settings, task)) {
        count(KILN_COUNT_FILTERED);
        return 0;
    }
    if (!take_ids(s, task, settings))
        return 0;
    fill_head(&s->record, task, KILN_KIND_CPU, hz);
    if (user_mode)
        s->record.flags |= KILN_RECORD_USER_MODE;
    else
        take_kernel_stack(s, tick, 0);
    take_user(s, user_mode ? &tick->regs : 0, task, settings);
    count_by(KILN_COUNT_NS, bpf_ktime_get_ns() - s->record.time_ns);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Runs at each tick of a processor's clock: takes the thread that runs (host/bpf/take.h), if it is
 * wanted.  Waits have programs of their own (host/bpf/wait.h).
 */
#include "host/bpf/filter.h"
#include "host/bpf/take.h"
#include "host/bpf/wait.h"

char kiln_license[] SEC("license") = "Dual BSD/GPL";

/* The context that the kernel gives: the registers first. */
struct tick {
    struct kiln_arch_regs regs;
    __u64 sample_period, addr;
};

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
    if (!kiln_filter_passes(settings, task)) {
        count(KILN_COUNT_FILTERED);
        return 0;
    }
    if (!take_ids(s, task, settings))
        return 0;
    fill_head(&s->record, task, KILN_KIND_CPU, settings->hz);
    if (user_mode)
        s->record.flags |= KILN_RECORD_USER_MODE;
    else
        take_kernel_stack(s, tick, 0);
    take_user(s, user_mode ? &tick->regs : 0, task, settings);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wait - how long threads did not run, taken when they run again: sched_exit_tp is where a thread
 * leaves the scheduler, with its own stack beneath it.
 *
 * A thread's stamp is what the scheduler knew of it when it began to run last:
 *
 *   at_ns    when that was, by the scheduler's clock
 *   off_ns   at_ns - the time that it ran, since ever: grows by exactly what it did not run,
 *            whatever ran in between, and needs no clock to be read
 *   check    off_ns + how long it could have run, since ever
 *   who      its number, how often it left by itself, how often it ran: 32, 16 and 16 bits
 *
 * so that the growth of the second is the wait, that of the third tells how much of it was spent
 * runnable, and the last that no wait in between was missed.  Stamps lie in sets of two, a line of
 * the cache, by the thread's number; a third thread of a set takes another's place, whose next wait
 * is missed (counted).  Two processors may write the same stamp at once: then `check` makes no
 * sense with off_ns.
 *
 * A wait d is taken with p = min(1, d / T), and stands for d / p.  The coin is a hash of the
 * stamp: as random as the nanosecond at which the thread began to run.
 *
 * Threads: BPF only.
 */
#ifndef KILN_HOST_BPF_WAIT_H
#define KILN_HOST_BPF_WAIT_H

#include "host/bpf/filter.h"
#include "host/bpf/rates.h"
#include "host/bpf/take.h"

enum {
    WAYS = 2,
    RATIO_BITS = 20,
    SKEW_NS = 1000000,  /* by which clocks of processors may differ */
    PROGRAM_FRAMES = 2, /* of the kernel's stack: this program and who called it */
    FORMAT_SHIFT = 12,  /* of a file's kind in its mode */
    FILES_MAX = 1 << 20,
};

struct stamp {
    __u64 at_ns, off_ns, check, who;
};
struct stamps {
    struct stamp way[WAYS];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct stamps);
} kiln_stamps SEC(".maps");

/* A wait that is over. */
struct wait {
    __u64 ns, runnable_ns, between_ns;
    int blocked; /* it left by itself */
};

static __always_inline void stamp_now(struct task_struct *task, struct stamp *ret_stamp)
{
    ret_stamp->at_ns = task->sched_info.last_arrival;
    ret_stamp->off_ns = ret_stamp->at_ns - task->se.sum_exec_runtime;
    ret_stamp->check = ret_stamp->off_ns + task->sched_info.run_delay;
    ret_stamp->who = (__u64)(__u32)task->pid << 32 | (task->nvcsw & 0xffff) << 16 |
                     (task->sched_info.pcount & 0xffff);
}

/* Where the thread's stamp is; where it has none, another's place that it may take. */
static __always_inline struct stamp *stamp_place(struct stamps *set, const struct stamp *now)
{
    __u32 tid = now->who >> 32;
    if (set->way[0].who >> 32 == tid)
        return &set->way[0];
    if (set->way[1].who >> 32 == tid)
        return &set->way[1];
    return set->way[0].who && (!set->way[1].who || (now->at_ns & 1)) ? &set->way[1] : &set->way[0];
}

/* A thread that left for the first time: it began when it was made, and runs now. */
static __always_inline int first_wait(struct task_struct *task, struct wait *ret_wait)
{
    if (task->sched_info.pcount != 2)
        return 0;
    ret_wait->ns = bpf_ktime_get_ns() - task->start_time - task->se.sum_exec_runtime;
    ret_wait->runnable_ns = task->sched_info.run_delay;
    ret_wait->between_ns = 0;
    ret_wait->blocked = task->nvcsw != 0;
    return 1;
}

/* The wait between two stamps; 0: there was more than one, or they make no sense. */
static __always_inline int wait_between(const struct stamp *from, const struct stamp *to,
                                        struct wait *ret_wait)
{
    if (from->who >> 32 != to->who >> 32 || ((from->who + 1) & 0xffff) != (to->who & 0xffff))
        return 0;
    ret_wait->ns = to->off_ns - from->off_ns;
    ret_wait->runnable_ns = (to->check - to->off_ns) - (from->check - from->off_ns);
    ret_wait->between_ns = to->at_ns - from->at_ns;
    ret_wait->blocked = ((from->who ^ to->who) & 0xffff0000) != 0;
    return 1;
}

/* Clocks of two processors differ a little, a stamp that was torn by much. */
static __always_inline int make_sense(struct wait *wait)
{
    if ((__s64)wait->ns <= 0 || wait->runnable_ns > wait->ns + SKEW_NS)
        return 0;
    if (!wait->blocked || wait->runnable_ns > wait->ns)
        wait->runnable_ns = wait->ns;
    return 1;
}

static __always_inline int is_taken(const struct kiln_settings *settings, const struct stamp *now,
                                    __u64 ns)
{
    __u64 coin = (now->at_ns ^ now->off_ns << 32 ^ now->who) * 0x9e3779b97f4a7c15;
    coin = (coin ^ coin >> 32) * 0xd6e8feb86659fd93;
    return ns >= settings->wait_period_ns || coin < ns * settings->wait_rate;
}

/* ---- the record ---- */

/* What kind of file the first argument of its system call is; 0: none. */
static __always_inline __u32 file_kind(struct task_struct *task, __u64 fd)
{
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file **slots, *file = 0;
    if (!table || fd >= FILES_MAX || fd >= BPF_CORE_READ(table, max_fds))
        return 0;
    slots = BPF_CORE_READ(table, fd);
    if (bpf_probe_read_kernel(&file, sizeof(file), slots + fd) || !file)
        return 0;
    return BPF_CORE_READ(file, f_inode, i_mode) >> FORMAT_SHIFT;
}

/* The system call that the thread is in. */
static __always_inline void fill_call(struct kiln_record *record, struct task_struct *task)
{
    struct kiln_arch_regs regs;
    if (!task->mm || bpf_probe_read_kernel(&regs, sizeof(regs), (void *)bpf_task_pt_regs(task)))
        return;
    if (regs.orig_ax >= 0xffff) /* it came into the kernel by a fault or an interrupt */
        return;
    record->syscall = (__u16)(regs.orig_ax + 1);
    record->wait_file = file_kind(task, regs.di);
}

static __always_inline __u8 state_of(struct task_struct *task, int blocked)
{
    if (!blocked)
        return KILN_WAIT_PREEMPTED;
    if (BPF_CORE_READ_BITFIELD(task, sched_contributes_to_load) ||
        BPF_CORE_READ_BITFIELD(task, in_iowait))
        return KILN_WAIT_DISK;
    return KILN_WAIT_SLEEP;
}

/* The time that the wait stands for, and of it the runnable part. */
static __always_inline void fill_times(struct kiln_record *record, const struct wait *wait,
                                       __u64 period_ns)
{
    __u64 ns = wait->ns ? wait->ns : 1;
    record->began_ns = record->time_ns - wait->ns;
    record->between_ns = wait->between_ns;
    record->wait_ns = wait->ns;
    record->runnable_ns = wait->runnable_ns;
    if (wait->ns < period_ns) {
        record->wait_ns = period_ns;
        record->runnable_ns = period_ns * ((wait->runnable_ns << RATIO_BITS) / ns) >> RATIO_BITS;
    }
}

static __always_inline void take_wait(__u64 *context, struct task_struct *task,
                                      const struct kiln_settings *settings, const struct wait *wait)
{
    struct scratch *s = scratch_of(KILN_KIND_WAIT);
    if (!s || !kiln_filter_passes(settings, task) || kiln_rate_is_paused(settings, task) ||
        !take_ids(s, task, settings))
        return;
    fill_head(&s->record, task, KILN_KIND_WAIT, 0);
    s->record.wait_state = state_of(task, wait->blocked);
    fill_call(&s->record, task);
    fill_times(&s->record, wait, settings->wait_period_ns);
    take_kernel_stack(s, context, PROGRAM_FRAMES);
    take_user(s, 0, task, settings);
    count(KILN_COUNT_WAITS);
}

/* Whether it was a switch is the first argument of every kernel that has this tracepoint. */
SEC("tp_btf/sched_exit_tp")
int kiln_wait(__u64 *context)
{
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 zero = 0;
    struct kiln_settings *settings = bpf_map_lookup_elem(&kiln_settings, &zero);
    count(KILN_COUNT_SWITCHES);
    if (!(context[0] & 1) || !settings || (task->flags & KILN_TASK_KERNEL_THREAD))
        return 0;
    __u32 index = (__u32)task->pid & settings->stamp_mask;
    struct stamps *set = bpf_map_lookup_elem(&kiln_stamps, &index);
    if (!set)
        return 0;
    struct stamp now;
    struct wait wait;
    stamp_now(task, &now);
    struct stamp *place = stamp_place(set, &now), from = *place;
    *place = now;
    if (!wait_between(&from, &now, &wait) && !first_wait(task, &wait)) {
        count(KILN_COUNT_WAITS_MISSED);
        return 0;
    }
    if (!make_sense(&wait))
        count(KILN_COUNT_WAITS_MISSED);
    else if (is_taken(settings, &now, wait.ns))
        take_wait(context, task, settings, &wait);
    return 0;
}

#endif /* KILN_HOST_BPF_WAIT_H */

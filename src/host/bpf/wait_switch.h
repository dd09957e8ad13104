/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * wait_switch - waits where the kernel has no sched_exit_tp: at sched_switch the thread that leaves
 * is still there to be looked at, and the one that comes is not yet.
 *
 * So the coin is thrown, and the stack taken, before anybody knows how long the wait will be: with
 * p = min(1, m / T), m being the mean of the thread's last waits, but at least 2^-10.  The
 * record is sent at once (KILN_RECORD_BEGINS); when the thread comes back, a short one follows with
 * its time (KILN_RECORD_ENDS), which stands for d / p.  User space joins the two.
 *
 * Threads: BPF only.
 */
#ifndef KILN_HOST_BPF_WAIT_SWITCH_H
#define KILN_HOST_BPF_WAIT_SWITCH_H

#include "host/bpf/wait.h"

enum {
    LEAST_SHIFT = 10, /* p is at least 2^-10 */
    MEAN_SHIFT = 2,   /* of the last waits, each counts as a quarter */
    STATE_DEEP = 2,   /* TASK_UNINTERRUPTIBLE */
    STATE_DEAD = 128, /* TASK_DEAD: it does not come back */
};

/* What the kernel gives. */
struct switch_context {
    __u64 preempt;
    struct task_struct *prev, *next;
    __u64 prev_state;
};

struct leaving {
    __u64 left_ns;
    __u64 mean_ns;
    __u64 who;    /* its number, and how often it left, in the lower half */
    __u32 chance; /* of 2^32, with which this wait was taken; 0: it was not */
    __u32 runs;   /* it would run: nobody has to wake it */
};
struct leavings {
    struct leaving way[WAYS];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct leavings);
} kiln_leavings SEC(".maps");

static __always_inline __u64 who_leaves(struct task_struct *task)
{
    return (__u64)(__u32)task->pid << 32 | (__u32)(task->nvcsw + task->nivcsw);
}

static __always_inline struct leaving *leaving_place(const struct kiln_settings *settings,
                                                     struct task_struct *task, __u64 dice)
{
    __u32 tid = (__u32)task->pid, index = tid & settings->stamp_mask;
    struct leavings *set = bpf_map_lookup_elem(&kiln_leavings, &index);
    if (!set)
        return 0;
    if (set->way[0].who >> 32 == tid)
        return &set->way[0];
    if (set->way[1].who >> 32 == tid)
        return &set->way[1];
    return set->way[0].who && (!set->way[1].who || (dice & 1)) ? &set->way[1] : &set->way[0];
}

/* Of 2^32. */
static __always_inline __u32 chance_of(const struct kiln_settings *settings, __u64 mean_ns)
{
    __u64 chance =
        mean_ns < settings->wait_period_ns ? mean_ns * settings->wait_rate >> 32 : 0xffffffff;
    __u64 least = 1U << (32 - LEAST_SHIFT);
    return chance > least ? (__u32)chance : (__u32)least;
}

static __always_inline void take_leaving(struct switch_context *context, struct leaving *leaving,
                                         const struct kiln_settings *settings)
{
    struct task_struct *task = context->prev;
    struct scratch *s = scratch_of(KILN_KIND_WAIT);
    if (!s || !kiln_filter_passes(settings, task) || kiln_rate_is_paused(settings, task) ||
        !take_ids(s, task, settings)) {
        leaving->chance = 0;
        return;
    }
    fill_head(&s->record, task, KILN_KIND_WAIT, 0);
    s->record.flags = KILN_RECORD_BEGINS;
    s->record.wait_state = leaving->runs                        ? KILN_WAIT_PREEMPTED
                           : (context->prev_state & STATE_DEEP) ? KILN_WAIT_DISK
                                                                : KILN_WAIT_SLEEP;
    s->record.chance = leaving->chance;
    s->record.time_ns = s->record.began_ns = leaving->left_ns;
    fill_call(&s->record, task);
    take_kernel_stack(s, context, PROGRAM_FRAMES);
    take_user(s, 0, task, settings);
}

static __always_inline void leave(struct switch_context *context,
                                  const struct kiln_settings *settings, __u64 now)
{
    struct task_struct *task = context->prev;
    __u64 dice = (now ^ task->se.sum_exec_runtime << 32) * 0x9e3779b97f4a7c15;
    if ((task->flags & KILN_TASK_KERNEL_THREAD) || (context->prev_state & STATE_DEAD))
        return;
    struct leaving *place = leaving_place(settings, task, now);
    if (!place)
        return;
    if (place->who >> 32 != (__u32)task->pid)
        place->mean_ns = settings->wait_first_ns;
    dice = (dice ^ dice >> 32) * 0xd6e8feb86659fd93;
    place->who = who_leaves(task);
    place->left_ns = now;
    place->runs = (context->preempt & 1) || !context->prev_state;
    place->chance = chance_of(settings, place->mean_ns);
    if (dice >> 32 <= place->chance)
        take_leaving(context, place, settings);
    else
        place->chance = 0;
}

/* How long it could have run: since it was woken; all of it, where it never slept. */
static __always_inline __u64 runnable_of(struct task_struct *task, const struct leaving *leaving,
                                         __u64 ns)
{
    __u64 since = task->se.exec_start - task->sched_info.last_queued;
    if (leaving->runs)
        return ns;
    if (!task->sched_info.last_queued || (__s64)since < 0)
        return 0;
    return since < ns ? since : ns;
}

static __always_inline void send_end(struct task_struct *task, const struct leaving *leaving,
                                     const struct kiln_settings *settings, __u64 now)
{
    struct scratch *s = scratch_of(KILN_KIND_WAIT);
    if (!s || !take_ids(s, task, settings))
        return;
    struct kiln_record *record = &s->record;
    fill_head(record, task, KILN_KIND_WAIT, 0);
    record->flags = KILN_RECORD_ENDS;
    record->time_ns = now;
    record->began_ns = leaving->left_ns;
    record->wait_ns = record->between_ns = now - leaving->left_ns;
    record->runnable_ns = runnable_of(task, leaving, record->wait_ns);
    record->chance = leaving->chance;
    send(s, settings, 0, 0);
    count(KILN_COUNT_WAITS);
}

static __always_inline void arrive(struct task_struct *task, const struct kiln_settings *settings,
                                   __u64 now)
{
    if (task->flags & KILN_TASK_KERNEL_THREAD)
        return;
    struct leaving *place = leaving_place(settings, task, now);
    if (!place)
        return;
    if (place->who != who_leaves(task)) {
        if (task->nvcsw + task->nivcsw)
            count(KILN_COUNT_WAITS_MISSED);
        return;
    }
    __s64 more = (__s64)(now - place->left_ns - place->mean_ns);
    place->mean_ns += more >> MEAN_SHIFT;
    if (place->chance)
        send_end(task, place, settings, now);
}

SEC("tp_btf/sched_switch")
int kiln_switch(struct switch_context *context)
{
    __u32 zero = 0;
    struct kiln_settings *settings = bpf_map_lookup_elem(&kiln_settings, &zero);
    if (!settings)
        return 0;
    __u64 now = bpf_ktime_get_ns();
    count(KILN_COUNT_SWITCHES);
    leave(context, settings, now);
    arrive(context->next, settings, now);
    return 0;
}

#endif /* KILN_HOST_BPF_WAIT_SWITCH_H */

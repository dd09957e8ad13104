/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * filter - who is sampled, decided before any work is done.
 *
 * Threads: BPF only.
 */
#ifndef KILN_HOST_BPF_FILTER_H
#define KILN_HOST_BPF_FILTER_H

#include "host/bpf/record.h"
#include "host/bpf/settings.h"
#include "host/bpf/task.h"

enum { KILN_FILTER_PARENTS_MAX = 32, KILN_FILTER_CGROUPS_MAX = 32 };

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, KILN_FILTERS_MAX);
    __type(key, struct kiln_filter_key);
    __type(value, __u8);
} kiln_filters SEC(".maps");

static __always_inline void kiln_filter_key(struct kiln_filter_key *key, __u32 kind)
{
    __builtin_memset(key, 0, sizeof(*key));
    key->kind = kind;
}

static __always_inline int kiln_filter_has(const struct kiln_filter_key *key)
{
    return bpf_map_lookup_elem(&kiln_filters, key) != 0;
}

static __always_inline int kiln_filter_by_comm(void)
{
    struct kiln_filter_key key;
    kiln_filter_key(&key, KILN_FILTER_COMM);
    bpf_get_current_comm(key.comm, sizeof(key.comm));
    return kiln_filter_has(&key);
}

static __always_inline int kiln_filter_by_cgroup(void)
{
    struct kiln_filter_key key;
    kiln_filter_key(&key, KILN_FILTER_CGROUP);
    for (int level = 0; level < KILN_FILTER_CGROUPS_MAX; level++) {
        key.id = bpf_get_current_ancestor_cgroup_id(level);
        if (!key.id)
            return 0;
        if (kiln_filter_has(&key))
            return 1;
    }
    return 0;
}

/* The process, or one that it descends from. */
static __always_inline int kiln_filter_by_pid(struct task_struct *task, __u32 namespace)
{
    struct kiln_filter_key key;
    kiln_filter_key(&key, KILN_FILTER_PID);
    struct task_struct *leader = BPF_CORE_READ(task, group_leader);
    for (int i = 0; i < KILN_FILTER_PARENTS_MAX && leader; i++) {
        key.id = kiln_task_number(leader, namespace);
        if (key.id && kiln_filter_has(&key))
            return 1;
        if (key.id == 1)
            return 0;
        leader = BPF_CORE_READ(leader, real_parent, group_leader);
    }
    return 0;
}

static __always_inline int kiln_filter_passes(const struct kiln_settings *settings,
                                              struct task_struct *task)
{
    __u32 kinds = settings->filter_kinds;
    int found =
        ((kinds & 1 << KILN_FILTER_COMM) && kiln_filter_by_comm()) ||
        ((kinds & 1 << KILN_FILTER_CGROUP) && kiln_filter_by_cgroup()) ||
        ((kinds & 1 << KILN_FILTER_PID) && kiln_filter_by_pid(task, settings->pid_namespace));
    return !kinds || found != !!settings->filter_exclude;
}

#endif /* KILN_HOST_BPF_FILTER_H */

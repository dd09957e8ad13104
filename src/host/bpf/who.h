/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * who - what /proc/PID/status and /proc/PID/cgroup would say of the process that runs, for a tenth
 * of what reading them takes; and it is still true of one that is gone when its sample is looked
 * at.
 *
 * Its control groups are told by one number for all hierarchies, by which the agent remembers what
 * /proc said of another process in the same ones: ids of control groups are never used again.  In
 * the same way another number tells what its paths are paths of.
 *
 * Threads: BPF only.
 */
#ifndef KILN_HOST_BPF_WHO_H
#define KILN_HOST_BPF_WHO_H

#include "host/bpf/record.h"
#include "host/bpf/settings.h"
#include "host/bpf/task.h"

enum { KILN_WHO_HIERARCHIES_MAX = 20 };

static __always_inline __u64 kiln_who_mix(__u64 a, __u64 b)
{
    a = (a ^ b) * 0x9e3779b97f4a7c15;
    return a ^ a >> 29;
}

KILN_VERIFIED_ONCE __u64 kiln_who_cgroups(__u64 set)
{
    struct css_set *css_set = (void *)set;
    struct list_head *head = (void *)css_set + bpf_core_field_offset(struct css_set, cgrp_links);
    struct list_head *at = set ? BPF_CORE_READ(head, next) : 0;
    __u64 all = 0;
    for (int i = 0; i < KILN_WHO_HIERARCHIES_MAX && at && at != head; i++) {
        struct cgrp_cset_link *link =
            (void *)at - bpf_core_field_offset(struct cgrp_cset_link, cgrp_link);
        all = kiln_who_mix(all, BPF_CORE_READ(link, cgrp, kn, id));
        at = BPF_CORE_READ(at, next);
    }
    return at == head ? all : 0;
}

static __always_inline __u32 kiln_who_ns_pid(struct task_struct *task)
{
    struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
    __u32 level = BPF_CORE_READ(pid, level);
    struct upid *at;
    if (level > KILN_TASK_LEVELS_MAX)
        return 0;
    at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
         level * bpf_core_type_size(struct upid);
    return BPF_CORE_READ(at, nr);
}

/* A namespace's number is given to another once it is gone; this is not. */
static __always_inline __u64 kiln_who_mounts(struct mnt_namespace *mounts)
{
    if (bpf_core_field_exists(mounts->ns.ns_id))
        return BPF_CORE_READ(mounts, ns.ns_id);
    return bpf_core_field_exists(mounts->seq) ? BPF_CORE_READ(mounts, seq) : 0;
}

/* The folder's address is its own for as long as a process has it for its root. */
static __always_inline __u64 kiln_who_root(struct task_struct *task)
{
    __u64 mounts = kiln_who_mounts(BPF_CORE_READ(task, nsproxy, mnt_ns));
    __u64 folder = (__u64)BPF_CORE_READ(task, fs, root.dentry);
    __u64 mount = (__u64)BPF_CORE_READ(task, fs, root.mnt);
    return mounts && folder ? kiln_who_mix(kiln_who_mix(mounts, folder), mount) : 0;
}

static __always_inline void kiln_who_tell(struct kiln_who *who, struct task_struct *task,
                                          const struct kiln_settings *settings)
{
    who->cgroups = kiln_who_cgroups((__u64)BPF_CORE_READ(task, cgroups));
    who->root = kiln_who_root(task);
    who->parent_pid =
        kiln_task_number(BPF_CORE_READ(task, real_parent, group_leader), settings->pid_namespace);
    who->uid = BPF_CORE_READ(task, cred, euid.val);
    who->user_namespace = BPF_CORE_READ(task, cred, user_ns, ns.inum);
    who->mount_namespace = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
    who->ns_pid = kiln_who_ns_pid(task);
}

#endif /* KILN_HOST_BPF_WHO_H */

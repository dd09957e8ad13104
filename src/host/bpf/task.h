/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * task - the kernel's own structures, as far as the programs look at them, and ids of processes.
 *
 * Fields are found by name in the BTF of the kernel that runs (CO-RE); their order and whatever
 * else is in them does not matter here.
 *
 * Threads: BPF only.
 */
#ifndef KILN_HOST_BPF_TASK_H
#define KILN_HOST_BPF_TASK_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
    unsigned int inum;
    __u64 ns_id; /* since Linux 6.18 */
};
struct pid_namespace {
    struct ns_common ns;
};
struct upid {
    int nr;
    struct pid_namespace *ns;
};
struct pid {
    unsigned int level;
    struct upid numbers[1];
};
struct user_namespace {
    struct ns_common ns;
};
struct mnt_namespace {
    struct ns_common ns;
    __u64 seq; /* before Linux 6.18 */
};
struct path {
    void *mnt, *dentry;
};
struct fs_struct {
    struct path root;
};
struct nsproxy {
    struct mnt_namespace *mnt_ns;
};
typedef struct {
    unsigned int val;
} kuid_t;
struct cred {
    kuid_t euid;
    struct user_namespace *user_ns;
};
struct list_head {
    struct list_head *next;
};
struct kernfs_node {
    __u64 id;
};
struct cgroup {
    struct kernfs_node *kn;
};
struct cgrp_cset_link {
    struct cgroup *cgrp;
    struct list_head cgrp_link;
};
struct css_set {
    struct list_head cgrp_links;
};
struct mm_struct {
    unsigned long start_stack;
};
struct sched_entity {
    __u64 exec_start, sum_exec_runtime;
};
struct sched_info {
    unsigned long pcount;
    unsigned long long run_delay, last_arrival, last_queued;
};
struct inode {
    unsigned short i_mode;
};
struct file {
    struct inode *f_inode;
};
struct fdtable {
    unsigned int max_fds;
    struct file **fd;
};
struct files_struct {
    struct fdtable *fdt;
};
struct thread_struct {
    unsigned long fsbase; /* the thread pointer */
};
struct task_struct {
    struct thread_struct thread;
    unsigned int flags;
    int pid;
    struct sched_entity se;
    struct sched_info sched_info;
    unsigned int sched_contributes_to_load : 1;
    unsigned int in_iowait : 1;
    unsigned long nvcsw, nivcsw;
    __u64 start_time;
    struct files_struct *files;
    struct mm_struct *mm;
    struct task_struct *real_parent;
    struct task_struct *group_leader;
    struct pid *thread_pid;
    __u64 start_boottime;
    __u64 self_exec_id;
    const struct cred *cred;
    struct nsproxy *nsproxy;
    struct fs_struct *fs;
    struct css_set *cgroups;
};
#pragma clang attribute pop

enum {
    KILN_TASK_KERNEL_THREAD = 0x00200000, /* PF_KTHREAD */
    KILN_TASK_LEVELS_MAX = 32,            /* of nested PID namespaces: MAX_PID_NS_LEVEL */
};

/*
 * A function that the verifier checks once and by itself, whatever state its callers are in.  The
 * verifier takes its result for any number.  Weak, so that the compiler does the same: clang 19
 * derives the range of a result from the body, and drops the comparison in the caller that the
 * verifier needs.
 */
#define KILN_VERIFIED_ONCE __attribute__((noinline, weak))

/* Verified once: its callers are loops, too.  It takes and returns numbers alone. */
KILN_VERIFIED_ONCE __u32 kiln_task_number_of(__u64 address, __u32 namespace)
{
    struct pid *pid = (void *)address;
    __u32 level = pid ? BPF_CORE_READ(pid, level) : 0;
    for (__u32 i = 0; pid && i <= level && i <= KILN_TASK_LEVELS_MAX; i++) {
        struct upid *at = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
                          i * bpf_core_type_size(struct upid);
        if (BPF_CORE_READ(at, ns, ns.inum) == namespace)
            return BPF_CORE_READ(at, nr);
    }
    return 0;
}

/* The task's number in a PID namespace; 0: it has none there. */
static __always_inline __u32 kiln_task_number(struct task_struct *task, __u32 namespace)
{
    return kiln_task_number_of((__u64)BPF_CORE_READ(task, thread_pid), namespace);
}

/*
 * Which program the process runs: each exec adds to self_exec_id, and another process with the same
 * pid began at another time.
 */
static __always_inline __u64 kiln_task_era(struct task_struct *task, __u64 start_ns)
{
    return start_ns + (task->self_exec_id + 1) * 0x9e3779b97f4a7c15;
}

#endif /* KILN_HOST_BPF_TASK_H */

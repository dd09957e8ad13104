/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vanilla kernels know levels of kernel.perf_event_paranoid up to 2.  Debian's and Ubuntu's refuse
 * perf_event_open() above 2 with EACCES to every process without CAP_SYS_ADMIN.
 */
#include "host/refusal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/capability.h"
#include "base/str.h"
#include "host/procfs.h"

/* The number of the first user namespace is part of the kernel's interface (PROC_USER_INIT_INO). */
#define FIRST_USER_NAMESPACE 0xEFFFFFFDu

enum { PARANOID_OF_CAP_PERFMON = 2, SECCOMP_FILTER = 2 };

static const struct kiln_refusal
    capabilities = {"CAP_BPF or CAP_PERFMON is missing",
                    "run as root, or grant CAP_BPF and CAP_PERFMON"},
    paranoid = {"kernel.perf_event_paranoid is above 2, where this kernel asks for CAP_SYS_ADMIN",
                "sudo sysctl kernel.perf_event_paranoid=2, or grant CAP_SYS_ADMIN"},
    in_namespace = {"capabilities of a user namespace do not count for it",
                    "run it in the first user namespace, as root of the host"},
    lockdown = {"the kernel is locked down (confidentiality)",
                "boot with lockdown=integrity, or without lockdown"},
    locked_memory = {"the memory for buffers of events is used up",
                     "grant CAP_IPC_LOCK, or: sudo sysctl kernel.perf_event_mlock_kb=4096"},
    seccomp = {"a seccomp filter forbids it",
               "in a container: --privileged, or --security-opt seccomp=unconfined; in a unit: "
               "SystemCallFilter=bpf perf_event_open"},
    unknown = {"a security module forbids it",
               "see the kernel's log (dmesg) and the audit log for the rule"};

static int64_t read_level(void)
{
    char text[16] = "";
    int64_t level = 0;
    int64_t n =
        kiln_procfs_read(AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", text, sizeof(text) - 1);

    return n > 0 && kiln_str_parse_i64(kiln_str_trim(kiln_str_of(text)), &level) == 0 ? level : 0;
}

void kiln_restraints_read(struct kiln_restraints *ret_restraints)
{
    char lockdown_text[64] = "";
    uint64_t mode = 0;
    struct stat st;

    if (kiln_procfs_number("/proc/self/status", "Seccomp", 10, &mode) < 0)
        mode = 0;
    if (kiln_procfs_read(AT_FDCWD, "/sys/kernel/security/lockdown", lockdown_text,
                         sizeof(lockdown_text) - 1) < 0)
        lockdown_text[0] = '\0';
    *ret_restraints = (struct kiln_restraints){
        .capabilities = kiln_capabilities(),
        .paranoid = read_level(),
        .filtered = mode == SECCOMP_FILTER,
        .locked_down = strstr(lockdown_text, "[confidentiality]") != NULL,
        .in_namespace = stat("/proc/self/ns/user", &st) == 0 && st.st_ino != FIRST_USER_NAMESPACE,
    };
}

const struct kiln_refusal *kiln_refusal_of(const struct kiln_restraints *restraints,
                                           enum kiln_step step, int code)
{
    const uint64_t admin = KILN_CAP(CAP_SYS_ADMIN),
                   both = KILN_CAP(CAP_BPF) | KILN_CAP(CAP_PERFMON);
    uint64_t set = restraints->capabilities;

    if (!(set & admin) && (set & both) != both)
        return &capabilities;
    if (restraints->in_namespace)
        return &in_namespace;
    if (step == KILN_STEP_EVENT && code == -EACCES && !(set & admin) &&
        restraints->paranoid > PARANOID_OF_CAP_PERFMON)
        return &paranoid;
    if (step == KILN_STEP_BUFFER && !(set & KILN_CAP(CAP_IPC_LOCK)))
        return &locked_memory;
    if (restraints->locked_down)
        return &lockdown;
    return restraints->filtered ? &seccomp : &unknown;
}

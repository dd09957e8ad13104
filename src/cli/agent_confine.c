/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that is not on the list has the answer of a kernel that does not know it, so that
 * libraries, which may call others tomorrow, go the way that they know for older kernels.
 *
 * The list holds also for the children that find names and fetch debug files, which are started
 * again and again and confine themselves further: what they need for that is here, too.  Of bpf(2)
 * what makes programs, maps and types is refused: all of them were made at the start.
 */
#include "cli/agent_confine.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/calls.h"
#include "base/capability.h"
#include "host/grants.h"
#include "host/opener.h"

static const uint32_t common[] = {
    /* files */
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
    SYS_openat, SYS_openat2, SYS_close, SYS_close_range, SYS_lseek, SYS_fstat, SYS_newfstatat,
    SYS_statx, SYS_fstatfs, SYS_statfs, SYS_faccessat, SYS_faccessat2, SYS_readlinkat,
    SYS_getdents64, SYS_getcwd, SYS_ftruncate, SYS_fallocate, SYS_fsync, SYS_fdatasync,
    SYS_sync_file_range, SYS_flock, SYS_fcntl, SYS_fchmod, SYS_fchmodat, SYS_umask, SYS_utimensat,
    SYS_renameat, SYS_renameat2, SYS_unlinkat, SYS_mkdirat, SYS_linkat, SYS_dup, SYS_dup3,
    SYS_pipe2, SYS_ioctl, SYS_memfd_create,
    /* waiting */
    SYS_ppoll, SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_eventfd2,
    SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday,
    /* memory */
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_brk, SYS_membarrier,
    /* the network */
    SYS_socket, SYS_socketpair, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_connect,
    SYS_getsockname, SYS_getpeername, SYS_setsockopt, SYS_getsockopt, SYS_sendto, SYS_recvfrom,
    SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg, SYS_shutdown,
    /* threads, signals, the child */
    SYS_clone, SYS_clone3, SYS_execve, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_futex,
    SYS_set_robust_list, SYS_set_tid_address, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity,
    SYS_sched_setaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_setpriority,
    SYS_getpriority, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend, SYS_rt_sigpending, SYS_sigaltstack, SYS_restart_syscall, SYS_kill,
    SYS_tgkill, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_setsid, SYS_unshare, SYS_setgroups,
    SYS_setresgid, SYS_setresuid, SYS_capget, SYS_capset, SYS_prctl, SYS_seccomp,
    /* what a process asks of itself */
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_getgroups, SYS_getresuid, SYS_getresgid, SYS_getrusage, SYS_getrlimit, SYS_setrlimit,
    SYS_prlimit64, SYS_sysinfo, SYS_uname, SYS_getrandom, SYS_getcpu, SYS_times,
#if defined(__x86_64__)
    /* older names of the above, which the C library still uses */
    SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_chmod, SYS_rename, SYS_unlink,
    SYS_mkdir, SYS_rmdir, SYS_link, SYS_dup2, SYS_pipe, SYS_poll, SYS_select, SYS_epoll_create,
    SYS_epoll_wait, SYS_eventfd, SYS_time, SYS_fork, SYS_vfork, SYS_arch_prctl,
#endif
#if KILN_SANITIZED
    SYS_ptrace, SYS_personality, /* looking for leaks */
#endif
};

static const uint32_t profiling[] = {SYS_bpf, SYS_perf_event_open, SYS_process_vm_readv};

static const struct kiln_call_rule rules[] = {
    {SYS_bpf, 0, KILN_CALL_UNLESS_IS, BPF_PROG_LOAD},
    {SYS_bpf, 0, KILN_CALL_UNLESS_IS, BPF_MAP_CREATE},
    {SYS_bpf, 0, KILN_CALL_UNLESS_IS, BPF_BTF_LOAD},
};

_Static_assert(KILN_ARRAY_LEN(common) + KILN_ARRAY_LEN(profiling) <= KILN_CALLS_MAX, "they fit");

/* Where the kernel asks for CAP_SYS_ADMIN, a child keeps it. */
static int keep_opening(struct kiln_log *log)
{
    if (!kiln_opener_is_needed())
        return 0;
    kiln_log(log, KILN_LOG_INFO, "a child keeps CAP_SYS_ADMIN to open perf events", "reason",
             "kernel.perf_event_paranoid is above 2", NULL);
    return kiln_opener_start();
}

int kiln_agent_give_up(struct kiln_log *log, struct kiln_err *err)
{
    uint64_t set = kiln_capabilities();
    int r;

    for (int i = 0; i < KILN_GRANTS; i++) {
        const struct kiln_grant *grant = &kiln_grants[i];

        if (!grant->needed && !kiln_grant_held(grant, set))
            kiln_log(log, KILN_LOG_WARN, "a capability is missing", "which", "%s", grant->name,
                     "without", "%s", grant->without, NULL);
    }
    r = keep_opening(log);
    if (r == 0)
        r = kiln_capabilities_keep(kiln_grants_of(set));
    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    return r < 0 ? kiln_err_set(err, r, NULL, "privileges cannot be given up: %s", kiln_err_text(r))
                 : 0;
}

static void confine(struct kiln_log *log, bool profiles)
{
    uint32_t allowed[KILN_ARRAY_LEN(common) + KILN_ARRAY_LEN(profiling)];
    const struct kiln_call_filter filter = {.calls = allowed,
                                            .n_calls = profiles ? KILN_ARRAY_LEN(allowed)
                                                                : KILN_ARRAY_LEN(common),
                                            .rules = rules,
                                            .n_rules = profiles ? KILN_ARRAY_LEN(rules) : 0,
                                            .all_threads = true,
                                            .refused_errno = ENOSYS};
    int r;

    memcpy(allowed, common, sizeof(common));
    memcpy(allowed + KILN_ARRAY_LEN(common), profiling, sizeof(profiling));
    r = kiln_calls_confine(&filter);
    if (r < 0)
        kiln_log(log, KILN_LOG_WARN, "system calls are not filtered", "reason", "%s",
                 kiln_err_text(r), NULL);
}

void kiln_agent_confine(struct kiln_log *log)
{
    confine(log, true);
}

void kiln_server_confine(struct kiln_log *log)
{
    confine(log, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system call says what is waited for, but for those that do the same to every kind of file:
 * there the kind of the file does.  A thread that is in no system call and did not give way waits
 * for memory to be brought.
 */
#include "host/wait_reason.h"

#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { BY_FILE = KILN_REASONS, FORMAT_SHIFT = 12 };

#define SYSCALLS_MAX 512

static const uint8_t by_syscall[SYSCALLS_MAX] = {
    [SYS_futex] = KILN_REASON_FUTEX,
    [449 /* futex_waitv */] = KILN_REASON_FUTEX,
    [455 /* futex_wait */] = KILN_REASON_FUTEX,
#ifdef SYS_poll
    [SYS_poll] = KILN_REASON_POLL,
    [SYS_select] = KILN_REASON_POLL,
    [SYS_epoll_wait] = KILN_REASON_POLL,
    [SYS_pause] = KILN_REASON_SIGNAL,
    [SYS_vfork] = KILN_REASON_CHILD,
#endif
    [SYS_ppoll] = KILN_REASON_POLL,
    [SYS_pselect6] = KILN_REASON_POLL,
    [SYS_epoll_pwait] = KILN_REASON_POLL,
    [SYS_epoll_pwait2] = KILN_REASON_POLL,
    [SYS_nanosleep] = KILN_REASON_SLEEP,
    [SYS_clock_nanosleep] = KILN_REASON_SLEEP,
    [SYS_rt_sigsuspend] = KILN_REASON_SIGNAL,
    [SYS_rt_sigtimedwait] = KILN_REASON_SIGNAL,
    [SYS_wait4] = KILN_REASON_CHILD,
    [SYS_waitid] = KILN_REASON_CHILD,
    [SYS_clone] = KILN_REASON_CHILD,
    [SYS_clone3] = KILN_REASON_CHILD,
    [SYS_accept] = KILN_REASON_SOCKET,
    [SYS_accept4] = KILN_REASON_SOCKET,
    [SYS_connect] = KILN_REASON_SOCKET,
    [SYS_recvfrom] = KILN_REASON_SOCKET,
    [SYS_recvmsg] = KILN_REASON_SOCKET,
    [SYS_recvmmsg] = KILN_REASON_SOCKET,
    [SYS_sendto] = KILN_REASON_SOCKET,
    [SYS_sendmsg] = KILN_REASON_SOCKET,
    [SYS_sendmmsg] = KILN_REASON_SOCKET,
    [SYS_read] = BY_FILE,
    [SYS_readv] = BY_FILE,
    [SYS_pread64] = BY_FILE,
    [SYS_preadv] = BY_FILE,
    [SYS_preadv2] = BY_FILE,
    [SYS_write] = BY_FILE,
    [SYS_writev] = BY_FILE,
    [SYS_pwrite64] = BY_FILE,
    [SYS_pwritev] = BY_FILE,
    [SYS_pwritev2] = BY_FILE,
    [SYS_sendfile] = BY_FILE,
    [SYS_splice] = BY_FILE,
    [SYS_tee] = BY_FILE,
    [SYS_vmsplice] = BY_FILE,
    [SYS_ioctl] = BY_FILE,
    [SYS_fsync] = KILN_REASON_DISK,
    [SYS_fdatasync] = KILN_REASON_DISK,
    [SYS_sync] = KILN_REASON_DISK,
    [SYS_syncfs] = KILN_REASON_DISK,
    [SYS_sync_file_range] = KILN_REASON_DISK,
    [SYS_msync] = KILN_REASON_DISK,
    [SYS_flock] = KILN_REASON_LOCK,
    [SYS_fcntl] = KILN_REASON_LOCK,
    [SYS_msgrcv] = KILN_REASON_IPC,
    [SYS_msgsnd] = KILN_REASON_IPC,
    [SYS_semop] = KILN_REASON_IPC,
    [SYS_semtimedop] = KILN_REASON_IPC,
    [SYS_mq_timedreceive] = KILN_REASON_IPC,
    [SYS_mq_timedsend] = KILN_REASON_IPC,
    [SYS_io_getevents] = KILN_REASON_IO,
    [SYS_io_pgetevents] = KILN_REASON_IO,
    [SYS_io_uring_enter] = KILN_REASON_IO,
    [SYS_mmap] = KILN_REASON_MEMORY,
    [SYS_munmap] = KILN_REASON_MEMORY,
    [SYS_mremap] = KILN_REASON_MEMORY,
    [SYS_mprotect] = KILN_REASON_MEMORY,
    [SYS_madvise] = KILN_REASON_MEMORY,
    [SYS_brk] = KILN_REASON_MEMORY,
};

static enum kiln_wait_reason by_file(const struct kiln_record *record)
{
    switch (record->wait_file << FORMAT_SHIFT) {
    case S_IFIFO:
        return KILN_REASON_PIPE;
    case S_IFSOCK:
        return KILN_REASON_SOCKET;
    case S_IFREG:
    case S_IFBLK:
    case S_IFDIR:
        return KILN_REASON_DISK;
    default:
        return KILN_REASON_IO;
    }
}

enum kiln_wait_reason kiln_wait_reason_of(const struct kiln_record *record)
{
    unsigned call = record->syscall ? record->syscall - 1U : SYSCALLS_MAX;
    unsigned reason = call < SYSCALLS_MAX ? by_syscall[call] : KILN_REASON_OTHER;

    if (record->flags & KILN_RECORD_KERNEL_THREAD)
        return KILN_REASON_OTHER;
    if (!record->syscall)
        return KILN_REASON_PAGE_FAULT;
    if (reason == BY_FILE)
        return by_file(record);
    if (reason == KILN_REASON_OTHER && record->wait_state == KILN_WAIT_DISK)
        return KILN_REASON_DISK;
    return (enum kiln_wait_reason)reason;
}

const char *kiln_state_word(enum kiln_thread_state state)
{
    return state == KILN_STATE_RUNNABLE ? "runnable" : "blocked";
}

const char *kiln_reason_word(enum kiln_wait_reason reason)
{
    static const char *const words[KILN_REASONS] = {
        [KILN_REASON_OTHER] = "other",   [KILN_REASON_FUTEX] = "futex",
        [KILN_REASON_POLL] = "poll",     [KILN_REASON_SLEEP] = "sleep",
        [KILN_REASON_PIPE] = "pipe",     [KILN_REASON_SOCKET] = "socket",
        [KILN_REASON_DISK] = "disk",     [KILN_REASON_IO] = "io",
        [KILN_REASON_CHILD] = "child",   [KILN_REASON_SIGNAL] = "signal",
        [KILN_REASON_LOCK] = "lock",     [KILN_REASON_IPC] = "ipc",
        [KILN_REASON_MEMORY] = "memory", [KILN_REASON_PAGE_FAULT] = "page_fault",
    };

    return words[reason < KILN_REASONS ? reason : KILN_REASON_OTHER];
}

bool kiln_wait_says_nothing(struct kiln_str function)
{
    static const char *const prefixes[] = {
        "schedule",     "__schedule",    "preempt_schedule", "__traceiter_",
        "__bpf_trace_", "bpf_trace_run", "bpf_prog_",        "__cond_resched",
    };

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(prefixes); i++)
        if (kiln_str_starts(function, kiln_str_of(prefixes[i])))
            return true;
    return false;
}

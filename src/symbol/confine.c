/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers, so that a hole in one is not a way out: limits, namespaces of its own (where that is
 * allowed), the user nobody, no capabilities, and a seccomp filter that lets only a few calls pass.
 * Only namespaces and the change of user may fail: in a container they may be forbidden.
 *
 * Of the calls, mmap passes only for memory that is not to be executed, pwrite64 and ftruncate only
 * for the scratch file.
 */
#include "symbol/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/capability.h"
#include "base/mem.h"

enum { NOBODY = 65534 };

/* mmap, pwrite64 and ftruncate are not among them: they have rules of their own. */
static const uint32_t allowed[] = {
    SYS_read,      SYS_pread64,     SYS_recvmsg,       SYS_sendmsg,     SYS_munmap,
    SYS_mremap,    SYS_madvise,     SYS_brk,           SYS_close,       SYS_fstat,
    SYS_futex,     SYS_lseek,       SYS_clock_gettime, SYS_sigaltstack, SYS_rt_sigreturn,
    SYS_getpid,    SYS_sched_yield, SYS_newfstatat,    SYS_exit,        SYS_exit_group,
    SYS_getrandom, SYS_ppoll,
};

static int limit(int what, uint64_t value)
{
    struct rlimit to = {value, value};

    return setrlimit((__rlimit_resource_t)what, &to) < 0 ? -errno : 0;
}

/* What this process has mapped already. */
static uint64_t mapped_bytes(void)
{
    unsigned long pages = 0;
    char text[64] = {0};
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return UINT64_C(1) << 30;
    if (read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%lu", &pages) != 1)
        pages = 1 << 18;
    close(fd);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int limit_all(const struct kiln_confinement *to)
{
    /* Sanitizers map terabytes of address space. */
    int r = KILN_SANITIZED ? 0 : limit(RLIMIT_AS, mapped_bytes() + to->memory_bytes);

    if (r == 0)
        r = limit(RLIMIT_FSIZE, to->scratch >= 0 ? to->scratch_bytes : 0);
    if (r == 0)
        r = limit(RLIMIT_CORE, 0);
    if (r == 0)
        r = limit(RLIMIT_MEMLOCK, 0);
    return r < 0 ? r : limit(RLIMIT_NOFILE, to->files);
}

static int close_others(int fd, int last)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int i = 0; i < 3; i++) {
        if (null >= 0 ? dup2(null, i) < 0 : i != fd && close(i) < 0 && errno != EBADF)
            return -errno;
    }
    if (fd > 3 && syscall(SYS_close_range, 3, (unsigned)fd - 1, 0) < 0)
        return -errno;
    return syscall(SYS_close_range, (unsigned)last + 1, ~0U, 0) < 0 ? -errno : 0;
}

/* In a container there may be no such user, or no right to become one: its capabilities go all the
 * same. */
static int become_nobody(void)
{
    kiln_capabilities_bound(0);
    if (setgroups(0, NULL) < 0 && errno != EPERM)
        return -errno;
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
        return -errno;
    if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
        return -errno;
    return 0;
}

/*
 * As root the namespaces come first, for which it needs root, then the user, then a user namespace
 * in which nobody has been given a meaning; without privilege that one allows the others.
 */
static int leave(void)
{
    const int others = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    bool left = geteuid() == 0 && unshare(others) == 0;
    int r = geteuid() == 0 ? become_nobody() : 0;

    if (r < 0)
        return r;
    if (left || unshare(CLONE_NEWUSER | others) < 0)
        (void)unshare(CLONE_NEWUSER);
    return kiln_capabilities_keep(0);
}

static int filter(int scratch)
{
    const struct kiln_call_rule rules[] = {
        {SYS_mmap, 2, KILN_CALL_IF_NONE, PROT_EXEC},
        {SYS_pwrite64, 0, KILN_CALL_IF_IS, (uint32_t)scratch},
        {SYS_ftruncate, 0, KILN_CALL_IF_IS, (uint32_t)scratch},
    };
    const struct kiln_call_filter filter = {.calls = allowed,
                                            .n_calls = KILN_ARRAY_LEN(allowed),
                                            .rules = rules,
                                            .n_rules = scratch < 0 ? 1 : KILN_ARRAY_LEN(rules)};

    return kiln_calls_confine(&filter);
}

int kiln_confine(const struct kiln_confinement *to)
{
    int last = to->last > to->fd ? to->last : to->scratch >= 0 ? to->scratch : to->fd;
    int r = close_others(to->fd, last);

    (void)setsid();
    if (r == 0)
        r = limit_all(to);
    if (r == 0)
        r = leave();
    if (r == 0 &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
         prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0))
        r = -errno;
    return r < 0 ? r : filter(to->scratch);
}

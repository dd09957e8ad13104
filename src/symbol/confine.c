/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers, so that a hole in one is not a way out: limits, namespaces of its own (where that is
 * allowed), the user nobody, no capabilities, and a seccomp filter that lets only a few calls pass.
 * Only namespaces and the change of user may fail: in a container they may be forbidden.
 *
 * The filter is a program of classic BPF over struct seccomp_data: is it this architecture; is it
 * one of the calls (one comparison each); for mmap, is the memory not to be executed; for pwrite64
 * and ftruncate, is it the scratch file.
 */
#include "symbol/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

enum { NOBODY = 65534, CAPS_MAX = 64 };

/* Address space cannot be limited under sanitizers, which map terabytes of it. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

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
    int r = SANITIZED ? 0 : limit(RLIMIT_AS, mapped_bytes() + to->memory_bytes);

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
    if (fd > 3 && close_range(3, (unsigned)fd - 1, 0) < 0)
        return -errno;
    return close_range((unsigned)last + 1, ~0U, 0) < 0 ? -errno : 0;
}

static void drop_bounding(void)
{
    for (unsigned long cap = 0; cap < CAPS_MAX; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno == EINVAL)
            break;
    }
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    drop_bounding();
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/*
 * As root the namespaces come first, for which it needs root, then the user, then a user namespace
 * in which nobody has been given a meaning; without privilege that one allows the others.
 */
static int leave(void)
{
    const int others = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

    if (geteuid() == 0) {
        (void)unshare(others);
        drop_bounding();
        /* In a container there may be no such user, or no right to become one: its capabilities go
         * all the same. */
        if (setgroups(0, NULL) < 0 && errno != EPERM)
            return -errno;
        if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
            return -errno;
        if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
            return -errno;
        (void)unshare(CLONE_NEWUSER);
    } else if (unshare(CLONE_NEWUSER | others) < 0) {
        (void)unshare(CLONE_NEWUSER);
    }
    return drop_capabilities();
}

/* A call that is allowed only if the low half of an argument agrees with a value. */
struct rule {
    uint32_t call, argument;
    uint16_t test; /* BPF_JEQ, or BPF_JSET and then none of the bits may be set */
    uint32_t value;
};

static uint16_t add_rule(struct sock_filter *program, uint16_t at, const struct rule *rule)
{
    const uint32_t argument =
        (uint32_t)(__builtin_offsetof(struct seccomp_data, args) + (size_t)8 * rule->argument);
    const uint8_t good = rule->test == BPF_JEQ;

    program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->call, 0, 4);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument);
    program[at++] = (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | rule->test),
                                                 rule->value, good, (uint8_t)!good);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return at;
}

static int filter(int scratch)
{
    enum { N = KILN_ARRAY_LEN(allowed) };
    const struct rule rules[] = {{SYS_mmap, 2, BPF_JSET, PROT_EXEC},
                                 {SYS_pwrite64, 0, BPF_JEQ, (uint32_t)scratch},
                                 {SYS_ftruncate, 0, BPF_JEQ, (uint32_t)scratch}};
    struct sock_filter program[N + 6 + 5 * KILN_ARRAY_LEN(rules)];
    struct sock_fprog all = {.filter = program};
    uint16_t at = 0;

    program[at++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, (uint32_t) __builtin_offsetof(struct seccomp_data, arch));
    program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    program[at++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, (uint32_t) __builtin_offsetof(struct seccomp_data, nr));
    for (uint32_t i = 0; i < (scratch < 0 ? 1 : KILN_ARRAY_LEN(rules)); i++)
        at = add_rule(program, at, rules + i);
    /* Behind the comparisons: kill, allow. */
    for (uint32_t i = 0; i < N; i++)
        program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i],
                                                     (uint8_t)(N - i), 0);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    all.len = at;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all) < 0 ? -errno : 0;
}

int kiln_confine(const struct kiln_confinement *to)
{
    int r = close_others(to->fd, to->scratch >= 0 ? to->scratch : to->fd);

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

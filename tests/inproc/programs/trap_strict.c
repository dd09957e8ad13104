/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that give up nearly all system calls, with death for whoever uses one: a child that
 * lives on with a short list of them, one whose filter ends its thread, and this process itself in
 * the strict mode, which has read() and write() and ends by a bare system call.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIVES_NS = 150000000, TURNS = 2 };

static char *volatile blocks[8];

static void churn(int n)
{
    for (int i = 0; i < n; i++) {
        free(blocks[i % 8]);
        blocks[i % 8] = malloc((size_t)(i % 700) + 1);
    }
}

#define ALLOW(call)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* What the C library needs for memory, for a sleep and for its end; and what our guest is known
 * for. */
static int keep_few(unsigned otherwise)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_brk),
        ALLOW(SYS_mmap),
        ALLOW(SYS_munmap),
        ALLOW(SYS_mprotect),
        ALLOW(SYS_madvise),
        ALLOW(SYS_write),
        ALLOW(SYS_clock_nanosleep),
        ALLOW(SYS_futex),
        ALLOW(SYS_getpid),
        ALLOW(SYS_gettid),
        ALLOW(SYS_rt_sigprocmask),
        ALLOW(SYS_rt_sigreturn),
        ALLOW(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, otherwise),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* For long enough that a child is looked at as any other process. */
static void live(void)
{
    struct timespec time = {.tv_nsec = LIVES_NS};

    for (int i = 0; i < TURNS; i++) {
        nanosleep(&time, NULL);
        churn(20000);
        if (write(STDOUT_FILENO, "goes on\n", 8) != 8)
            _exit(3);
    }
}

static void in_child(const char *what, unsigned otherwise)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        churn(100);
        if (!keep_few(otherwise))
            _exit(2);
        live();
        if (otherwise == SECCOMP_RET_KILL_THREAD)
            syscall(SYS_getppid);
        _exit(4);
    }
    waitpid(pid, &status, 0);
    printf("%s: %x\n", what,
           (unsigned)status & ~0x80u); /* whether a core was dumped is no matter */
}

static void be_strict(void)
{
    char *same = NULL;
    char byte = 0;
    int ends[2];

    if (pipe(ends) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        syscall(SYS_exit, 2);
    for (volatile long i = 0; i < 100000000; i++)
        if (i % 1000 == 0) {
            free(blocks[0]);
            blocks[0] = malloc(100); /* the same each time: nothing is asked of the kernel */
            if (same && blocks[0] != same)
                syscall(SYS_exit, 6);
            same = blocks[0];
        }
    if (write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1 ||
        write(STDOUT_FILENO, "strict\n", 7) != 7)
        syscall(SYS_exit, 3);
    syscall(SYS_exit, byte == 'x' ? 5 : 3);
}

int main(void)
{
    churn(20000);
    in_child("a short list", SECCOMP_RET_KILL_PROCESS);
    in_child("a thread that is ended", SECCOMP_RET_KILL_THREAD);
    fflush(stdout);
    be_strict();
}

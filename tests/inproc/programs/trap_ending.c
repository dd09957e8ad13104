/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -Wno-deprecated-declarations */
/* Signals that end a process, where a handler would not get far; and one that ends a call. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 2048 }; /* what the kernel takes, and has no room in */

static void churn(int n)
{
    for (int i = 0; i < n; i++)
        free(strdup("a text that is copied"));
}

static void end(int sig)
{
    churn(100);
    kill(getpid(), sig);
    usleep(100000);
    kill(getpid(), sig);
    usleep(100000);
}

static void on_small_stack(void)
{
    static char memory[SMALL];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

    sigaltstack(&stack, NULL);
    end(SIGTERM);
}

/* The program's own handler comes and goes. */
static void on_small_stack_later(void)
{
    static char memory[SMALL];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

    sigaltstack(&stack, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGHUP, SIG_DFL);
    end(SIGHUP);
}

static struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 1, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

static void without_calls(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    end(SIGINT);
}

/* Said to the kernel alone; how it ends is not compared. */
static void without_calls_unseen(void)
{
    syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
    end(SIGINT);
}

static int status_of(void (*run)(void))
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        run();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return status;
}

static void on_signal(int sig)
{
    (void)sig;
}

/* A call that a signal is to end: a second one comes where the first did not. */
static void ended_call(void)
{
    int ends[2], status;
    pid_t parent = getpid(), child;
    char byte;
    ssize_t n;

    siginterrupt(SIGINT, 1);
    signal(SIGINT, on_signal);
    if (pipe(ends) != 0)
        return;
    child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            usleep(100000);
            kill(parent, SIGINT);
        }
        n = write(ends[1], "x", 1);
        _exit(n == 1 ? 0 : 1);
    }
    n = read(ends[0], &byte, 1);
    printf("a call is %s\n", n < 0 && errno == EINTR ? "ended" : "not ended");
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    siginterrupt(SIGINT, 0);
}

/* Ways to have a handler of which sigaction() knows. */
static void other_ways(void)
{
    struct sigaction now;

    sigset(SIGTERM, on_signal);
    sigaction(SIGTERM, NULL, &now);
    printf("sigset %d", now.sa_handler == on_signal);
    sigignore(SIGTERM);
    sigaction(SIGTERM, NULL, &now);
    printf(" %d", now.sa_handler == SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    sigaction(SIGTERM, NULL, &now);
    printf(" %d\n", now.sa_handler == SIG_DFL);
}

int main(void)
{
    churn(10000);
    printf("small stack %#x\n", status_of(on_small_stack));
    printf("small stack, later %#x\n", status_of(on_small_stack_later));
    printf("without calls %#x\n", status_of(without_calls));
    printf("unseen %s\n", status_of(without_calls_unseen) ? "ended" : "alive");
    fflush(stdout);
    ended_call();
    other_ways();
    churn(10000);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses SIGPROF itself, in the ways that programs do.  Prints one line for each, "ok: ..." or
 * "FAILED: ...".
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ours, strangers;
static int failed;

static void check(const char *what, int good)
{
    failed += !good;
    printf("%s: %s\n", good ? "ok" : "FAILED", what);
}

static void on_prof(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    if (info->si_code == SI_TIMER)
        strangers++;
    else
        ours++;
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void burn(double seconds)
{
    double end = cpu_seconds() + seconds;
    volatile unsigned n = 0;

    while (cpu_seconds() < end)
        for (unsigned i = 0; i < 10000; i++)
            n += i;
}

static void with_a_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_prof, .sa_flags = SA_SIGINFO | SA_RESTART}, old;
    struct itimerval every = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};

    sigaction(SIGPROF, NULL, &old);
    check("nobody has a handler before", old.sa_handler == SIG_DFL);
    sigaction(SIGPROF, &action, &old);
    check("nobody had one when it is set", old.sa_handler == SIG_DFL);
    setitimer(ITIMER_PROF, &every, NULL);
    burn(0.3);
    setitimer(ITIMER_PROF, &never, NULL);
    check("the program's own ticks come", ours >= 10);
    check("and no others do", strangers == 0);
    sigaction(SIGPROF, NULL, &old);
    check("its handler is still its own", old.sa_sigaction == on_prof);
    check("signal() tells it too", signal(SIGPROF, SIG_DFL) == (void (*)(int))on_prof);
}

static void ends_by_default(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGPROF, SIG_DFL);
        kill(getpid(), SIGPROF);
        burn(0.1);
        _exit(0);
    }
    waitpid(child, &status, 0);
    check("SIGPROF ends a process that has no handler",
          WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF);
}

static void ignores_it(void)
{
    struct pollfd none = {.fd = -1};

    check("signal() to ignore it", signal(SIGPROF, SIG_IGN) == SIG_DFL);
    kill(getpid(), SIGPROF);
    burn(0.1);
    check("a call is not interrupted then", poll(&none, 1, 1) == 0);
    check("signal() for the default again", signal(SIGPROF, SIG_DFL) == SIG_IGN);
}

/* A thread that blocks everything, works, and lets all signals in while it waits. */
static void *block_all(void *arg)
{
    struct timespec shortly = {.tv_nsec = 200000};
    sigset_t all, none, old;
    int interrupted = 0;

    sigfillset(&all);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < 60; i++) {
        burn(0.003);
        interrupted += ppoll(NULL, 0, &shortly, &none) < 0;
        interrupted += sigtimedwait(&all, NULL, &shortly) > 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    *(int *)arg = interrupted;
    return NULL;
}

static void blocks_everything(void)
{
    pthread_t thread;
    int interrupted = -1;

    pthread_create(&thread, NULL, block_all, &interrupted);
    pthread_join(thread, NULL);
    check("who blocks all signals sees none of ours", interrupted == 0);
}

static void waits_for_it(void)
{
    sigset_t one, old;
    siginfo_t info;
    int fd, got;

    sigemptyset(&one);
    sigaddset(&one, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &one, &old);
    kill(getpid(), SIGPROF);
    got = sigwaitinfo(&one, &info);
    check("the program waits for its own SIGPROF", got == SIGPROF);
    check("which is not one of ours", info.si_code == SI_USER);
    fd = signalfd(-1, &one, 0);
    kill(getpid(), SIGPROF);
    struct signalfd_siginfo from_fd;
    check("or reads it from a descriptor",
          read(fd, &from_fd, sizeof(from_fd)) == sizeof(from_fd) && from_fd.ssi_code == SI_USER);
    close(fd);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    burn(0.05);
    with_a_handler();
    ends_by_default();
    ignores_it();
    blocks_everything();
    burn(1.2);
    waits_for_it();
    burn(0.1);
    return failed != 0;
}

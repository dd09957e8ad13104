/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose main thread ends first: it ends when the last thread does, with status 0, after
 * handlers of the exit have run and what was printed is written.  A child of its own does the same
 * by thrd_exit() on the main thread.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

static const char *who = "parent";

static void *work(void *arg)
{
    for (int i = 0; i < 300; i++) {
        void *block = malloc(5000);

        memset(block, i, 5000);
        free(block);
        usleep(1000);
    }
    printf("%s: the last thread ends\n", who);
    return arg;
}

static void at_exit(void)
{
    sigset_t mask;

    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    printf("%s: exit, SIGINT is blocked: %d, SIGUSR1: %d\n", who, sigismember(&mask, SIGINT),
           sigismember(&mask, SIGUSR1));
}

int main(void)
{
    pthread_t thread;
    sigset_t one;
    int status;
    pid_t pid = fork();

    if (pid == 0)
        who = "child";
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    atexit(at_exit);
    if (pid) {
        waitpid(pid, &status, 0);
        printf("parent: the child's status is %x\n", (unsigned)status);
    }
    pthread_create(&thread, NULL, work, NULL);
    pthread_detach(thread);
    if (pid == 0)
        thrd_exit(7);
    pthread_exit(NULL);
}

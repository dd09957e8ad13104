/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes out of a process whose threads allocate and lock all the time: fork with grandchildren
 * and threads of their own, vfork, posix_spawn, system, popen, exec.  Prints what it counted.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 60, SPAWNS = 20, THREADS = 3 };

static atomic_bool over;
static int (*const shell)(const char *) = system;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void churn(int n)
{
    void *blocks[64] = {0};

    for (int i = 0; i < n; i++) {
        int at = i % 64;

        free(blocks[at]);
        blocks[at] = malloc((size_t)(i * 37 % 3000) + 1);
        memset(blocks[at], i, 1);
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
}

static void *work(void *arg)
{
    while (!atomic_load(&over)) {
        churn(200);
        pthread_mutex_lock(&lock);
        churn(3);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void *once(void *arg)
{
    churn(500);
    return arg;
}

static int status_of(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Allocates, has a thread, and a child of its own. */
static int child(int i)
{
    pthread_t thread;
    pid_t pid;

    churn(1000);
    if (pthread_create(&thread, NULL, once, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 99;
    pid = fork();
    if (pid == 0) {
        churn(100);
        _exit(i % 5);
    }
    return status_of(pid) == i % 5 ? i % 7 : 98;
}

static int forks(void)
{
    int good = 0;

    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid;

        pthread_mutex_lock(&lock); /* so that the child may use it */
        pid = fork();
        pthread_mutex_unlock(&lock);
        if (pid == 0)
            exit(child(i));
        good += status_of(pid) == i % 7;
    }
    return good;
}

static int vforks(void)
{
    volatile int good = 0;

    for (volatile int i = 0; i < SPAWNS; i = i + 1) {
        volatile int mine = i;
        pid_t pid = vfork();

        if (pid == 0) {
            close(100);
            mine = -1 - i;
            if (i % 2)
                execl("/bin/sh", "sh", "-c", "exit 3", NULL);
            _exit(3);
        }
        good = good + (status_of(pid) == 3 && mine == -1 - i);
    }
    return good;
}

static int spawns(void)
{
    int good = 0;

    for (int i = 0; i < SPAWNS; i++) {
        char *argv[] = {"sh", "-c", "exit 4", NULL};
        pid_t pid;

        if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0)
            good += status_of(pid) == 4;
    }
    return good;
}

static int shells(void)
{
    int good = 0;

    for (int i = 0; i < 5; i++) {
        FILE *pipe = popen("echo $((20 + 22))", "r");
        char line[16] = "";

        good += fgets(line, sizeof(line), pipe) && strcmp(line, "42\n") == 0 && pclose(pipe) == 0;
        good += WEXITSTATUS(shell("exit 6")) == 6;
    }
    return good;
}

/* What was sampled before exec is lost otherwise, if no export happened to come before. */
static void flush_profiles(void)
{
    int (*flush)(uint32_t) = (int (*)(uint32_t))dlsym(RTLD_DEFAULT, "kiln_flush");

    if (flush)
        (void)flush(60000);
}

int main(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    printf("fork %d of %d\n", forks(), CHILDREN);
    printf("vfork %d of %d\n", vforks(), SPAWNS);
    printf("spawn %d of %d\n", spawns(), SPAWNS);
    printf("shell %d of 10\n", shells());
    fflush(stdout);
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    flush_profiles();
    execl("/bin/sh", "sh", "-c", "echo exec; exit 5", NULL);
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something of every profile, each in a function of its own; what it is told on standard input:
 *
 *   alloc N    N blocks of a MiB more are kept (keep_blocks)
 *   fork       a child that lives as long as standard input is open
 *   (end)      it ends
 *
 * Each line is answered with one.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define MIB (1 << 20)

static pthread_mutex_t crowded = PTHREAD_MUTEX_INITIALIZER, quiet = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile unsigned long spun;
static void *volatile kept;

/* Of processor time, however many others want some. */
static void spin_ms(long ms)
{
    struct timespec from, now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do {
        for (int i = 0; i < 10000; i++)
            spun += (unsigned long)i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

__attribute__((noinline)) void burn_cpu(void)
{
    spin_ms(6);
    spun++;
}

__attribute__((noinline)) void nap(void)
{
    usleep(34000);
    spun++;
}

__attribute__((noinline)) void churn_blocks(void)
{
    void *volatile block = malloc(MIB);

    free(block);
    spun++;
}

static void *burner(void *arg)
{
    for (;;) {
        burn_cpu();
        churn_blocks();
        nap();
    }
    return arg;
}

__attribute__((noinline)) void wait_for_lock(void)
{
    pthread_mutex_lock(&crowded);
    usleep(1000);
    pthread_mutex_unlock(&crowded);
    spun++;
}

static void *crowd(void *arg)
{
    for (;;)
        wait_for_lock();
    return arg;
}

__attribute__((noinline)) void wait_for_signal(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 10000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&quiet);
    pthread_cond_timedwait(&never, &quiet, &until);
    pthread_mutex_unlock(&quiet);
    spun++;
}

static void *waiter(void *arg)
{
    for (;;)
        wait_for_signal();
    return arg;
}

__attribute__((noinline)) void stall_loop(void)
{
    spin_ms(25);
    spun++;
}

static void *looper(void *arg)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;

    for (;;) {
        epoll_wait(fd, &event, 1, 225);
        stall_loop();
    }
    return arg;
}

__attribute__((noinline)) void keep_blocks(long n)
{
    for (long i = 0; i < n; i++) {
        void **block = malloc(MIB);

        *block = kept;
        kept = block;
    }
    spun++;
}

__attribute__((noinline)) void make_threads(void)
{
    static void *(*const runs[])(void *) = {burner, crowd, crowd, waiter, looper};
    pthread_t thread;

    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
        pthread_create(&thread, NULL, runs[i], NULL);
}

/* A child that lives until nobody can write to standard input any more. */
static void fork_one(void)
{
    if (fork() != 0) {
        printf("forked\n");
        return;
    }
    poll(&(struct pollfd){.fd = 0}, 1, -1);
    _exit(0);
}

int main(void)
{
    char line[64];

    keep_blocks(4);
    make_threads();
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (strncmp(line, "alloc ", 6) == 0) {
            keep_blocks(strtol(line + 6, NULL, 10));
            printf("kept\n");
        } else if (strcmp(line, "fork\n") == 0) {
            fork_one();
        }
        fflush(stdout);
    }
    return 0;
}

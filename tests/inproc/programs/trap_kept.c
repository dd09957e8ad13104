/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may rely on: errno, sizes and alignments of blocks, failures, its own handlers and
 * timers, its signal mask, its environment, closed descriptors, that nothing failed before it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int errno_is_kept(void)
{
    for (int i = 0; i < 200000; i++) {
        void *block;

        errno = 4711;
        block = malloc((size_t)(i % 4000));
        free(block);
        block = calloc(3, (size_t)(i % 100));
        block = realloc(block, 5000);
        free(block);
        free(NULL);
        if (errno != 4711)
            return 0;
    }
    return 1;
}

static int failures_are_the_same(void)
{
    volatile size_t huge = SIZE_MAX / 2 + 10, half = (size_t)1 << 33;
    char *volatile block = malloc(100);
    void *volatile same;
    void *aligned = (void *)8;
    int good = 1;

    errno = 0;
    good &= malloc(huge) == NULL && errno == ENOMEM;
    errno = 0;
    good &= calloc(half, half) == NULL && errno == ENOMEM;
    snprintf(block, 100, "still here");
    same = realloc(block, huge);
    good &= same == NULL && strcmp(block, "still here") == 0;
    same = reallocarray(block, half, half);
    good &= same == NULL && strcmp(block, "still here") == 0;
    good &= posix_memalign(&aligned, 3, 8) == EINVAL && aligned == (void *)8;
    good &= posix_memalign(&aligned, 4096, 100) == 0 && (uintptr_t)aligned % 4096 == 0;
    good &= malloc_usable_size(aligned) >= 100 && malloc_usable_size(NULL) == 0;
    free(aligned);
    good &= realloc(block, 0) == NULL;
    return good;
}

static int alignments_hold(void)
{
    for (size_t align = 16; align <= 1 << 16; align *= 2)
        for (size_t size = align; size <= 4 * align; size += align) {
            void *block = aligned_alloc(align, size);

            if (!block || (uintptr_t)block % align || malloc_usable_size(block) < size)
                return 0;
            memset(block, 1, size);
            free(block);
        }
    return 1;
}

static volatile sig_atomic_t ticks, usr;
static void on_tick(int signo)
{
    (void)signo;
    ticks = ticks + 1;
}
static void on_usr(int signo)
{
    (void)signo;
    usr = usr + 1;
}

static void burn_until(volatile sig_atomic_t *what, int least)
{
    time_t end = time(NULL) + 20;

    while (*what < least && time(NULL) < end)
        for (volatile int i = 0; i < 100000; i = i + 1)
            ;
}

/* A program that profiles itself goes on to. */
static int own_profiler_works(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, seen;
    struct itimerval every = {{0, 5000}, {0, 5000}}, none = {{0, 0}, {0, 0}};

    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    burn_until(&ticks, 5);
    setitimer(ITIMER_PROF, &none, NULL);
    sigaction(SIGPROF, NULL, &seen);
    return ticks >= 5 && seen.sa_handler == on_tick;
}

static int mask_is_kept(void)
{
    sigset_t all, before, after;
    int same = 1;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < 20000; i++)
        free(malloc((size_t)i));
    pthread_sigmask(SIG_SETMASK, &before, &after);
    for (int i = 1; i < SIGRTMIN; i++)
        same &= sigismember(&after, i) == (i != SIGKILL && i != SIGSTOP && sigismember(&all, i));
    signal(SIGUSR1, on_usr);
    raise(SIGUSR1);
    return same && usr == 1;
}

/* Time that passes asleep is asleep: nothing interrupts it. */
static int sleeps_are_whole(void)
{
    struct timespec wanted = {0, 30000000}, left = {0, 0};
    int whole = 1;

    for (int i = 0; i < 10; i++)
        whole &= nanosleep(&wanted, &left) == 0;
    return whole;
}

/* Daemons close everything they do not know. */
static int closing_all_is_survived(void)
{
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    for (int i = 0; i < 20000; i++)
        free(malloc((size_t)i % 3000 + 1));
    return sleeps_are_whole();
}

int main(void)
{
    printf("linker %d\n", dlerror() == NULL);
    printf("errno %d\n", errno_is_kept());
    printf("failures %d\n", failures_are_the_same());
    printf("alignments %d\n", alignments_hold());
    printf("own profiler %d\n", own_profiler_works());
    printf("mask %d\n", mask_is_kept());
    printf("sleeps %d\n", sleeps_are_whole());
    printf("closing %d\n", closing_all_is_survived());
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that rest, each in another way and in a function of its own, and one that does not.
 *
 *   threads_at_rest MILLISECONDS     longer, until half of that was spun on a processor
 *
 * The one that spins ends the program: any other would wake for that, and on a busy machine stand
 * for a while where it neither rests nor runs.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static uint32_t word;
static int empty[2];
static volatile unsigned long turns;
static long ms;

/* Something behind each call, so that it is no jump. */
#define REST(name, call)                                                                           \
    __attribute__((noinline)) void name(void)                                                      \
    {                                                                                              \
        for (;;) {                                                                                 \
            call;                                                                                  \
            turns++;                                                                               \
        }                                                                                          \
    }

REST(sleep_long, nanosleep(&(struct timespec){.tv_sec = 1000}, NULL))
REST(read_nothing, (void)!read(empty[0], &(char){0}, 1))
REST(poll_nothing, poll(NULL, 0, -1))
REST(wait_for_work, pthread_cond_wait(&never, &lock))
REST(wait_for_lock, pthread_mutex_lock(&held))
REST(wait_raw, syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))

static long ms_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noinline)) void spin_for_ever(void)
{
    long end_ms = ms_of(CLOCK_MONOTONIC) + ms;

    do {
        for (unsigned i = 0; i < 1000000; i++)
            turns++;
    } while (ms_of(CLOCK_MONOTONIC) < end_ms || ms_of(CLOCK_THREAD_CPUTIME_ID) < ms / 2);
    exit(0);
}

static const struct way {
    const char *name;
    void (*rest)(void);
    unsigned threads;
} ways[] = {
    {"sleeper", sleep_long, 1},    {"reader", read_nothing, 2},   {"poller", poll_nothing, 1},
    {"worker", wait_for_work, 3},  {"blocked", wait_for_lock, 1}, {"raw", wait_raw, 1},
    {"spinner", spin_for_ever, 1},
};

static void *rest(void *arg)
{
    const struct way *way = arg;

    pthread_setname_np(pthread_self(), way->name);
    if (way->rest == wait_for_work)
        pthread_mutex_lock(&lock);
    way->rest();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    ms = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    if (pipe(empty) < 0)
        return 1;
    pthread_mutex_lock(&held);
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        for (unsigned j = 0; j < ways[i].threads; j++)
            pthread_create(&thread, NULL, rest, (void *)&ways[i]);
    }
    for (;;)
        pause();
}

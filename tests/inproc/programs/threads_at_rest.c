/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that rest, each in another way and in a function of its own, and one that does not.
 *
 *   threads_at_rest MILLISECONDS     longer, until half of that was spun on a processor
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
REST(spin_for_ever, )

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

static long ms_of(pthread_t thread)
{
    struct timespec used;
    clockid_t clock;

    if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &used) < 0)
        exit(1);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    pthread_t thread; /* in the end the one that spins */

    if (pipe(empty) < 0)
        return 1;
    pthread_mutex_lock(&held);
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        for (unsigned j = 0; j < ways[i].threads; j++)
            pthread_create(&thread, NULL, rest, (void *)&ways[i]);
    }
    do
        nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    while (ms_of(thread) < ms / 2);
    return 0;
}

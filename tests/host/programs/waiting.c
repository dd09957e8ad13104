/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits in functions of its own: sleeps, waits for a lock, a pipe and a poll, and burns, for about
 * MILLISECONDS each time and SECONDS each in all.  Prints what it saw itself: a line a function
 * with its name, how long it took, and how much of that was CPU time, in nanoseconds.
 *
 * usage: waiting SECONDS MILLISECONDS
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "burn.h"

static int asks[2], answers[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct timespec spec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

KEPT void wait_for_time(uint64_t ns)
{
    struct timespec t = spec(ns);
    nanosleep(&t, NULL);
    STAY;
}

/* Somebody has it and does not give it up. */
KEPT void wait_for_lock(uint64_t ns)
{
    struct timespec until = spec(clock_ns(CLOCK_REALTIME) + ns);
    pthread_mutex_timedlock(&lock, &until);
    STAY;
}

KEPT void wait_for_pipe(uint64_t ns)
{
    char byte;
    if (write(asks[1], &ns, sizeof(ns)) != sizeof(ns) || read(answers[0], &byte, 1) != 1)
        exit(1);
    STAY;
}

KEPT void wait_for_poll(uint64_t ns)
{
    struct timespec t = spec(ns);
    struct pollfd nothing = {answers[0], POLLIN, 0};
    ppoll(&nothing, 1, &t, NULL);
    STAY;
}

KEPT void burn_for(uint64_t ns)
{
    uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
        spin(TURN / 100);
    STAY;
}

/* Answers through the pipe after as long as it is asked to. */
static void *answer(void *context)
{
    uint64_t ns;
    while (read(asks[0], &ns, sizeof(ns)) == sizeof(ns)) {
        struct timespec t = spec(ns);
        nanosleep(&t, NULL);
        if (write(answers[1], "x", 1) != 1)
            break;
    }
    return context;
}

struct kind {
    const char *name;
    void (*wait)(uint64_t ns);
    uint64_t wall_ns, cpu_ns;
};

static void *wait_all(void *context)
{
    struct kind *kinds = context;
    uint64_t all_ns = kinds[5].wall_ns, each_ns = kinds[5].cpu_ns;
    for (int i = 0; kinds[i].name && kinds[0].wall_ns < all_ns; i = kinds[i + 1].name ? i + 1 : 0) {
        uint64_t wall = now_ns(), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        kinds[i].wait(about(each_ns));
        kinds[i].cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
        kinds[i].wall_ns += now_ns() - wall;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t each_ns = (uint64_t)((argc > 2 ? strtod(argv[2], NULL) : 5) * 1e6);
    struct kind kinds[] = {
        {"wait_for_time", wait_for_time, 0, 0}, {"wait_for_lock", wait_for_lock, 0, 0},
        {"wait_for_pipe", wait_for_pipe, 0, 0}, {"wait_for_poll", wait_for_poll, 0, 0},
        {"burn_for", burn_for, 0, 0},           {NULL, NULL, span_ns(argc, argv), each_ns},
    };
    pthread_t waiter, answerer;
    uint64_t began = now_ns();
    pthread_mutex_lock(&lock);
    if (pipe(asks) != 0 || pipe(answers) != 0 ||
        pthread_create(&answerer, NULL, answer, NULL) != 0 ||
        pthread_create(&waiter, NULL, wait_all, kinds) != 0)
        return 1;
    pthread_setname_np(waiter, "waiter");
    pthread_join(waiter, NULL);
    for (int i = 0; kinds[i].name; i++)
        printf("%s %llu %llu\n", kinds[i].name, (unsigned long long)kinds[i].wall_ns,
               (unsigned long long)kinds[i].cpu_ns);
    printf("all %llu 0\n", (unsigned long long)(now_ns() - began));
    return 0;
}

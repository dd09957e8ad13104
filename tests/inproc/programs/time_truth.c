/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -fno-omit-frame-pointer -fno-optimize-sibling-calls */
/*
 * Spends time in functions of telling names, and prints how much it was, as JSON.
 *
 *   time_truth cpu SECONDS      burns CPU time on four threads: burn_half, burn_third, burn_sixth
 *   time_truth waits            sleeps: doze_sleep, doze_poll, doze_pipe, doze_lock
 *   time_truth loop             an event loop that hold_loop (CPU) and doze_in_loop (asleep) hold
 *   time_truth mixed            burns and sleeps in turns: burn_half
 *   time_truth periodic         burn_half for 5 of every 10 ms of CPU time, burn_third for the rest
 *   time_truth threads          CPU time of threads that live for 25 ms each: burn_short
 *   time_truth narrow           burn_half, burn_third with an alternate stack that is too small for
 *                               any handler, and burn_sixth after it
 *
 * Of the loop, "loop" is the most that all turns of 20 ms and longer may have taken, and
 * "hold_loop_cpu" the CPU time of hold_loop, which is less than its time where other programs have
 * the processors.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define MS    1000000L

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static volatile uint64_t sink;

/* Mostly in itself, not in the clock. */
static inline __attribute__((always_inline)) uint64_t burn(uint64_t ns)
{
    uint64_t from = clock_ns(CLOCK_THREAD_CPUTIME_ID), now;

    do {
        for (uint64_t i = 0; i < 20000; i++)
            sink += i;
        now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    } while (now - from < ns);
    return now - from;
}

static _Atomic uint64_t spent[4];

APART static void burn_half(uint64_t ns)
{
    spent[0] += burn(ns);
}
APART static void burn_third(uint64_t ns)
{
    spent[1] += burn(ns);
}
APART static void burn_sixth(uint64_t ns)
{
    spent[2] += burn(ns);
}
APART static void burn_short(uint64_t ns)
{
    spent[3] += burn(ns);
}

static uint64_t share_ns;

/* By chance, as long on average: turns of one length would beat with the ticks of a clock. */
static uint64_t about(uint64_t ns, uint64_t *random)
{
    *random = *random * 6364136223846793005 + 1442695040888963407;
    return (*random >> 33) % (2 * ns);
}

static void *burn_all(void *arg)
{
    uint64_t random = clock_ns(CLOCK_MONOTONIC) ^ (uintptr_t)&random;

    for (uint64_t done = 0; done < share_ns; done += 6 * MS) {
        burn_half(about(3 * MS, &random));
        burn_third(about(2 * MS, &random));
        burn_sixth(about(1 * MS, &random));
    }
    return arg;
}

/* 0 where the time has passed already: a virtual machine's CPU time jumps when its host takes the
 * processor away. */
static uint64_t left_until(uint64_t end)
{
    uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);

    return now < end ? end - now : 0;
}

/* Each time up to the same place of the period, whatever the last turn took. */
static void periodic(void)
{
    uint64_t at = clock_ns(CLOCK_THREAD_CPUTIME_ID), end = at + 1500 * MS;

    for (at += 5 * MS; at < end; at += 10 * MS) {
        burn_half(left_until(at));
        burn_third(left_until(at + 5 * MS));
    }
    printf("{\"burn_half\": %lu, \"burn_third\": %lu}\n", spent[0], spent[1]);
}

static void *live_shortly(void *arg)
{
    burn_short(25 * MS);
    return arg;
}

static void cpu(double seconds)
{
    pthread_t threads[3];

    share_ns = (uint64_t)(seconds * 1e9 / 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, burn_all, NULL);
    burn_all(NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("{\"burn_half\": %lu, \"burn_third\": %lu, \"burn_sixth\": %lu}\n", spent[0], spent[1],
           spent[2]);
}

static void short_threads(void)
{
    for (int i = 0; i < 24; i++) {
        pthread_t thread;

        pthread_create(&thread, NULL, live_shortly, NULL);
        pthread_join(thread, NULL);
    }
    printf("{\"burn_short\": %lu}\n", spent[3]);
}

static void *burn_narrowly(void *arg)
{
    static _Thread_local char small[2048];
    stack_t stack = {.ss_sp = small, .ss_size = sizeof(small)}, none = {.ss_flags = SS_DISABLE};

    burn_half(100 * MS);
    sigaltstack(&stack, NULL);
    burn_third(300 * MS);
    sigaltstack(&none, NULL);
    burn_sixth(300 * MS);
    return arg;
}

static void narrow(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, burn_narrowly, NULL);
    burn_narrowly(NULL);
    pthread_join(thread, NULL);
    printf("{\"burn_half\": %lu, \"burn_third\": %lu, \"burn_sixth\": %lu}\n", spent[0], spent[1],
           spent[2]);
}

/* ---- waits ---- */

static int pipe_fds[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

APART static void doze_sleep(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2 * MS}, NULL);
    __asm__ volatile("");
}
APART static void doze_poll(void)
{
    poll(NULL, 0, 5);
    __asm__ volatile("");
}
APART static void doze_pipe(void)
{
    char byte;

    if (read(pipe_fds[0], &byte, 1) != 1)
        abort();
}
APART static void doze_lock(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 3 * MS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    pthread_cond_timedwait(&never, &lock, &until);
    pthread_mutex_unlock(&lock);
}

static void *feed(void *arg)
{
    for (int i = 0; i < 100; i++) {
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 4 * MS}, NULL);
        if (write(pipe_fds[1], "x", 1) != 1)
            abort();
    }
    return arg;
}

static uint64_t timed(void (*doze)(void), int times)
{
    uint64_t from = clock_ns(CLOCK_MONOTONIC);

    for (int i = 0; i < times; i++)
        doze();
    return clock_ns(CLOCK_MONOTONIC) - from;
}

static void waits(void)
{
    uint64_t slept, polled, read, locked;
    pthread_t feeder;

    if (pipe(pipe_fds))
        abort();
    slept = timed(doze_sleep, 150);
    polled = timed(doze_poll, 60);
    locked = timed(doze_lock, 100);
    pthread_create(&feeder, NULL, feed, NULL);
    read = timed(doze_pipe, 100);
    pthread_join(feeder, NULL);
    printf("{\"doze_sleep\": %lu, \"doze_poll\": %lu, \"doze_pipe\": %lu, \"doze_lock\": %lu}\n",
           slept, polled, read, locked);
}

/* ---- an event loop ---- */

APART static void hold_loop(uint64_t ns)
{
    spent[0] += burn(ns);
    __asm__ volatile("");
}
APART static void doze_in_loop(void)
{
    usleep(40000);
    __asm__ volatile("");
}
APART static void work_quickly(void)
{
    burn(2 * MS);
    __asm__ volatile("");
}

static uint64_t wall(void (*work)(uint64_t), void (*doze)(void))
{
    uint64_t from = clock_ns(CLOCK_MONOTONIC);

    if (work)
        work(60 * MS);
    else
        doze();
    return clock_ns(CLOCK_MONOTONIC) - from;
}

static void mixed(void)
{
    for (int i = 0; i < 20; i++) {
        burn_half(20 * MS);
        usleep(20000);
    }
    printf("{\"burn_half\": %lu}\n", spent[0]);
}

/* A poll, seen from outside: the turn that it ends began after *since, and is over by now. */
static void poll_loop(int epoll, int timeout_ms, uint64_t *since, uint64_t *all)
{
    struct epoll_event events[4];
    uint64_t from = clock_ns(CLOCK_MONOTONIC), now;

    epoll_wait(epoll, events, 4, timeout_ms);
    now = clock_ns(CLOCK_MONOTONIC);
    if (now - *since >= 20 * MS)
        *all += now - *since;
    *since = from;
}

static void loop(void)
{
    int epoll = epoll_create1(0), event = eventfd(1, 0);
    uint64_t held = 0, dozed = 0, all = 0, since = clock_ns(CLOCK_MONOTONIC);

    epoll_ctl(epoll, EPOLL_CTL_ADD, event, &(struct epoll_event){.events = EPOLLIN});
    /* Each of the two holds ten turns: one that a busy machine spoils is a tenth. */
    for (int i = 0; i <= 200; i++) {
        poll_loop(epoll, 0, &since, &all); /* as libuv probes */
        poll_loop(epoll, 100, &since, &all);
        if (i % 20 == 9)
            held += wall(hold_loop, NULL);
        else if (i % 20 == 19)
            dozed += wall(NULL, doze_in_loop);
        else
            work_quickly();
    }
    printf("{\"hold_loop\": %lu, \"doze_in_loop\": %lu, \"loop\": %lu, \"hold_loop_cpu\": %lu}\n",
           held, dozed, all, spent[0]);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    if (!strcmp(mode, "cpu"))
        cpu(argc > 2 ? strtod(argv[2], NULL) : 1);
    else if (!strcmp(mode, "waits"))
        waits();
    else if (!strcmp(mode, "loop"))
        loop();
    else if (!strcmp(mode, "mixed"))
        mixed();
    else if (!strcmp(mode, "periodic"))
        periodic();
    else if (!strcmp(mode, "threads"))
        short_threads();
    else if (!strcmp(mode, "narrow"))
        narrow();
    else
        return 2;
    return 0;
}

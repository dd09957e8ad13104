/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ticks and timed calls cost, alone or with a library preloaded.
 *
 *   tick tick     ns of CPU time of our handler, at a stack of some 40 frames; the kernel takes
 *                 about 2,500 more to bring the signal and to go on
 *   tick calls    ns of CPU time of calls that may sleep and do not: read and write of a pipe, of a
 *                 file, recv of a socket that does not block, poll and epoll with something there
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "inproc/sample/cpu.h"
#include "inproc/start.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"

enum { ROUNDS = 9, CALLS = 100000, DEPTH = 32 };

static int pipe_fds[2], sockets[2], file, epoll;

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- a tick ---- */

static double handle(ucontext_t *here)
{
    struct kiln_in_record record;
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from = cpu_ns();

        for (int i = 0; i < CALLS / 100; i++) {
            kiln_in_cpu_tick(KILN_IN_TICK_OWN, 0, here);
            kiln_in_ring_take(&kiln_in_line.thread->ring, &record);
        }
        if ((double)(cpu_ns() - from) / (CALLS / 100) < best)
            best = (double)(cpu_ns() - from) / (CALLS / 100);
    }
    return best;
}

__attribute__((noinline)) static double handle_here(void)
{
    ucontext_t here;

    getcontext(&here);
    return handle(&here);
}

/* Stacks are as deep as those of programs. */
__attribute__((noinline)) static double handle_deep(unsigned depth)
{
    double ns = depth ? handle_deep(depth - 1) : handle_here();

    __asm__ volatile("");
    return ns;
}

static int show_tick(void)
{
    kiln_in_settings.depth = 128;
    kiln_in_settings.cpu_hz = 100;
    kiln_in_threads_init(1);
    atomic_store(&kiln_in_on, KILN_IN_ON);
    if ((kiln_in_unwind_start && kiln_in_unwind_start() < 0) || kiln_in_cpu_open() < 0)
        return 1;
    kiln_in_cpu_set(true, false);
    printf("handler_ns %.1f\n", handle_deep(DEPTH));
    return 0;
}

/* ---- calls ---- */

static void by_pipe(void)
{
    char byte = 0;

    if (write(pipe_fds[1], &byte, 1) != 1 || read(pipe_fds[0], &byte, 1) != 1)
        abort();
}

static void by_file(void)
{
    char byte;

    if (read(file, &byte, 1) < 0)
        abort();
}

static void by_recv(void)
{
    char byte;

    (void)!recv(sockets[0], &byte, 1, 0);
}

static void by_poll(void)
{
    struct pollfd fds[2] = {{.fd = sockets[1], .events = POLLOUT},
                            {.fd = sockets[0], .events = POLLIN}};

    if (poll(fds, 2, 1000) != 1)
        abort();
}

static void by_epoll(void)
{
    struct epoll_event event;

    if (epoll_wait(epoll, &event, 1, 1000) != 1)
        abort();
}

static double fastest(void (*call)(void))
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from = cpu_ns();

        for (int i = 0; i < CALLS; i++)
            call();
        if ((double)(cpu_ns() - from) / CALLS < best)
            best = (double)(cpu_ns() - from) / CALLS;
    }
    return best;
}

static void *idle(void *arg)
{
    pause();
    return arg;
}

/* In a process of one thread the C library and the kernel do without some atomic operations. */
static void prepare(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, idle, NULL);
    if (pipe(pipe_fds) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        abort();
    fcntl(sockets[0], F_SETFL, O_NONBLOCK);
    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[1], &(struct epoll_event){.events = EPOLLOUT});
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "tick") == 0)
        return show_tick();
    if (argc != 2 || strcmp(argv[1], "calls") != 0)
        return 2;
    prepare();
    printf("pipe_ns %.1f\n", fastest(by_pipe));
    printf("file_ns %.1f\n", fastest(by_file));
    printf("recv_ns %.1f\n", fastest(by_recv));
    printf("poll_ns %.1f\n", fastest(by_poll));
    printf("epoll_ns %.1f\n", fastest(by_epoll));
    return 0;
}

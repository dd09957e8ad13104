/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whatever sleeps, again and again, each time for a moment only and after the kernel has
 * worked for it, so that ticks of the CPU clock fall into calls that are about to sleep; and counts
 * how often they ended with EINTR.
 *
 *   sleepers SECONDS          of CPU time
 *   sleepers SECONDS wall     the same while a timer of its own interrupts it by the wall clock
 *
 * Prints a JSON object: {"poll": [calls, interrupted], ...}
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 900, SLEEP_NS = 100000, THREADS = 6 };

static struct pollfd pattern[FILES];
static int n_files, epoll;
static __thread struct pollfd files[FILES];
static __thread int sockets[2];
static sem_t semaphore;
static uint32_t word;
static double ended;

static struct timespec later(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_nsec += SLEEP_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static const struct timespec shortly = {.tv_nsec = SLEEP_NS};

/* True: the call ended with EINTR. */
static int by_poll(void)
{
    return poll(files, (nfds_t)n_files, 1) < 0;
}
static int by_ppoll(void)
{
    sigset_t none;

    sigemptyset(&none);
    return ppoll(files, (nfds_t)n_files, &shortly, &none) < 0;
}
static int by_select(void)
{
    struct timeval time = {.tv_usec = SLEEP_NS / 1000};
    fd_set set;

    FD_ZERO(&set);
    for (int i = 0; i < n_files; i++)
        FD_SET(files[i].fd, &set);
    return select(FD_SETSIZE, &set, NULL, NULL, &time) < 0;
}
static int by_pselect(void)
{
    fd_set set;

    FD_ZERO(&set);
    for (int i = 0; i < n_files; i++)
        FD_SET(files[i].fd, &set);
    return pselect(FD_SETSIZE, &set, NULL, NULL, &shortly, NULL) < 0;
}
static int by_epoll(void)
{
    struct epoll_event event;

    return epoll_wait(epoll, &event, 1, 1) < 0;
}
static int by_nanosleep(void)
{
    return nanosleep(&shortly, NULL) < 0;
}
static int by_clock_nanosleep(void)
{
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &shortly, NULL) == EINTR;
}
static int by_usleep(void)
{
    return usleep(SLEEP_NS / 1000) < 0;
}
static int by_sem(void)
{
    struct timespec until = later(CLOCK_REALTIME);

    return sem_timedwait(&semaphore, &until) < 0 && errno == EINTR;
}
static int by_recv(void)
{
    char byte;

    return recv(sockets[0], &byte, 1, 0) < 0 && errno == EINTR;
}
static int by_sigtimedwait(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &shortly) < 0 && errno == EINTR;
}
static int by_sigtimedwait_all(void)
{
    sigset_t set;
    int r;

    sigfillset(&set);
    r = sigtimedwait(&set, NULL, &shortly);
    return r > 0 || errno == EINTR;
}
static int by_futex(void)
{
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &shortly, NULL, 0) < 0 &&
           errno == EINTR;
}
static int by_flood(void) /* long in the kernel, and full in the end: sleeps until its time is up */
{
    static char bytes[1 << 20];

    while (send(sockets[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
        continue;
    return send(sockets[1], bytes, sizeof(bytes), 0) < 0 && errno == EINTR;
}

static struct {
    const char *name;
    int (*sleep)(void);
    _Atomic long calls, interrupted;
} ways[] = {{"poll", by_poll, 0, 0},
            {"ppoll", by_ppoll, 0, 0},
            {"select", by_select, 0, 0},
            {"pselect", by_pselect, 0, 0},
            {"epoll_wait", by_epoll, 0, 0},
            {"nanosleep", by_nanosleep, 0, 0},
            {"clock_nanosleep", by_clock_nanosleep, 0, 0},
            {"usleep", by_usleep, 0, 0},
            {"sem_timedwait", by_sem, 0, 0},
            {"recv", by_recv, 0, 0},
            {"sigtimedwait", by_sigtimedwait, 0, 0},
            {"sigtimedwait_all", by_sigtimedwait_all, 0, 0},
            {"futex", by_futex, 0, 0},
            {"send", by_flood, 0, 0}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void nothing(int sig)
{
    (void)sig;
}

/* What the profiler must not do. */
static void interrupt_by_wall(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec time = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000};
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    timer_t timer;

    sigaction(SIGUSR1, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &time, NULL);
}

static void prepare(void)
{
    int fds[2];

    setrlimit(RLIMIT_NOFILE, &(struct rlimit){1024, 1024});
    if (pipe(fds))
        abort();
    epoll = epoll_create1(0);
    sem_init(&semaphore, 0, 0);
    for (int i = 0; i < FILES; i++) {
        int fd = dup(fds[0]);

        if (fd < 0)
            break;
        pattern[n_files++] = (struct pollfd){.fd = fd, .events = POLLIN};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN});
    }
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *run(void *arg)
{
    struct timeval time = {.tv_usec = SLEEP_NS / 1000};

    memcpy(files, pattern, sizeof(files));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        abort();
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    setsockopt(sockets[1], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
    while (cpu_seconds() < ended) {
        for (int i = 0; i < WAYS; i++) {
            ways[i].calls++;
            ways[i].interrupted += ways[i].sleep() != 0;
        }
    }
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];

    ended = (argc > 1 ? strtod(argv[1], NULL) : 1) + cpu_seconds();
    prepare();
    if (argc > 2 && !strcmp(argv[2], "wall"))
        interrupt_by_wall();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("{");
    for (int i = 0; i < WAYS; i++)
        printf("%s\"%s\": [%ld, %ld]", i ? ", " : "", ways[i].name, ways[i].calls,
               ways[i].interrupted);
    printf("}\n");
    return 0;
}

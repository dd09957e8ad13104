/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux sends signals of CPU timers in one of two ways:
 *
 *   - from the tick's interrupt: a system call that is about to sleep finds the signal pending and
 *     ends with EINTR, though its thread did run when the timer expired;
 *   - from work that the thread does for itself on its way back to user space
 *     (CONFIG_POSIX_CPU_TIMERS_TASK_WORK, always on where the architecture has it; x86 since 5.9):
 *     while it is in the kernel nothing is pending, so that no call ends early and no fork() begins
 *     anew.
 *
 * To tell them apart, /dev/zero is read into the same few pages until a timer must have expired: a
 * read of it stops at the next page once a signal is pending.  Reading all of it means that none
 * was.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/sample/signal.h"
#include "inproc/sample/timer.h"
#include "inproc/thread/map.h"

enum {
    PIECE = 64 << 10,
    PIECES = 1024,
    EXPIRES_NS = 1000000,
    TICK_NS = 10000000, /* the longest that Linux has */
    MEMORY = PIECE + PIECES * (int)sizeof(struct iovec)
};

static bool version_tells(void)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    if (uname(&name) != 0 || strcmp(name.machine, "x86_64") != 0)
        return false;
    if (sscanf(name.release, "%u.%u", &major, &minor) != 2)
        return false;
    return major > 5 || (major == 5 && minor >= 9);
}

/* Reads until so much CPU time has passed.  False: a read was cut short. */
static bool read_zeroes(int fd, char *memory)
{
    struct iovec *pieces = (struct iovec *)(void *)(memory + PIECE);
    uint64_t end_ns = kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID) + EXPIRES_NS + 2 * TICK_NS;

    for (int i = 0; i < PIECES; i++)
        pieces[i] = (struct iovec){.iov_base = memory, .iov_len = PIECE};
    do {
        if (readv(fd, pieces, PIECES) != (ssize_t)PIECE * PIECES)
            return false;
    } while (kiln_in_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns);
    return true;
}

static bool try_with(clockid_t clock, int fd, char *memory)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = kiln_in_signal_now(),
                             .sigev_value.sival_ptr = kiln_in_signal_cookie(KILN_IN_TICK_TRIAL)};
    struct itimerspec time = {.it_value.tv_nsec = EXPIRES_NS};
    int32_t timer;
    bool whole;

    event._sigev_un._tid = (int)syscall(SYS_gettid);
    if (syscall(SYS_timer_create, clock, &event, &timer) != 0)
        return false;
    syscall(SYS_timer_settime, timer, 0, &time, NULL);
    whole = read_zeroes(fd, memory);
    syscall(SYS_timer_delete, timer);
    return whole;
}

bool kiln_in_timer_try(clockid_t clock)
{
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    char *memory = kiln_in_map(MEMORY);
    bool harmless = fd >= 0 && memory && try_with(clock, fd, memory);

    if (memory)
        kiln_in_unmap(memory, MEMORY);
    if (fd >= 0)
        close(fd);
    return harmless;
}

bool kiln_in_timer_is_harmless(void)
{
    return version_tells() || kiln_in_timer_try(CLOCK_THREAD_CPUTIME_ID);
}

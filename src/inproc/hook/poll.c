/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping for a time, and for one of several files. */
#undef _FORTIFY_SOURCE /* its functions of the same names are inline */
#include <stddef.h>
#include <unistd.h>

#include "inproc/hook/timed.h"
#include "inproc/sample/loop.h"

TIMED(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left),
      KILN_IN_REASON_SLEEP)
TIMED(int, clock_nanosleep,
      (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
      (clock, flags, time, left), KILN_IN_REASON_SLEEP)
TIMED(int, usleep, (useconds_t us), (us), KILN_IN_REASON_SLEEP)
TIMED(unsigned, sleep, (unsigned seconds), (seconds), KILN_IN_REASON_SLEEP)

#define HERE       kiln_in_loop_of_call(__builtin_return_address(0))

/* One descriptor is an answer that somebody waits for; a loop has at least one more to be woken. */
#define LOOP_OF(n) ((n) > 1 ? HERE : 0)

static bool waits(const struct timespec *timeout)
{
    return !timeout || timeout->tv_sec || timeout->tv_nsec;
}

static bool waits_us(const struct timeval *timeout)
{
    return !timeout || timeout->tv_sec || timeout->tv_usec;
}

POLLED(poll, (struct pollfd * fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms), LOOP_OF(n),
       timeout_ms != 0)
POLLED(__poll_chk, (struct pollfd * fds, nfds_t n, int timeout_ms, size_t bytes),
       (fds, n, timeout_ms, bytes), LOOP_OF(n), timeout_ms != 0)
POLLED(ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask),
       (fds, n, timeout, mask), LOOP_OF(n), waits(timeout))
POLLED(__ppoll_chk,
       (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
        size_t bytes),
       (fds, n, timeout, mask, bytes), LOOP_OF(n), waits(timeout))
POLLED(select, (int n, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout),
       (n, in, out, other, timeout), LOOP_OF(n), waits_us(timeout))
POLLED(pselect,
       (int n, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout,
        const sigset_t *mask),
       (n, in, out, other, timeout, mask), LOOP_OF(n), waits(timeout))

#define EPOLL kiln_in_loop_of_epoll(fd)

POLLED(epoll_wait, (int fd, struct epoll_event *events, int n, int timeout_ms),
       (fd, events, n, timeout_ms), EPOLL, timeout_ms != 0)
POLLED(epoll_pwait,
       (int fd, struct epoll_event *events, int n, int timeout_ms, const sigset_t *mask),
       (fd, events, n, timeout_ms, mask), EPOLL, timeout_ms != 0)
POLLED(epoll_pwait2,
       (int fd, struct epoll_event *events, int n, const struct timespec *timeout,
        const sigset_t *mask),
       (fd, events, n, timeout, mask), EPOLL, waits(timeout))

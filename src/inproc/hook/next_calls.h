/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next_calls - functions that may sleep, those of signals and of sandboxes, as they come behind our
 * hooks: libc's, or those of another library that stands in front of it.
 *
 * They may be called before anything of this library has started: each finds all of them when it is
 * called first.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_INPROC_HOOK_NEXT_CALLS_H
#define KILN_INPROC_HOOK_NEXT_CALLS_H

#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

struct rusage;

/* What they return, name, parameters, arguments. */
#define KILN_IN_SLEEP_MAP(X)                                                                       \
    X(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))          \
    X(int, clock_nanosleep,                                                                        \
      (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),            \
      (clock, flags, time, left))                                                                  \
    X(int, usleep, (useconds_t us), (us))                                                          \
    X(unsigned, sleep, (unsigned seconds), (seconds))

#define KILN_IN_POLL_MAP(X)                                                                        \
    X(int, poll, (struct pollfd * fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms))            \
    X(int, __poll_chk, (struct pollfd * fds, nfds_t n, int timeout_ms, size_t bytes),              \
      (fds, n, timeout_ms, bytes))                                                                 \
    X(int, ppoll,                                                                                  \
      (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask),       \
      (fds, n, timeout, mask))                                                                     \
    X(int, __ppoll_chk,                                                                            \
      (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,        \
       size_t bytes),                                                                              \
      (fds, n, timeout, mask, bytes))                                                              \
    X(int, select, (int n, fd_set *in, fd_set *out, fd_set *other, struct timeval *timeout),       \
      (n, in, out, other, timeout))                                                                \
    X(int, pselect,                                                                                \
      (int n, fd_set *in, fd_set *out, fd_set *other, const struct timespec *timeout,              \
       const sigset_t *mask),                                                                      \
      (n, in, out, other, timeout, mask))                                                          \
    X(int, epoll_wait, (int fd, struct epoll_event *events, int n, int timeout_ms),                \
      (fd, events, n, timeout_ms))                                                                 \
    X(int, epoll_pwait,                                                                            \
      (int fd, struct epoll_event *events, int n, int timeout_ms, const sigset_t *mask),           \
      (fd, events, n, timeout_ms, mask))                                                           \
    X(int, epoll_pwait2,                                                                           \
      (int fd, struct epoll_event *events, int n, const struct timespec *timeout,                  \
       const sigset_t *mask),                                                                      \
      (fd, events, n, timeout, mask))

#define KILN_IN_FILE_MAP(X)                                                                        \
    X(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))                                    \
    X(ssize_t, __read_chk, (int fd, void *to, size_t n, size_t room), (fd, to, n, room))           \
    X(ssize_t, readv, (int fd, const struct iovec *to, int n), (fd, to, n))                        \
    X(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))                         \
    X(ssize_t, writev, (int fd, const struct iovec *from, int n), (fd, from, n))                   \
    X(int, close, (int fd), (fd))

#define KILN_IN_SOCKET_MAP(X)                                                                      \
    X(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))                  \
    X(ssize_t, __recv_chk, (int fd, void *to, size_t n, size_t room, int flags),                   \
      (fd, to, n, room, flags))                                                                    \
    X(ssize_t, recvfrom,                                                                           \
      (int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *length),           \
      (fd, to, n, flags, from, length))                                                            \
    X(ssize_t, __recvfrom_chk,                                                                     \
      (int fd, void *to, size_t n, size_t room, int flags, struct sockaddr *from,                  \
       socklen_t *length),                                                                         \
      (fd, to, n, room, flags, from, length))                                                      \
    X(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))         \
    X(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags))        \
    X(ssize_t, sendto,                                                                             \
      (int fd, const void *from, size_t n, int flags, const struct sockaddr *to,                   \
       socklen_t length),                                                                          \
      (fd, from, n, flags, to, length))                                                            \
    X(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))   \
    X(int, accept, (int fd, struct sockaddr *from, socklen_t *length), (fd, from, length))         \
    X(int, accept4, (int fd, struct sockaddr *from, socklen_t *length, int flags),                 \
      (fd, from, length, flags))                                                                   \
    X(int, connect, (int fd, const struct sockaddr *to, socklen_t length), (fd, to, length))       \
    X(int, getaddrinfo,                                                                            \
      (const char *node, const char *service, const struct addrinfo *hints,                        \
       struct addrinfo **ret),                                                                     \
      (node, service, hints, ret))

#define KILN_IN_OTHER_MAP(X)                                                                       \
    X(pid_t, wait, (int *status), (status))                                                        \
    X(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options))               \
    X(int, waitid, (idtype_t type, id_t id, siginfo_t * info, int options),                        \
      (type, id, info, options))                                                                   \
    X(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage),                   \
      (pid, status, options, usage))                                                               \
    X(int, sigwait, (const sigset_t *set, int *ret), (set, ret))                                   \
    X(int, sigwaitinfo, (const sigset_t *set, siginfo_t *ret), (set, ret))                         \
    X(int, sigtimedwait, (const sigset_t *set, siginfo_t *ret, const struct timespec *timeout),    \
      (set, ret, timeout))                                                                         \
    X(int, sigsuspend, (const sigset_t *mask), (mask))                                             \
    X(int, pause, (void), ())                                                                      \
    X(int, fsync, (int fd), (fd))                                                                  \
    X(int, fdatasync, (int fd), (fd))                                                              \
    X(int, flock, (int fd, int operation), (fd, operation))                                        \
    X(int, lockf, (int fd, int operation, off_t length), (fd, operation, length))                  \
    X(int, semop, (int id, struct sembuf *operations, size_t n), (id, operations, n))              \
    X(int, semtimedop,                                                                             \
      (int id, struct sembuf *operations, size_t n, const struct timespec *timeout),               \
      (id, operations, n, timeout))                                                                \
    X(ssize_t, msgrcv, (int id, void *to, size_t n, long type, int flags),                         \
      (id, to, n, type, flags))                                                                    \
    X(int, msgsnd, (int id, const void *from, size_t n, int flags), (id, from, n, flags))

#define KILN_IN_SIGNAL_MAP(X)                                                                      \
    X(int, sigaction, (int sig, const struct sigaction *set, struct sigaction *ret_old),           \
      (sig, set, ret_old))                                                                         \
    X(sighandler_t, signal, (int sig, sighandler_t handler), (sig, handler))                       \
    X(sighandler_t, __sysv_signal, (int sig, sighandler_t handler), (sig, handler))                \
    X(int, siginterrupt, (int sig, int interrupts), (sig, interrupts))                             \
    X(int, sigprocmask, (int how, const sigset_t *set, sigset_t *ret_old), (how, set, ret_old))    \
    X(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *ret_old),                     \
      (how, set, ret_old))                                                                         \
    X(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))                   \
    X(int, sigaltstack, (const stack_t *set, stack_t *ret_old), (set, ret_old))

#define KILN_IN_SANDBOX_MAP(X)                                                                     \
    X(int, prctl, (int option, long a, long b, long c, long d), (option, a, b, c, d))

/* What the kernel or the C library does, or refuses, by how many threads there are. */
#define KILN_IN_ALONE_MAP(X)                                                                       \
    X(int, setuid, (uid_t id), (id))                                                               \
    X(int, setgid, (gid_t id), (id))                                                               \
    X(int, seteuid, (uid_t id), (id))                                                              \
    X(int, setegid, (gid_t id), (id))                                                              \
    X(int, setreuid, (uid_t id, uid_t effective), (id, effective))                                 \
    X(int, setregid, (gid_t id, gid_t effective), (id, effective))                                 \
    X(int, setresuid, (uid_t id, uid_t effective, uid_t saved), (id, effective, saved))            \
    X(int, setresgid, (gid_t id, gid_t effective, gid_t saved), (id, effective, saved))            \
    X(int, setgroups, (size_t n, const gid_t *list), (n, list))                                    \
    X(int, initgroups, (const char *user, gid_t group), (user, group))                             \
    X(int, capset, (void *header, const void *data), (header, data))                               \
    X(int, unshare, (int flags), (flags))                                                          \
    X(int, setns, (int fd, int type), (fd, type))

#define KILN_IN_CALL_MAP(X)                                                                        \
    KILN_IN_SLEEP_MAP(X)                                                                           \
    KILN_IN_POLL_MAP(X)                                                                            \
    KILN_IN_FILE_MAP(X)                                                                            \
    KILN_IN_SOCKET_MAP(X)                                                                          \
    KILN_IN_OTHER_MAP(X)                                                                           \
    KILN_IN_SIGNAL_MAP(X)                                                                          \
    KILN_IN_SANDBOX_MAP(X)                                                                         \
    KILN_IN_ALONE_MAP(X)

struct kiln_in_next_calls {
#define X(type, name, parameters, arguments) type(*name) parameters;
    KILN_IN_CALL_MAP(X)
#undef X
};

extern struct kiln_in_next_calls kiln_in_next_calls;

#endif /* KILN_INPROC_HOOK_NEXT_CALLS_H */

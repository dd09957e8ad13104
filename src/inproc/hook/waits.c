/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for children, signals, disks, locks on files, and System V's messages and semaphores. */
#undef _FORTIFY_SOURCE
#include <stddef.h>
#include <sys/file.h>
#include <unistd.h>

#include "inproc/hook/timed.h"
#include "inproc/sample/signal.h"

#define UNLESS(flag, reason) ((flag) ? -1 : (int)(reason))

TIMED(pid_t, wait, (int *status), (status), KILN_IN_REASON_CHILD)
TIMED(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options),
      UNLESS(options &WNOHANG, KILN_IN_REASON_CHILD))
TIMED(int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options),
      (type, id, info, options), UNLESS(options &WNOHANG, KILN_IN_REASON_CHILD))
TIMED(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage),
      (pid, status, options, usage), UNLESS(options &WNOHANG, KILN_IN_REASON_CHILD))

TIMED(int, sigsuspend, (const sigset_t *mask), (mask), KILN_IN_REASON_SIGNAL)
TIMED(int, pause, (void), (), KILN_IN_REASON_SIGNAL)

/* Our signal is not among those that a program waits for. */
#define SPARED kiln_in_signal_spare(set, &(sigset_t){{0}})

TIMED(int, sigwait, (const sigset_t *restrict set, int *restrict ret), (SPARED, ret),
      KILN_IN_REASON_SIGNAL)
TIMED(int, sigwaitinfo, (const sigset_t *restrict set, siginfo_t *restrict ret), (SPARED, ret),
      KILN_IN_REASON_SIGNAL)
TIMED(int, sigtimedwait,
      (const sigset_t *restrict set, siginfo_t *restrict ret,
       const struct timespec *restrict timeout),
      (SPARED, ret, timeout), KILN_IN_REASON_SIGNAL)

TIMED(int, fsync, (int fd), (fd), KILN_IN_REASON_DISK)
TIMED(int, fdatasync, (int fd), (fd), KILN_IN_REASON_DISK)
TIMED(int, flock, (int fd, int operation), (fd, operation),
      UNLESS(operation &(LOCK_NB | LOCK_UN), KILN_IN_REASON_LOCK))
TIMED(int, lockf, (int fd, int operation, off_t length), (fd, operation, length),
      UNLESS(operation != F_LOCK, KILN_IN_REASON_LOCK))
TIMED(int, semop, (int id, struct sembuf *operations, size_t n), (id, operations, n),
      KILN_IN_REASON_IPC)
TIMED(int, semtimedop,
      (int id, struct sembuf *operations, size_t n, const struct timespec *timeout),
      (id, operations, n, timeout), KILN_IN_REASON_IPC)
TIMED(ssize_t, msgrcv, (int id, void *to, size_t n, long type, int flags), (id, to, n, type, flags),
      UNLESS(flags &IPC_NOWAIT, KILN_IN_REASON_IPC))
TIMED(int, msgsnd, (int id, const void *from, size_t n, int flags), (id, from, n, flags),
      UNLESS(flags &IPC_NOWAIT, KILN_IN_REASON_IPC))

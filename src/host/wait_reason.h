/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_reason - what a thread waited for, in one word: the attributes thread.state and wait.reason.
 *
 * Threads: constant tables; from any thread.
 */
#ifndef KILN_HOST_WAIT_REASON_H
#define KILN_HOST_WAIT_REASON_H

#include "base/str.h"
#include "host/bpf/record.h"

enum kiln_thread_state {
    KILN_STATE_BLOCKED,
    KILN_STATE_RUNNABLE, /* it could have run: other threads did */
};

enum kiln_wait_reason {
    KILN_REASON_OTHER,
    KILN_REASON_FUTEX,      /* a lock or a condition of the program's own */
    KILN_REASON_POLL,       /* one of several files: poll, select, epoll */
    KILN_REASON_SLEEP,      /* time to pass */
    KILN_REASON_PIPE,       /* the other end of a pipe */
    KILN_REASON_SOCKET,     /* the other end of a connection, or a new one */
    KILN_REASON_DISK,       /* a file system or a block device */
    KILN_REASON_IO,         /* another kind of file: a terminal, a device, an eventfd, a ring */
    KILN_REASON_CHILD,      /* another process to change its state */
    KILN_REASON_SIGNAL,     /* a signal */
    KILN_REASON_LOCK,       /* a lock on a file */
    KILN_REASON_IPC,        /* a message queue or a semaphore of System V or POSIX */
    KILN_REASON_MEMORY,     /* its address space, which others change */
    KILN_REASON_PAGE_FAULT, /* memory that is not there yet */
    KILN_REASONS,
};

/* Of a record of a wait: by its system call and the file it is about. */
enum kiln_wait_reason kiln_wait_reason_of(const struct kiln_record *record);

/* "blocked", "runnable". */
const char *kiln_state_word(enum kiln_thread_state state);
/* "futex", "poll", "disk"... */
const char *kiln_reason_word(enum kiln_wait_reason reason);

/* Whether a function of the kernel only says that a thread waits: the scheduler, and our hook in
 * it. */
bool kiln_wait_says_nothing(struct kiln_str function);

#endif /* KILN_HOST_WAIT_REASON_H */

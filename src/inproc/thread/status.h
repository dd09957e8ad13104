/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - what the kernel says of the calling thread.
 *
 * Threads: helpers, and the program's own at the start: a file is opened.
 */
#ifndef KILN_INPROC_THREAD_STATUS_H
#define KILN_INPROC_THREAD_STATUS_H

/* A field of /proc/thread-self/status that is a number, "Seccomp" for one; -1: it has none. */
long kiln_in_status(const char *field);

#endif /* KILN_INPROC_THREAD_STATUS_H */

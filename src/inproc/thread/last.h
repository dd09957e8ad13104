/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last - the end of a process whose main thread ended before others.
 *
 * Such a process ends, with status 0, when the last of its threads has: the C library counts them.
 * It counts helpers as well, so the keeper looks whether they are all that is left.  Where the main
 * thread ended by a bare system call, or was ended, its status is that of the process.
 *
 * What runs at the exit is the program's and needs its descriptors, which go with the last thread
 * that shares them, and helpers do not: one that does is made where the main thread has ended by
 * pthread_exit(), waits, and leaves in its place.
 *
 * Threads: as each function says.
 */
#ifndef KILN_INPROC_THREAD_LAST_H
#define KILN_INPROC_THREAD_LAST_H

#include <stdbool.h>

/* A thread is about to end by itself: nothing but for the main one.  On that thread. */
void kiln_in_last_exits(void);

/* The keeper's, each turn and whether a second has gone by: may not return. */
void kiln_in_last_look(bool second);

/* With the keeper. */
void kiln_in_last_start(void);
void kiln_in_last_stop(void);
void kiln_in_last_forked(void);

#endif /* KILN_INPROC_THREAD_LAST_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single - a program that has one thread stays a program of one thread for the C library.
 *
 * glibc leaves locks out, in malloc() and in mutexes, until the first pthread_create(), which
 * clears __libc_single_threaded.  Our helpers would make every program pay.  They touch nothing
 * that those locks are for: their memory and their mutexes are their own (inproc/hook/own.c,
 * own_locks.c), they never ask the loader, and look nobody up.  So whoever makes a helper puts the
 * flag back as it was; the program's own first thread clears it again.  docs/adr/0031 has every
 * reader of the flag.
 *
 * Threads: those of the program, at the start and where a function says so.  Never a helper.
 */
#ifndef KILN_INPROC_THREAD_SINGLE_H
#define KILN_INPROC_THREAD_SINGLE_H

#include <stdbool.h>

enum kiln_in_single_wish {
    KILN_IN_SINGLE_AUTO, /* where it is known to be sound and nobody has privileges to drop */
    KILN_IN_SINGLE_NEVER,
    KILN_IN_SINGLE_ALWAYS, /* where it is known to be sound */
};

/* Before helpers are made: whether any may be left out of account. */
void kiln_in_single_decide(enum kiln_in_single_wish wish);

/* Around the making of a helper: what begin returned is for end. */
bool kiln_in_single_begin(void);
void kiln_in_single_end(bool was);

/* From now on all threads count, as if the program had made one. */
void kiln_in_single_give_up(void);

#endif /* KILN_INPROC_THREAD_SINGLE_H */

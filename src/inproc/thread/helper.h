/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - threads of our own: named, with all signals blocked, nicer than the program, a small
 * stack, inside, so that no hook samples them, and with descriptors of their own: what a helper
 * opens, it alone can use and close, and what the program has open it cannot see.
 *
 * For the C library a program with helpers has as many threads as without (inproc/thread/single.h),
 * but for those that use what it shares among threads.
 *
 * Threads: from any of the program's that is inside (kiln_in_hush).
 */
#ifndef KILN_INPROC_THREAD_HELPER_H
#define KILN_INPROC_THREAD_HELPER_H

#include <pthread.h>

enum kiln_in_helper_traits {
    KILN_IN_HELPER_SHARES = 1, /* it has the descriptors of its maker */
    KILN_IN_HELPER_COUNTS = 2, /* it calls functions that allocate or load: look-ups, TLS, exit() */
};

/* `name` has at most 15 bytes.  Returns 0 or a negative errno. */
int kiln_in_helper_start(const char *name, unsigned traits, void *(*run)(void *), void *arg,
                         pthread_t *ret_thread);

/* In a helper: a descriptor of the program's, to be closed; -1: there is none. */
int kiln_in_helper_borrow(int fd);

#endif /* KILN_INPROC_THREAD_HELPER_H */

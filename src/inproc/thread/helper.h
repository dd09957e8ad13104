/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - threads of our own: named, with all signals blocked, nicer than the program, a small
 * stack, inside, so that no hook samples them, and with descriptors of their own: what a helper
 * opens, it alone can use and close, and what the program has open it cannot see.
 *
 * Threads: from any that is inside (kiln_in_hush).
 */
#ifndef KILN_INPROC_THREAD_HELPER_H
#define KILN_INPROC_THREAD_HELPER_H

#include <pthread.h>

/* `name` has at most 15 bytes.  Returns 0 or a negative errno. */
int kiln_in_helper_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret_thread);
/* The same, with the descriptors of its maker. */
int kiln_in_helper_start_sharing(const char *name, void *(*run)(void *), void *arg,
                                 pthread_t *ret_thread);

/* In a helper: a descriptor of the program's, to be closed; -1: there is none. */
int kiln_in_helper_borrow(int fd);

#endif /* KILN_INPROC_THREAD_HELPER_H */

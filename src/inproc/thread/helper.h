/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper - threads of our own: named, with all signals blocked, nicer than the program, a small
 * stack, inside, so that no hook samples them, and with descriptors of their own: what a helper
 * opens, it alone can use and close, and what the program has open it cannot see.
 *
 * The program may have one thread of its own, so it may fork, or change its environment, at any
 * moment, and its child uses the C library.  So helpers avoid functions of the C library that hold
 * locks which fork() does not take (time zones, translations), or that read the environment.
 *
 * Threads: from any of the program's that is inside (kiln_in_hush).
 */
#ifndef KILN_INPROC_THREAD_HELPER_H
#define KILN_INPROC_THREAD_HELPER_H

#include <pthread.h>

enum kiln_in_helper_files {
    KILN_IN_HELPER_OWN_FILES,
    KILN_IN_HELPER_SHARES_FILES /* the descriptors of the thread that starts it */
};

/* `name` has at most 15 bytes.  Returns 0 or a negative errno. */
int kiln_in_helper_start(const char *name, enum kiln_in_helper_files files, void *(*run)(void *),
                         void *arg, pthread_t *ret_thread);

/* In a helper: a descriptor of the program's, to be closed; -1: there is none. */
int kiln_in_helper_borrow(int fd);

#endif /* KILN_INPROC_THREAD_HELPER_H */

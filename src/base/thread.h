/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread - starts threads the one way: named, and without signals, which are for the main thread.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_BASE_THREAD_H
#define KILN_BASE_THREAD_H

#include <pthread.h>

#include "base/attr.h"

/* `name` has at most 15 bytes: `top -H` shows it.  Returns 0 or a negative errno. */
KILN_CHECK int kiln_thread_start(const char *name, void *(*run)(void *), void *arg,
                                 pthread_t *ret_thread);

/* A condition whose times are those of CLOCK_MONOTONIC. */
void kiln_cond_init(pthread_cond_t *cond);

#endif /* KILN_BASE_THREAD_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads - where threads are made, and which are our own.
 *
 * Threads: each for itself.
 */
#ifndef KILN_INPROC_SAMPLE_THREADS_H
#define KILN_INPROC_SAMPLE_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* A new thread, on it, before anything of the program's: what it is to run. */
void kiln_in_thread_began(void *(*run)(void *));
/* On its maker, afterwards. */
void kiln_in_thread_created(void);

/* A thread of ours says so when it begins, and that it ends: it is not among the program's. */
void kiln_in_thread_is_ours(bool is);
bool kiln_in_thread_id_is_ours(int32_t tid);
enum { KILN_IN_OWN_MAX = 16 };
/* How many there are. */
unsigned kiln_in_threads_of_ours(int32_t ret_ids[KILN_IN_OWN_MAX]);

#endif /* KILN_INPROC_SAMPLE_THREADS_H */

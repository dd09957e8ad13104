/* SPDX-License-Identifier: Apache-2.0 */
/*
 * by_id - threads that have a block, by their numbers in the kernel, as they were at one moment.
 * Nothing is allocated.
 *
 * Threads: as kiln_in_threads_each().
 */
#ifndef KILN_INPROC_THREAD_BY_ID_H
#define KILN_INPROC_THREAD_BY_ID_H

#include "inproc/thread/thread.h"

struct kiln_in_by_id {
    uint32_t n;
    struct kiln_in_with_id {
        int32_t tid;
        struct kiln_in_thread *thread;
    } threads[KILN_IN_THREADS_MAX];
};

void kiln_in_by_id_fill(struct kiln_in_by_id *to);
/* NULL: it has no block. */
struct kiln_in_thread *kiln_in_by_id_find(const struct kiln_in_by_id *in, int32_t tid);

#endif /* KILN_INPROC_THREAD_BY_ID_H */

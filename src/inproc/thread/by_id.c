/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/by_id.h"

#include <stddef.h>

#include "inproc/thread/sort.h"

static void note(struct kiln_in_thread *thread, void *arg)
{
    struct kiln_in_by_id *to = arg;
    int32_t tid = atomic_load(&thread->tid);

    if (tid && to->n < KILN_IN_THREADS_MAX)
        to->threads[to->n++] = (struct kiln_in_with_id){tid, thread};
}

static int by_tid(const void *a, const void *b, void *arg)
{
    int32_t x = ((const struct kiln_in_with_id *)a)->tid;
    int32_t y = ((const struct kiln_in_with_id *)b)->tid;

    (void)arg;
    return (x > y) - (x < y);
}

void kiln_in_by_id_fill(struct kiln_in_by_id *to)
{
    to->n = 0;
    kiln_in_threads_each(note, to);
    kiln_in_sort(to->threads, to->n, sizeof(to->threads[0]), by_tid, NULL);
}

struct kiln_in_thread *kiln_in_by_id_find(const struct kiln_in_by_id *in, int32_t tid)
{
    uint32_t low = 0, high = in->n;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (in->threads[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < in->n && in->threads[low].tid == tid ? in->threads[low].thread : NULL;
}

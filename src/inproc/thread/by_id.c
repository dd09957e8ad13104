/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/by_id.h"

static void note(struct kiln_in_thread *thread, void *arg)
{
    struct kiln_in_by_id *to = arg;
    int32_t tid = atomic_load(&thread->tid);

    if (tid && to->n < KILN_IN_THREADS_MAX)
        to->threads[to->n++] = (struct kiln_in_with_id){tid, thread};
}

/* Shell's, in place: the C library's takes memory, which would be the program's. */
static void sort(struct kiln_in_with_id *threads, uint32_t n)
{
    static const uint32_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};

    for (uint32_t g = 0; g < sizeof(gaps) / sizeof(gaps[0]); g++) {
        for (uint32_t i = gaps[g]; i < n; i++) {
            struct kiln_in_with_id one = threads[i];
            uint32_t at = i;

            for (; at >= gaps[g] && threads[at - gaps[g]].tid > one.tid; at -= gaps[g])
                threads[at] = threads[at - gaps[g]];
            threads[at] = one;
        }
    }
}

void kiln_in_by_id_fill(struct kiln_in_by_id *to)
{
    to->n = 0;
    kiln_in_threads_each(note, to);
    sort(to->threads, to->n);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* A heap with the largest element on top, which goes to the end of what is not sorted yet. */
#include "inproc/thread/sort.h"

#include <stdint.h>
#include <string.h>

struct heap {
    char *elements;
    size_t n, size;
    int (*compare)(const void *a, const void *b, void *arg);
    void *arg;
};

static char *at(const struct heap *heap, size_t i)
{
    return heap->elements + i * heap->size;
}

static void swap(const struct heap *heap, size_t i, size_t j)
{
    char *a = at(heap, i), *b = at(heap, j);
    uint64_t word_a, word_b;

    for (size_t done = 0, n; done < heap->size; done += n) {
        n = heap->size - done < sizeof(word_a) ? heap->size - done : sizeof(word_a);
        memcpy(&word_a, a + done, n);
        memcpy(&word_b, b + done, n);
        memcpy(a + done, &word_b, n);
        memcpy(b + done, &word_a, n);
    }
}

static void sink(const struct heap *heap, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n &&
            heap->compare(at(heap, child), at(heap, child + 1), heap->arg) < 0)
            child++;
        if (heap->compare(at(heap, i), at(heap, child), heap->arg) >= 0)
            return;
        swap(heap, i, child);
    }
}

void kiln_in_sort(void *array, size_t n, size_t size,
                  int (*compare)(const void *a, const void *b, void *arg), void *arg)
{
    struct heap heap = {array, n, size, compare, arg};

    for (size_t i = n / 2; i-- > 0;)
        sink(&heap, i);
    while (heap.n > 1) {
        heap.n--;
        swap(&heap, 0, heap.n);
        sink(&heap, 0);
    }
}

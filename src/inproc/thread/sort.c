/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts are split by the median of three, the shorter one first, so that the stack stays short; few
 * elements are put in place one by one.  Where splitting gets nowhere, a heap takes what is left:
 * it has the largest element on top, which goes to the end of what is not sorted yet.
 */
#include "inproc/thread/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { FEW = 8 };

struct part {
    char *elements;
    size_t n, size;
    int (*compare)(const void *a, const void *b, void *arg);
    void *arg;
};

static char *at(const struct part *part, size_t i)
{
    return part->elements + i * part->size;
}

static bool is_less(const struct part *part, size_t i, size_t j)
{
    return part->compare(at(part, i), at(part, j), part->arg) < 0;
}

static void swap(const struct part *part, size_t i, size_t j)
{
    char *a = at(part, i), *b = at(part, j);
    uint64_t word_a, word_b;

    for (size_t done = 0, n; done < part->size; done += n) {
        n = part->size - done < sizeof(word_a) ? part->size - done : sizeof(word_a);
        memcpy(&word_a, a + done, n);
        memcpy(&word_b, b + done, n);
        memcpy(a + done, &word_b, n);
        memcpy(b + done, &word_a, n);
    }
}

/* ---- a heap ---- */

static void sink(const struct part *heap, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n && is_less(heap, child, child + 1))
            child++;
        if (!is_less(heap, i, child))
            return;
        swap(heap, i, child);
    }
}

static void sort_by_heap(struct part heap)
{
    for (size_t i = heap.n / 2; i-- > 0;)
        sink(&heap, i);
    while (heap.n > 1) {
        heap.n--;
        swap(&heap, 0, heap.n);
        sink(&heap, 0);
    }
}

/* ---- parts ---- */

static void sort_few(const struct part *part)
{
    for (size_t i = 1; i < part->n; i++)
        for (size_t j = i; j > 0 && is_less(part, j, j - 1); j--)
            swap(part, j, j - 1);
}

static void put_median_first(const struct part *part)
{
    size_t less = part->n / 2, more = part->n - 1;

    if (is_less(part, more, less)) {
        less = part->n - 1;
        more = part->n / 2;
    }
    if (is_less(part, 0, less))
        swap(part, 0, less);
    else if (is_less(part, more, 0))
        swap(part, 0, more);
}

/* Where the first one belongs: nothing before it is greater, nothing behind it less. */
static size_t split(const struct part *part)
{
    size_t low = 0, high = part->n;

    put_median_first(part);
    for (;;) {
        do
            low++;
        while (low < part->n && is_less(part, low, 0));
        do
            high--;
        while (is_less(part, 0, high));
        if (low >= high)
            break;
        swap(part, low, high);
    }
    swap(part, 0, high);
    return high;
}

static void sort(struct part part, unsigned splits)
{
    while (part.n > FEW && splits--) {
        size_t place = split(&part);
        struct part left = part, right = part;

        left.n = place;
        right.elements = at(&part, place + 1);
        right.n = part.n - place - 1;
        sort(left.n < right.n ? left : right, splits);
        part = left.n < right.n ? right : left;
    }
    if (part.n > FEW)
        sort_by_heap(part);
    else
        sort_few(&part);
}

void kiln_in_sort(void *array, size_t n, size_t size,
                  int (*compare)(const void *a, const void *b, void *arg), void *arg)
{
    unsigned splits = 0;

    for (size_t left = n; left; left /= 2)
        splits += 2;
    sort((struct part){array, n, size, compare, arg}, splits);
}

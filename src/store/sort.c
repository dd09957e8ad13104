/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short lists are sorted by insertion, long ones by radix: a byte at a time from the lowest, only
 * bytes in which keys differ.
 */
#include "store/sort.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define SHORT 32u

static void insert(struct kiln_keyed *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct kiln_keyed moving = list[i];
        uint32_t k = i;

        for (; k > 0 && list[k - 1].key > moving.key; k--)
            list[k] = list[k - 1];
        list[k] = moving;
    }
}

/* The bits in which keys differ; 0 also if they are in order already. */
static uint64_t differing(const struct kiln_keyed *list, uint32_t n)
{
    uint64_t differ = 0;
    bool sorted = true;

    for (uint32_t i = 1; i < n; i++) {
        differ |= list[i].key ^ list[0].key;
        sorted &= list[i - 1].key <= list[i].key;
    }
    return sorted ? 0 : differ;
}

static void pass(const struct kiln_keyed *from, struct kiln_keyed *to, uint32_t n, unsigned shift)
{
    uint32_t starts[256] = {0};
    uint32_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        starts[from[i].key >> shift & 0xff]++;
    for (unsigned i = 0; i < 256; i++) {
        uint32_t count = starts[i];

        starts[i] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[starts[from[i].key >> shift & 0xff]++] = from[i];
}

void kiln_sort_keyed(struct kiln_keyed *list, struct kiln_keyed *scratch, uint32_t n)
{
    struct kiln_keyed *from = list, *to = scratch;
    uint64_t differ;

    if (n <= SHORT) {
        insert(list, n);
        return;
    }
    differ = differing(list, n);
    for (unsigned shift = 0; shift < 64 && differ >> shift; shift += 8) {
        struct kiln_keyed *swap = from;

        if (!(differ >> shift & 0xff))
            continue;
        pass(from, to, n, shift);
        from = to;
        to = swap;
    }
    if (from != list)
        memcpy(list, from, n * sizeof(*list));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other half: its own static weigh(), and what the first half calls.
 */
#include <stdio.h>
#include <stdlib.h>

#include "zoo.h"

static __attribute__((noinline)) unsigned weigh(const struct cage *cage)
{
    return fold(cage->animals, cage->fed) % 977;
}

static inline int by_weight(const void *a, const void *b)
{
    unsigned x = weigh(a);
    unsigned y = weigh(b);

    return (x > y) - (x < y);
}

unsigned feed(struct cage *cages, size_t n)
{
    unsigned sum = 0;

    qsort(cages, n, sizeof(*cages), by_weight);
    for (size_t i = 0; i < n; i++) {
        cages[i].fed += stir((unsigned)i);
        sum = fold(sum, cages[i].fed);
    }
    return sum;
}

unsigned count_deep(const struct cage *cages, size_t n, unsigned depth)
{
    unsigned sum = weigh(cages + depth % n);

    if (depth)
        sum += count_deep(cages, n, depth - 1);
    return sum + fold(sum, depth);
}

void escape(const struct cage *cage)
{
    fprintf(stderr, "%s: %u of them are out\n", cage->name, fold(cage->animals, 1));
    abort();
}

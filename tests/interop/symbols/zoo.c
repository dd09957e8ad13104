/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One half: a static function that the other half has too, inlines in inlines, a loop that is
 * unrolled, a switch, code that is never run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "zoo.h"

static volatile unsigned sink;

static __attribute__((noinline)) unsigned weigh(const struct cage *cage)
{
    unsigned sum = 0;

    for (const char *c = cage->name; *c; c++)
        sum = fold(sum, (unsigned char)*c);
    return sum + cage->animals;
}

static inline unsigned third(unsigned x)
{
    return fold(x, x / 3);
}

static inline unsigned second(unsigned x)
{
    return third(x) + third(x ^ 0x55);
}

static inline unsigned first(unsigned x)
{
    unsigned a = second(x);
    unsigned b = second(x + 1);

    return a > b ? a - b : b - a;
}

static unsigned clean(struct cage *cages, size_t n)
{
    unsigned sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (__builtin_expect(cages[i].animals > 1000000, 0)) {
            fprintf(stderr, "%s is too full\n", cages[i].name);
            escape(cages + i);
        }
        cages[i].fed = first(cages[i].animals);
        sum += cages[i].fed;
    }
    return sum;
}

static unsigned walk(const struct cage *cage, unsigned steps)
{
    if (!steps)
        return stir(cage->animals);
    return walk(cage, steps - 1) + fold(steps, cage->fed);
}

int choose(unsigned which, unsigned x)
{
    switch (which % 7) {
    case 0:
        return (int)stir(x);
    case 1:
        return (int)fold(x, which);
    case 2:
        return (int)(third(x) - 1);
    case 3:
        return (int)second(x);
    case 4:
        return -(int)x;
    case 5:
        sink = x;
        return 5;
    default:
        return (int)first(x) & 0xff;
    }
}

int main(int argc, char **argv)
{
    struct cage cages[] = {{3, 0, "lions"}, {12, 0, "bears"}, {400, 0, "ants"}, {1, 0, argv[0]}};
    const size_t n = sizeof(cages) / sizeof(*cages);

    for (int i = 0; i < 2000 * argc; i++) {
        sink += clean(cages, n) + feed(cages, n) + count_deep(cages, n, 4);
        sink += weigh(cages + i % (int)n) + walk(cages, (unsigned)i % 9);
        sink += (unsigned)choose((unsigned)i, sink);
    }
    printf("%u\n", sink != 0);
    return 0;
}

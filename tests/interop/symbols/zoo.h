/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both halves of the program inline: lines of a header, in functions of two files.
 */
#ifndef ZOO_H
#define ZOO_H

#include <stddef.h>

struct cage {
    unsigned animals, fed;
    const char *name;
};

#define MIX(value) ((value) ^ ((value) >> 13) ^ ((value) << 7))

static inline unsigned stir(unsigned x)
{
    return MIX(x) * 2654435761u;
}

static inline __attribute__((always_inline)) unsigned fold(unsigned a, unsigned b)
{
    unsigned mixed = stir(a + 3 * b);

    if (mixed & 1)
        mixed += stir(b);
    return mixed;
}

unsigned feed(struct cage *cages, size_t n);
unsigned count_deep(const struct cage *cages, size_t n, unsigned depth);
__attribute__((cold, noinline)) void escape(const struct cage *cage);
int choose(unsigned which, unsigned x);

#endif /* ZOO_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same work again and again, for who wants to know whether something slows it: a line for each
 * piece, with the nanoseconds of processor time that it took.  What interrupts it counts as its
 * time.
 *
 * usage: bench_work PIECES
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum { WORDS = 1 << 12, ROUNDS = 30000 };

static uint32_t words[WORDS];

/* Sums and swaps within the first cache: what memory and neighbours do shows as little as can be.
 */
__attribute__((noinline)) static uint32_t piece(uint32_t seed)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < WORDS; i++) {
            seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
            words[i] ^= seed + words[(i * 7 + round) % WORDS];
        }
    }
    return seed;
}

static uint64_t used_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return kiln_timespec_ns(t);
}

int main(int argc, char **argv)
{
    long pieces = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    uint32_t seed = 1;

    for (long i = 0; i < pieces; i++) {
        uint64_t began = used_ns();

        seed = piece(seed);
        printf("%" PRIu64 "\n", used_ns() - began);
    }
    return seed == 0 ? 2 : 0;
}

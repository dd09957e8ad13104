/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same work again and again until it is killed, for who wants to know whether something slows
 * it: a line for each piece, with the time at its end on the monotonic clock and the nanoseconds of
 * processor time that it took.  What interrupts it counts as its time.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

enum {
    WORDS = 1 << 12,
    ROUNDS = 1000,
    DEPTH = 30, /* frames: who samples the work walks a stack as programs have it */
};

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

__attribute__((noinline)) static uint32_t piece_below(uint32_t frames, uint32_t seed)
{
    uint32_t found = frames ? piece_below(frames - 1, seed) : piece(seed);
    __asm__ volatile("" : "+r"(found)); /* or the call would be a jump */
    return found;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return kiln_timespec_ns(t);
}

int main(void)
{
    uint32_t seed = 1;

    while (!ferror(stdout)) {
        uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);

        seed = piece_below(DEPTH, seed);
        uint64_t used = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
        printf("%" PRIu64 " %" PRIu64 "\n", now_ns(CLOCK_MONOTONIC), used);
    }
    return 1;
}

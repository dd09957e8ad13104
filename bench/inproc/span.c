/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span [ROUNDS]: what entering and leaving a span takes, in nanoseconds of processor time; the
 * least of the rounds.  Linked with libkiln.so, as programs are.
 */
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SWITCHES = 2000000, ROUNDS = 9 };

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double round_ns(void)
{
    const uint8_t trace[16] = {1, 2, 3}, id[8] = {4, 5};
    double began = cpu_ns();

    for (int i = 0; i < SWITCHES; i++) {
        struct kiln_span span;

        kiln_span_enter(&span, trace, id, 1);
        kiln_span_leave(&span);
    }
    return (cpu_ns() - began) / SWITCHES;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;
    double least = round_ns();

    for (long i = 1; i < rounds; i++) {
        double ns = round_ns();

        least = ns < least ? ns : least;
    }
    printf("%.2f\n", least);
    return 0;
}

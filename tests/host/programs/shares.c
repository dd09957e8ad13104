/* SPDX-License-Identifier: Apache-2.0 */
/* Known shares; with a second argument, in turns of just so many microseconds of CPU time (10000:
 * a period of 10 ms, which a clock of 100 Hz would always meet in the same place). */
#include "burn.h"

KEPT void burn_half(uint64_t turns)
{
    spin(turns * 5);
}

KEPT void burn_three_tenths(uint64_t turns)
{
    spin(turns * 3);
}

KEPT void burn_fifth(uint64_t turns)
{
    spin(turns * 2);
}

KEPT void one_period(uint64_t turns)
{
    burn_half(turns);
    burn_three_tenths(turns);
    burn_fifth(turns);
    STAY;
}

static uint64_t turns_per_us(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t begin = now_ns();
        spin(1000000);
        uint64_t took = now_ns() - begin;
        best = took < best ? took : best;
    }
    return best < 1000 ? 1 : 1000000 / (best / 1000);
}

int main(int argc, char **argv)
{
    uint64_t end = end_ns(argc, argv);
    uint64_t period_us = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
    uint64_t turns = turns_per_us() * period_us / 10;
    while (cpu_ns() < end)
        one_period(turns);
    return 0;
}

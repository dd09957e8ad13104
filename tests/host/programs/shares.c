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

/* Periods of any length around 300 us. */
static void burn_freely(uint64_t end)
{
    uint64_t turns = turns_per_us() * 300 / 10;
    while (cpu_ns() < end)
        one_period(about(turns));
}

/* Periods of just so long: a processor that changes its speed is followed. */
static void burn_in_step(uint64_t end, uint64_t period_us)
{
    double turns = (double)(turns_per_us() * period_us) / 10;
    for (uint64_t now = cpu_ns(), next; now < end; now = next) {
        one_period((uint64_t)turns);
        next = cpu_ns();
        double off = (double)(next - now) / (double)(period_us * 1000);
        turns /= off > 1.5 ? 1 : 1 + (off - 1) / 4; /* far off: somebody else had the processor */
    }
}

int main(int argc, char **argv)
{
    uint64_t end = end_ns(argc, argv);
    if (argc > 2)
        burn_in_step(end, strtoull(argv[2], NULL, 10));
    else
        burn_freely(end);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are none in the machine's code any more, and lines to be found again. */
#include "burn.h"

static uint64_t turn;

static inline __attribute__((always_inline)) void burn_inlined(void)
{
    spin(turn); /* here */
}

static inline __attribute__((always_inline)) void middle_inlined(void)
{
    burn_inlined(); /* here */
}

KEPT void outer(void)
{
    middle_inlined(); /* here */
    STAY;
}

int main(int argc, char **argv)
{
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;) {
        turn = about(TURN);
        outer();
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A recursion of 400 frames, each of another size than its neighbour's; a second argument sets
 * another depth. */
#include "burn.h"

KEPT void burn_bottom(void)
{
    spin(10 * TURN);
}

KEPT void descend_odd(int left);

KEPT void descend_even(int left)
{
    char room[64];
    __asm__ volatile("" ::"r"(room) : "memory");
    if (left == 0)
        burn_bottom();
    else
        descend_odd(left - 1);
    STAY;
}

KEPT void descend_odd(int left)
{
    if (left == 0)
        burn_bottom();
    else
        descend_even(left - 1);
    STAY;
}

int main(int argc, char **argv)
{
    int depth = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 400;
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        descend_even(depth - 1);
    return 0;
}

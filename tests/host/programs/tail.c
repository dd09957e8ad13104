/* SPDX-License-Identifier: Apache-2.0 */
/* A call in tail position is a jump: tail_first is never on the stack while tail_second runs. */
#include "burn.h"

KEPT void burn_leaf(void)
{
    spin(TURN);
}

KEPT void tail_second(int times)
{
    for (int i = 0; i < times; i++)
        burn_leaf();
    STAY;
}

KEPT void tail_first(int times)
{
    tail_second(times + 1);
}

KEPT void outer(int times)
{
    tail_first(times);
    STAY;
}

int main(int argc, char **argv)
{
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        outer(2);
    return 0;
}

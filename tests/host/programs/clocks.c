/* SPDX-License-Identifier: Apache-2.0 */
/* Nearly all the time in the vDSO, or on the way there. */
#include "burn.h"

KEPT uint64_t ask_clock(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += now_ns();
    return sum;
}

KEPT uint64_t outer(void)
{
    uint64_t sum = ask_clock();
    STAY;
    return sum;
}

int main(int argc, char **argv)
{
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        outer();
    return 0;
}

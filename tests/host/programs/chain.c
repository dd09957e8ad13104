/* SPDX-License-Identifier: Apache-2.0 */
/* A plain chain of calls, three quarters of the time through one middle and a quarter through the
 * other. */
#include "burn.h"

static uint64_t turn;

KEPT void burn_leaf(void)
{
    spin(3 * turn);
}

KEPT void burn_other(void)
{
    spin(turn);
}

KEPT void middle_a(void)
{
    burn_leaf();
    STAY;
}

KEPT void middle_b(void)
{
    burn_other();
    STAY;
}

KEPT void outer(void)
{
    middle_a();
    middle_b();
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

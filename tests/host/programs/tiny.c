/* SPDX-License-Identifier: Apache-2.0 */
/* The library of stubs.c and plugin.c. */
#include "burn.h"

int tiny_one(int x);
int tiny_two(int x);
void plugin_outer(void);

int tiny_one(int x)
{
    return x + 1;
}

int tiny_two(int x)
{
    return x ^ 3;
}

KEPT void burn_in_plugin(void)
{
    spin(3 * TURN);
}

void plugin_outer(void)
{
    burn_in_plugin();
    STAY;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tiny functions through the PLT, bound lazily: a good part of the time is in the stubs.
 */

#include "burn.h"

int tiny_one(int x);
int tiny_two(int x);

KEPT int call_stubs(int x)
{
    for (int i = 0; i < 100000; i++)
        x = tiny_two(tiny_one(x));
    return x;
}

KEPT int outer(int x)
{
    x = call_stubs(x);
    STAY;
    return x;
}

int main(int argc, char **argv)
{
    int x = 0;
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        x = outer(x);
    return x == 42;
}

// SPDX-License-Identifier: Apache-2.0
// Exceptions thrown and caught in a loop: most of the time is in the unwinder of the language.
#include <stdexcept>

#include "burn.h"

KEPT void burn_leaf()
{
    spin(TURN / 100);
}

KEPT void thrower(int depth)
{
    if (depth == 0) {
        burn_leaf();
        throw std::runtime_error("thrown");
    }
    thrower(depth - 1);
    STAY;
}

KEPT int catcher()
{
    try {
        thrower(10);
    } catch (const std::runtime_error &) {
        STAY;
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int caught = 0;
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        for (int i = 0; i < 100; i++) /* to ask for the time takes as long as one */
            caught += catcher();
    return caught == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that are not a constant distance from the stack pointer: alloca, arrays of a variable
 * length, and locals that want more alignment than the stack has. */
#include <string.h>

#include "burn.h"

KEPT void burn_leaf(void)
{
    spin(TURN);
}

KEPT void with_alloca(size_t n)
{
    char *room = __builtin_alloca(n);
    memset(room, 1, n);
    __asm__ volatile("" ::"r"(room) : "memory");
    burn_leaf();
    STAY;
}

KEPT void with_array(size_t n)
{
    char room[n];
    memset(room, 1, n);
    __asm__ volatile("" ::"r"(room) : "memory");
    with_alloca(n / 2 + 16);
    STAY;
}

KEPT void aligned(size_t n)
{
    _Alignas(64) char room[128];
    memset(room, 2, sizeof(room));
    __asm__ volatile("" ::"r"(room) : "memory");
    with_array(n);
    STAY;
}

/* Both: gcc keeps the caller's stack pointer in a register and saves it in the frame. */
KEPT void aligned_with_alloca(size_t n, int a, int b, int c, int d, int e, int f, int g)
{
    _Alignas(64) char room[128];
    char *more = __builtin_alloca(n + (size_t)(a + b + c + d + e + f + g));
    memset(room, 3, sizeof(room));
    memset(more, 3, n);
    __asm__ volatile("" ::"r"(room), "r"(more) : "memory");
    aligned(n);
    STAY;
}

int main(int argc, char **argv)
{
    size_t n = 0;
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end; n++)
        aligned_with_alloca(16 + n % 512, 1, 2, 3, 4, 5, 6, 7);
    return 0;
}

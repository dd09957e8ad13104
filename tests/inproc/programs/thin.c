/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates 64 MiB in one function and 16 MiB in another, and computes for a moment in a third. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *volatile keeps[4096];
static volatile uint64_t sink;

__attribute__((noinline)) static void thin_allocates(void)
{
    for (unsigned i = 0; i < 4096; i++) {
        keeps[i] = malloc(16 << 10);
        memset(keeps[i], 1, 16);
    }
}

__attribute__((noinline)) static void thin_allocates_less(void)
{
    for (unsigned i = 0; i < 1024; i++) {
        void *volatile block = malloc(16 << 10);

        free(block);
    }
}

__attribute__((noinline)) static void thin_computes(void)
{
    for (uint64_t i = 0; i < 200000000; i++)
        sink += i * i;
}

int main(void)
{
    thin_allocates();
    thin_allocates_less();
    thin_computes();
    return 0;
}

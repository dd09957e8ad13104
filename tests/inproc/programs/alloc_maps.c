/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps, cuts, grows and unmaps memory, each mapping large enough that it is sampled for certain;
 * and maps some that do not count: reservations.  Prints, for each function, how many mebibytes it
 * has mapped, and how many of them are left:
 *
 *   map_whole 80 40
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 20, MIB = 1 << 20 };

static char *map(size_t bytes, int prot, int flags)
{
    char *at = mmap(NULL, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (at == MAP_FAILED)
        exit(1);
    return at;
}

__attribute__((noinline)) static void map_whole(void)
{
    for (int i = 0; i < N; i++) {
        char *at = map(4 * MIB, PROT_READ | PROT_WRITE, 0);

        at[0] = at[4 * MIB - 1] = 1;
        if (i % 2)
            munmap(at, 4 * MIB);
    }
}

/* As allocators align: both ends go. */
__attribute__((noinline)) static void map_and_cut(void)
{
    for (int i = 0; i < N; i++) {
        char *at = map(4 * MIB, PROT_READ | PROT_WRITE, 0);

        munmap(at, MIB);
        munmap(at + 3 * MIB, MIB);
        at[MIB] = at[3 * MIB - 1] = 1;
    }
}

__attribute__((noinline)) static void map_and_grow(void)
{
    for (int i = 0; i < N; i++) {
        char *at = map(2 * MIB, PROT_READ | PROT_WRITE, 0);

        at = mremap(at, 2 * MIB, 6 * MIB, MREMAP_MAYMOVE);
        if (at == MAP_FAILED)
            exit(1);
        at[6 * MIB - 1] = 1;
    }
}

__attribute__((noinline)) static void map_for_nothing(void)
{
    for (int i = 0; i < N; i++) {
        char *at = map(4 * MIB, PROT_NONE, MAP_NORESERVE);

        if (mmap(at, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
            exit(1);
        munmap(at, 4 * MIB);
        if (munmap(at + 1, 4096) != -1 || mmap(at, 0, PROT_READ, MAP_PRIVATE, -1, 0) != MAP_FAILED)
            exit(1);
    }
}

int main(void)
{
    map_whole();
    map_and_cut();
    map_and_grow();
    map_for_nothing();
    printf("map_whole %d %d\n", 4 * N, 4 * N / 2);
    printf("map_and_cut %d %d\n", 4 * N, 2 * N);
    printf("map_and_grow %d %d\n", 6 * N, 6 * N);
    printf("map_for_nothing %d %d\n", N, 0);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where blocks come to lie when nearly all of them are sampled: at multiples of 1 KiB, or 16 bytes
 * behind one.  Says which function gave fewer than nine of ten there, and exits with 1 then.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 7, BLOCKS = 1000, STEP = 1024, BEHIND = 16 };

static void *take(int kind, size_t size)
{
    void *block = NULL;

    switch (kind) {
    case 0:
        return malloc(size);
    case 1:
        return calloc(size / 8, 8);
    case 2:
        return realloc(NULL, size);
    case 3:
        return realloc(malloc(size / 2), size);
    case 4:
        return memalign(64, size);
    case 5:
        return aligned_alloc(32, size);
    default:
        return posix_memalign(&block, 128, size) == 0 ? block : NULL;
    }
}

static bool is_placed(const void *block)
{
    uintptr_t over = (uintptr_t)block % STEP;

    return over == 0 || over == BEHIND;
}

int main(void)
{
    static void *blocks[BLOCKS];
    int failures = 0;

    for (int kind = 0; kind < KINDS; kind++) {
        int placed = 0;

        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = take(kind, 64 + (size_t)(i * i) % 300000);
            placed += is_placed(blocks[i]);
        }
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        if (placed < BLOCKS / 10 * 9) {
            fprintf(stderr, "kind %d: %d of %d\n", kind, placed, BLOCKS);
            failures++;
        }
    }
    return failures != 0;
}

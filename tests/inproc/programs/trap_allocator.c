/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose blocks are these?  Says which allocator counts what this program allocates, in the words of
 * jemalloc, of tcmalloc or of the C library, and mixes all of their functions.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 32 << 20, SLACK = 4 << 20 /* what others give back meanwhile */ };

char *volatile trap_block; /* nobody may do without it */

/* Bytes in use, by whoever allocates them. */
static size_t in_use(const char **ret_who)
{
    int (*mallctl)(const char *, void *, size_t *, void *, size_t) =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
    int (*property)(const char *, size_t *) =
        (int (*)(const char *, size_t *))dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
    uint64_t epoch = 1;
    size_t bytes = 0, n = sizeof(bytes), epoch_n = sizeof(epoch);

    if (mallctl) {
        mallctl("epoch", &epoch, &epoch_n, &epoch, sizeof(epoch));
        mallctl("stats.allocated", &bytes, &n, NULL, 0);
        *ret_who = "jemalloc";
    } else if (property) {
        property("generic.current_allocated_bytes", &bytes);
        *ret_who = "tcmalloc";
    } else {
        struct mallinfo2 info = mallinfo2();

        bytes = info.uordblks + info.hblkhd;
        *ret_who = "libc";
    }
    return bytes;
}

static int mixes(void)
{
    for (int i = 0; i < 100000; i++) {
        size_t size = (size_t)(i * 7919 % 5000) + 1;
        void *block = NULL;

        switch (i % 6) {
        case 0:
            block = malloc(size);
            break;
        case 1:
            block = calloc(2, size);
            break;
        case 2:
            block = aligned_alloc(64, (size + 63) / 64 * 64);
            break;
        case 3:
            if (posix_memalign(&block, 128, size) != 0)
                return 0;
            break;
        case 4:
            block = memalign(32, size);
            break;
        default:
            block = strdup("a text");
        }
        block = realloc(block, size * 2);
        if (!block || malloc_usable_size(block) < size * 2)
            return 0;
        memset(block, 1, size);
        free(block);
    }
    return 1;
}

int main(void)
{
    const char *who;
    size_t before = in_use(&who), after;

    trap_block = malloc(BYTES);
    memset(trap_block, 1, BYTES);
    after = in_use(&who);
    printf("%s counts %s\n", who,
           after + SLACK - before >= BYTES && after - before < 2 * BYTES ? "all" : "less");
    free(trap_block);
    printf("mixes %d\n", mixes());
    return 0;
}

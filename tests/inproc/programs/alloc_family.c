/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls each function of the family in ways that matter and says what was not as it should be:
 * sizes, alignment, contents, errno, failures.  Exits with 1 if there was anything.
 *
 * The same must hold with any allocator behind the library.  "glibc" as an argument: what only the
 * C library's own allocator promises is checked too.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOO_MUCH_SHIFT = 62 };

static int failures;
/* Compilers know what these do, and would leave out calls whose results nobody needs. */
static void *(*volatile v_malloc)(size_t) = malloc;
static void *(*volatile v_calloc)(size_t, size_t) = calloc;
static void *(*volatile v_realloc)(void *, size_t) = realloc;
static void *(*volatile v_reallocarray)(void *, size_t, size_t) = reallocarray;
static void *(*volatile v_memalign)(size_t, size_t) = memalign;
static void *(*volatile v_aligned_alloc)(size_t, size_t) = aligned_alloc;
static int (*volatile v_posix_memalign)(void **, size_t, size_t) = posix_memalign;
static void *(*volatile v_valloc)(size_t) = valloc;
static void *(*volatile v_pvalloc)(size_t) = pvalloc;
static void (*volatile v_free)(void *) = free;

extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d: not so: %s\n", line, what);
        failures++;
    }
}

static bool is_aligned(const void *block, size_t alignment)
{
    return (uintptr_t)block % alignment == 0;
}

static bool is_filled(const unsigned char *block, size_t n, unsigned char with)
{
    for (size_t i = 0; i < n; i++) {
        if (block[i] != with)
            return false;
    }
    return true;
}

static void check_plain(size_t size)
{
    unsigned char *block;

    errno = EDOM;
    block = v_malloc(size);
    EXPECT(block && is_aligned(block, size < 16 ? 8 : 16) && malloc_usable_size(block) >= size);
    memset(block, 0x5a, size);
    v_free(block);
    block = v_calloc(size / 8 + 1, 8);
    EXPECT(block && is_filled(block, (size / 8 + 1) * 8, 0));
    v_free(block);
    if (free_sized)
        free_sized(v_malloc(size), size);
    EXPECT(errno == EDOM);
}

static void check_realloc(size_t size)
{
    unsigned char *block = v_realloc(NULL, size);
    unsigned char *moved;

    memset(block, 0x33, size);
    for (size_t to = size + 1; to < size * 40; to = to * 2 + 8) {

        moved = v_realloc(block, to);
        EXPECT(moved && is_filled(moved, size, 0x33));
        block = moved;
    }
    moved = v_realloc(block, size / 2 + 1);
    EXPECT(moved && is_filled(moved, size / 2 + 1, 0x33));
    moved = v_reallocarray(moved, size, 3);
    EXPECT(moved && is_filled(moved, size / 2 + 1, 0x33));
    v_free(moved);
}

/* A failure leaves the block and what is in it; so that it can be freed. */
static void check_failures(size_t size)
{
    unsigned char *block = v_malloc(size);
    size_t too_much = (size_t)1 << TOO_MUCH_SHIFT;
    void *out = block;

    memset(block, 0x77, size);
    errno = 0;
    EXPECT(!v_malloc(too_much) && errno == ENOMEM);
    EXPECT(!v_malloc(SIZE_MAX) && !v_malloc(SIZE_MAX - 8) && !v_malloc(SIZE_MAX / 2 + 1));
    EXPECT(!v_calloc(too_much, 8));
    EXPECT(!v_calloc(SIZE_MAX, SIZE_MAX));
    errno = 0;
    EXPECT(!v_realloc(block, too_much) && errno == ENOMEM);
    EXPECT(is_filled(block, size, 0x77));
    errno = 0;
    EXPECT(!v_reallocarray(block, too_much, 8) && errno == ENOMEM);
    EXPECT(is_filled(block, size, 0x77));
    EXPECT(v_posix_memalign(&out, 64, too_much) == ENOMEM && out == block);
    EXPECT(v_posix_memalign(&out, 3, 64) == EINVAL && out == block);
    EXPECT(!v_memalign(4096, too_much) && !v_aligned_alloc(4096, too_much));
    EXPECT(!v_valloc(too_much) && !v_pvalloc(SIZE_MAX));
    v_free(block);
}

static void check_aligned(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t alignment = sizeof(void *); alignment <= 65536; alignment *= 2) {
        size_t whole = (size + alignment - 1) / alignment * alignment;
        void *blocks[3] = {v_memalign(alignment, size), v_aligned_alloc(alignment, whole)};

        EXPECT(v_posix_memalign(&blocks[2], alignment, size) == 0);
        for (int i = 0; i < 3; i++) {
            EXPECT(blocks[i] && is_aligned(blocks[i], alignment));
            memset(blocks[i], 1, size);
        }
        v_free(blocks[0]);
        if (free_aligned_sized)
            free_aligned_sized(blocks[1], alignment, whole);
        else
            v_free(blocks[1]);
        v_free(blocks[2]);
    }
    for (int i = 0; i < 2; i++) {
        void *block = i ? v_valloc(size) : v_pvalloc(size);

        EXPECT(block && is_aligned(block, page));
        v_free(block);
    }
}

static void check_nothing(bool glibc)
{
    void *block = v_malloc(0);

    EXPECT(block);
    v_free(block);
    block = v_calloc(0, 16);
    EXPECT(block);
    v_free(block);
    block = v_realloc(NULL, 0);
    EXPECT(block);
    v_free(block);
    v_free(NULL);
    block = v_realloc(v_malloc(100), 0);
    EXPECT(!glibc || !block);
    v_free(block);
}

static void check_texts(void)
{
    char *copy = strdup("a text"), *made = NULL, *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/maps", "r");

    EXPECT(copy && strcmp(copy, "a text") == 0);
    EXPECT(asprintf(&made, "%s of %d", copy, 42) == 12 && strcmp(made, "a text of 42") == 0);
    EXPECT(file && getline(&line, &room, file) > 0);
    v_free(copy);
    v_free(made);
    v_free(line);
    if (file)
        fclose(file);
}

static void *check_all(void *glibc)
{
    for (size_t size = 1; size < 1 << 21; size = size * 3 + 1) {
        check_plain(size);
        check_realloc(size);
        check_failures(size);
        check_aligned(size);
    }
    for (int i = 0; i < 2000; i++)
        check_nothing(glibc != NULL);
    check_texts();
    return NULL;
}

int main(int argc, char **argv)
{
    void *glibc = argc > 1 && strcmp(argv[1], "glibc") == 0 ? argv : NULL;
    pthread_t threads[3];

    check_all(glibc);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, check_all, glibc);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return failures != 0;
}

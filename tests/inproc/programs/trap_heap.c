/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with an allocator of its own, which notes who calls it: only the program and the C
 * library do.  Whatever else took memory here would make it grow, wait for its locks, and leave
 * them behind.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);

enum { CALLERS = 1 << 16, ROUNDS = 1200, BLOCKS = 500 };

static void *callers[CALLERS];
static atomic_uint n_callers;

static void note(void *caller)
{
    callers[atomic_fetch_add(&n_callers, 1) % CALLERS] = caller;
}

void *malloc(size_t size)
{
    note(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    note(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *block, size_t size)
{
    note(__builtin_return_address(0));
    return __libc_realloc(block, size);
}

void free(void *block)
{
    note(__builtin_return_address(0));
    __libc_free(block);
}

static int is_of(void *caller, const char *library)
{
    Dl_info info = {0};

    return caller && dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, library);
}

static void work(void)
{
    void *blocks[BLOCKS] = {0};

    for (int i = 0; i < ROUNDS; i++) {
        free(blocks[i % BLOCKS]);
        blocks[i % BLOCKS] = malloc((size_t)i % 3000);
        usleep(1000);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

int main(void)
{
    int strangers = 0;

    work();
    for (int i = 0; i < CALLERS; i++)
        strangers += is_of(callers[i], "/libkiln.so");
    printf("%d calls of strangers\n", strangers);
    return strangers != 0;
}

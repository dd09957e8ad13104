/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_churn COUNT [PLUGIN]: COUNT allocations on several threads, which free what others made,
 * while threads come and go, the process forks, and a library is loaded with RTLD_DEEPBIND and
 * unloaded.  Each block has its size at both ends: whatever damages it is found.  Exits with 1 if
 * something was.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, SLOTS = 8192, STRETCH = 20000, SIZE_LEAST = 2 * sizeof(size_t) };

static _Atomic(char *) slots[SLOTS];
static _Atomic uint64_t left;
static _Atomic int damaged;
static const char *plugin;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1d;
}

static size_t some_size(uint64_t x)
{
    unsigned percent = (unsigned)(x >> 32) % 100;

    return SIZE_LEAST + (percent < 70   ? (x >> 50) % 112
                         : percent < 93 ? (x >> 50) % 896
                         : percent < 99 ? (x >> 48) % 16384
                                        : (x >> 44) % 300000);
}

static char *mark(char *block, size_t size)
{
    if (block) {
        memcpy(block, &size, sizeof(size));
        memcpy(block + size - sizeof(size), &size, sizeof(size));
    }
    return block;
}

static size_t check(const char *block)
{
    size_t size, end;

    memcpy(&size, block, sizeof(size));
    memcpy(&end, block + size - sizeof(size), sizeof(end));
    if (size != end)
        damaged = 1;
    return size;
}

static char *make(uint64_t x, char *old)
{
    size_t size = some_size(x), old_size = old ? check(old) : 0;
    void *block = NULL;

    switch (x % 16) {
    case 0:
    case 1:
        block = realloc(old, size);
        if (block && old_size && memcmp(block, &old_size, sizeof(old_size)) != 0)
            damaged = 1;
        return mark(block, size);
    case 2:
        block = calloc(1, size);
        break;
    case 3:
        if (posix_memalign(&block, 1UL << (4 + (x >> 8) % 9), size) != 0)
            block = NULL;
        break;
    default:
        block = malloc(size);
    }
    free(old);
    return mark(block, size);
}

/* The child uses what it has inherited, and what it makes itself. */
static void fork_one(void)
{
    pid_t child = fork();
    int status = 1;

    if (child == 0) {
        for (int i = 0; i < 200; i++) {
            char *block = mark(malloc(5000 + 16 * i), 5000 + 16 * i);
            check(block);
            free(block);
        }
        _exit(damaged);
    }
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        damaged = 1;
}

/* What either side makes, the other frees. */
static void load_plugin(void)
{
    void *handle = dlopen(plugin, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    char *(*plugin_make)(size_t);
    void (*plugin_drop)(char *);

    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        damaged = 1;
        return;
    }
    *(void **)&plugin_make = dlsym(handle, "plugin_make");
    *(void **)&plugin_drop = dlsym(handle, "plugin_drop");
    for (size_t size = 16; size < 100000; size *= 3) {
        free(plugin_make(size));
        plugin_drop(malloc(size));
    }
    dlclose(handle);
}

static void *work(void *arg)
{
    uint64_t state = (uint64_t)(uintptr_t)arg * 0x9e3779b97f4a7c15 + 1;

    for (int i = 0; i < STRETCH && atomic_load_explicit(&left, memory_order_relaxed) > 0; i++) {
        uint64_t x = next_random(&state);
        char *old = atomic_exchange(&slots[(x >> 20) % SLOTS], NULL);
        char *block = make(x, old);

        old = atomic_exchange(&slots[(x >> 20) % SLOTS], block);
        if (old)
            check(old);
        free(old);
        if (i % 64 == 63)
            atomic_fetch_sub(&left, left < 64 ? left : 64);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uintptr_t n = 1;

    left = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    plugin = argc > 2 ? argv[2] : NULL;
    while (left > 0) {
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, work, (void *)n++);
        if (n % 32 == 1) {
            fork_one();
            if (plugin)
                load_plugin();
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < SLOTS; i++)
        free(slots[i]);
    if (damaged)
        fprintf(stderr, "something was damaged\n");
    return damaged;
}

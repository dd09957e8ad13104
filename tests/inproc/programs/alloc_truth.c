/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_truth THREADS ROUNDS: each function below allocates blocks of one size on each thread,
 * keeps some of them and frees the others, at a pace that the library's keeper follows with ease.
 * Prints, for each, its name, the size, and how many there were in all and are kept:
 *
 *   take_small 48 120000 30000
 *
 * Then, with the blocks that are kept still in use, the process ends.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KINDS = 9, FIRST = 8, GROWN = 4 };

struct kind {
    const char *name;
    void *(*take)(void);
    size_t size;
    unsigned each_round, keep_every; /* keep_every 0: none */
    _Atomic uint64_t taken, kept;
};

#define TAKES(name, call)                                                                          \
    __attribute__((noinline)) static void *name(void)                                              \
    {                                                                                              \
        void *volatile block = call;                                                               \
        return block;                                                                              \
    }

static void *aligned(size_t alignment, size_t size)
{
    void *block = NULL;

    return posix_memalign(&block, alignment, size) == 0 ? block : NULL;
}

TAKES(take_nothing, malloc(0))
TAKES(take_small, malloc(48))
TAKES(take_zeroed, calloc(10, 32))
TAKES(take_aligned, aligned(256, 1000))
TAKES(take_first, malloc(1000))
TAKES(take_grown, realloc(take_first(), 3000))
TAKES(take_paged, memalign(4096, 20000))
TAKES(take_large, malloc(200000))
TAKES(take_huge, malloc(5000000))

static struct kind kinds[KINDS] = {
    {"take_nothing", take_nothing, 0, 2000, 4, 0, 0},
    {"take_small", take_small, 48, 4000, 4, 0, 0},
    {"take_zeroed", take_zeroed, 320, 800, 3, 0, 0},
    {"take_aligned", take_aligned, 1000, 200, 2, 0, 0},
    {"take_grown", take_grown, 3000, 60, 2, 0, 0},
    {"take_paged", take_paged, 20000, 20, 5, 0, 0},
    {"take_large", take_large, 200000, 3, 3, 0, 0},
    {"take_huge", take_huge, 5000000, 1, 0, 0, 0},
    {"take_first", take_first, 1000, 0, 0, 0, 0}, /* as often as take_grown() */
};
static unsigned rounds;

static void one_round(struct kind *kind)
{
    for (unsigned i = 0; i < kind->each_round; i++) {
        void *block = kind->take();
        uint64_t n = atomic_fetch_add(&kind->taken, 1);

        if (kind->keep_every && n % kind->keep_every == 0)
            atomic_fetch_add(&kind->kept, 1);
        else
            free(block);
    }
}

static void *work(void *arg)
{
    struct timespec pause = {0, 50000000};

    (void)arg;
    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < KINDS; i++)
            one_round(&kinds[i]);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
    pthread_t threads[64];

    rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
    for (int i = 0; i < n && i < 64; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < n && i < 64; i++)
        pthread_join(threads[i], NULL);
    kinds[FIRST].taken = kinds[GROWN].taken;
    for (int i = 0; i < KINDS; i++)
        printf("%s %zu %llu %llu\n", kinds[i].name, kinds[i].size,
               (unsigned long long)kinds[i].taken, (unsigned long long)kinds[i].kept);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair MODE SIZE PAIRS [THREAD]: what a malloc() and its free() take, in nanoseconds of this
 * thread's processor time, beneath sixteen frames.  With a fourth word there is another thread,
 * which sleeps: the C library's allocator takes its locks from then on.
 *
 *   tight   a block is made, touched and freed at once
 *   batch   a thousand are made, then all are freed
 *   mix     one of 20,000 slots is filled anew: 70 % of 16 to 127 bytes, 23 % below 1 KiB, 7 % up
 * to 256 KiB; an eighth by realloc(), a sixteenth by calloc(), all of it written
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 16, BATCH = 1000, SLOTS = 20000 };

struct job {
    const char *mode;
    size_t size;
    uint64_t pairs;
};

static void *(*volatile make)(size_t) = malloc;
static void (*volatile drop)(void *) = free;

static void run_tight(const struct job *job)
{
    for (uint64_t i = 0; i < job->pairs; i++) {
        volatile char *block = make(job->size);

        block[0] = 1;
        drop((void *)block);
    }
}

static void run_batch(const struct job *job)
{
    static void *blocks[BATCH];

    for (uint64_t i = 0; i < job->pairs; i += BATCH) {
        for (int k = 0; k < BATCH; k++) {
            blocks[k] = make(job->size);
            *(volatile char *)blocks[k] = 1;
        }
        for (int k = 0; k < BATCH; k++)
            drop(blocks[k]);
    }
}

static size_t mixed_size(uint64_t x)
{
    unsigned percent = (unsigned)(x >> 32) % 100;

    return percent < 70   ? 16 + (x >> 50) % 112
           : percent < 93 ? 128 + (x >> 50) % 896
                          : 1024 + (x >> 40) % (255 << 10);
}

static void run_mix(const struct job *job)
{
    static void *slots[SLOTS];
    uint64_t x = 88172645463325252;

    for (uint64_t i = 0; i < job->pairs; i++) {
        size_t size;
        void **slot;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        slot = &slots[(x >> 8) % SLOTS];
        size = mixed_size(x);
        if (x % 8 == 0) {
            *slot = realloc(*slot, size);
        } else {
            drop(*slot);
            *slot = x % 16 == 1 ? calloc(1, size) : make(size);
        }
        memset(*slot, 1, size < 4096 ? size : 4096);
    }
}

__attribute__((noinline)) static int descend(const struct job *job, int frames)
{
    if (frames > 0)
        return descend(job, frames - 1) + 1;
    if (strcmp(job->mode, "tight") == 0)
        run_tight(job);
    else if (strcmp(job->mode, "batch") == 0)
        run_batch(job);
    else
        run_mix(job);
    return 0;
}

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return arg;
}

int main(int argc, char **argv)
{
    struct job job = {argc > 1 ? argv[1] : "tight", argc > 2 ? strtoul(argv[2], NULL, 10) : 64,
                      argc > 3 ? strtoull(argv[3], NULL, 10) : 10000000};
    pthread_t other;
    double before;

    if (argc > 4 && pthread_create(&other, NULL, sleep_on, NULL) != 0)
        return 1;
    before = cpu_ns();

    descend(&job, FRAMES);
    printf("%.3f\n", (cpu_ns() - before) / (double)job.pairs);
    return 0;
}

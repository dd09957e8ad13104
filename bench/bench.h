/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench - what the measuring programs in C share.  They know nothing of Kiln's library.
 *
 *   PROGRAM WHAT MILLISECONDS FILE...
 *
 * repeats WHAT over all the files for so long and prints one line: bytes of one pass, CPU seconds
 * of the mean pass, and of the best.  CPU time, because a busy machine must not count; that of the
 * whole process, because a peer's garbage collector must.
 *
 * Threads: one.
 */
#ifndef KILN_BENCH_H
#define KILN_BENCH_H

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct bench_file {
    uint8_t *data;
    size_t len;
};

struct bench {
    const char *what;
    double budget_s;
    struct bench_file *files;
    int n_files;
    size_t bytes; /* of all files */
};

static inline double bench_cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

_Noreturn static inline void bench_die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline struct bench_file bench_read(const char *path)
{
    struct bench_file made = {0};
    FILE *file = fopen(path, "rb");
    long size;

    if (!file || fseek(file, 0, SEEK_END) < 0 || (size = ftell(file)) < 0)
        bench_die(path, "cannot be read");
    rewind(file);
    made.len = (size_t)size;
    made.data = malloc(made.len + 1);
    if (!made.data || fread(made.data, 1, made.len, file) != made.len)
        bench_die(path, "cannot be read");
    fclose(file);
    return made;
}

static inline struct bench bench_begin(int argc, char **argv)
{
    struct bench b = {0};

    if (argc < 4)
        bench_die(argv[0], "usage: WHAT MILLISECONDS FILE...");
    /* As a server that runs for days would have it: memory goes back to the heap, not the kernel.
     */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    b.what = argv[1];
    b.budget_s = strtod(argv[2], NULL) / 1e3;
    b.n_files = argc - 3;
    b.files = calloc((size_t)b.n_files, sizeof(*b.files));
    for (int i = 0; i < b.n_files; i++) {
        b.files[i] = bench_read(argv[3 + i]);
        b.bytes += b.files[i].len;
    }
    return b;
}

/* Runs `pass` until the time is over and prints the line. */
static inline void bench_run(const struct bench *b, void (*pass)(const struct bench *b, void *ctx),
                             void *ctx)
{
    double best = 1e9, start, before, now;
    uint64_t passes = 0;

    pass(b, ctx); /* warm */
    start = now = bench_cpu_s();
    while (now - start < b->budget_s) {
        before = now;
        pass(b, ctx);
        now = bench_cpu_s();
        best = now - before < best ? now - before : best;
        passes++;
    }
    printf("%zu %.9f %.9f\n", b->bytes, (now - start) / (double)passes, best);
}

#endif /* KILN_BENCH_H */

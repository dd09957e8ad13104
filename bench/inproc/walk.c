/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk [ROUNDS]: what a frame of a walk takes, in nanoseconds of processor time: ours with rules at
 * hand (from here, and from a signal's context), ours when every rule is looked up anew, frame
 * pointers alone, and beside them libunwind's fastest (unw_backtrace, where it is installed) and
 * glibc's backtrace().  Walkers take turns; a row has the best of the rounds.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "inproc/thread/thread.h"
#include "inproc/unwind/cache.h"
#include "inproc/unwind/room.h"
#include "inproc/unwind/unwind.h"

enum { DEPTH = 256, BATCH = 2000 };

static struct kiln_in_thread block;
static ucontext_t context;
static int (*libunwind)(void **, int);
static void *volatile frame; /* makes functions keep frame pointers */

static unsigned walk_here(void)
{
    return kiln_in_unwind_here(&block, DEPTH);
}

static unsigned walk_context(void)
{
    return kiln_in_unwind_context(&block, &context, DEPTH);
}

static unsigned walk_anew(void)
{
    kiln_in_cache_forget();
    return kiln_in_unwind_here(&block, DEPTH);
}

static unsigned walk_frame_pointers(void)
{
    const uint64_t *fp = __builtin_frame_address(0);
    unsigned n = 0;

    while (n < DEPTH && fp) {
        block.pcs[n++] = fp[1];
        if (fp[0] <= (uintptr_t)fp || fp[0] - (uintptr_t)fp > 4096)
            break;
        fp = (const uint64_t *)(uintptr_t)fp[0];
    }
    return n;
}

static unsigned walk_glibc(void)
{
    return (unsigned)backtrace((void **)block.pcs, DEPTH);
}

static unsigned walk_libunwind(void)
{
    return libunwind ? (unsigned)libunwind((void **)block.pcs, DEPTH) : 0;
}

static struct walker {
    const char *name;
    unsigned (*walk)(void);
    int parts; /* of a batch, for the slow ones */
    unsigned n;
    double best_ns;
} walkers[] = {
    {"kiln", walk_here, 1, 0, 1e9},
    {"kiln, from a signal's context", walk_context, 1, 0, 1e9},
    {"kiln, rules looked up anew", walk_anew, 10, 0, 1e9},
    {"frame pointers", walk_frame_pointers, 1, 0, 1e9},
    {"libunwind unw_backtrace", walk_libunwind, 1, 0, 1e9},
    {"glibc backtrace", walk_glibc, 10, 0, 1e9},
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void take(struct walker *w)
{
    double before, took;

    frame = __builtin_frame_address(0);
    w->n = w->walk();
    if (!w->n)
        return;
    before = now_ns();
    for (int i = 0; i < BATCH / w->parts; i++)
        w->walk();
    took = (now_ns() - before) / (BATCH / w->parts) / w->n;
    if (took < w->best_ns)
        w->best_ns = took;
}

static void measure(int rounds)
{
    frame = __builtin_frame_address(0);
    getcontext(&context);
    for (int i = 0; i < rounds; i++) {
        for (size_t k = 0; k < sizeof(walkers) / sizeof(*walkers); k++)
            take(&walkers[k]);
    }
}

/* Functions that call each other: thirty-six return addresses, as a program's stack has them. */
#define LEVEL(name, next)                                                                          \
    __attribute__((noinline)) static void name(int rounds)                                         \
    {                                                                                              \
        frame = __builtin_frame_address(0);                                                        \
        next(rounds);                                                                              \
        __asm__ volatile("" ::: "memory"); /* the call is not the last thing */                    \
    }
#define LEVELS(x, next)                                                                            \
    LEVEL(x##5, next)                                                                              \
    LEVEL(x##4, x##5)                                                                              \
    LEVEL(x##3, x##4)                                                                              \
    LEVEL(x##2, x##3)                                                                              \
    LEVEL(x##1, x##2)                                                                              \
    LEVEL(x##0, x##1)
LEVELS(f, measure)
LEVELS(e, f0)
LEVELS(d, e0)
LEVELS(c, d0)
LEVELS(b, c0)
LEVELS(a, b0)

int main(int argc, char **argv)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

    frame = __builtin_frame_address(0);
    if (library)
        *(void **)&libunwind = dlsym(library, "unw_backtrace");
    a0(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 50);
    for (size_t k = 0; k < sizeof(walkers) / sizeof(*walkers); k++) {
        if (walkers[k].n)
            printf("%-32s %7.2f ns a frame (%u frames)\n", walkers[k].name, walkers[k].best_ns,
                   walkers[k].n);
    }
    printf("%-32s %7zu KiB for all threads, at most\n", "kiln, cache of rules",
           sizeof(kiln_in_cache) >> 10);
    return 0;
}

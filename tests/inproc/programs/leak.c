/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that allocates a lot, frees most of it, and leaks at one line.
 *
 * usage: leak BLOCKS [forever]      so many blocks of 1,000 bytes are never freed; it does not end
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *volatile keep, *volatile used;

static __attribute__((noinline)) void work(int n)
{
    used = malloc((size_t)n + 500);
    memset(used, n, 500);
    free(used);
}

static __attribute__((noinline)) char *remember(const char *what)
{
    char *copy = malloc(1000); /* here */

    snprintf(copy, 1000, "%s", what);
    return copy;
}

static __attribute__((noinline)) void serve(int i, int leaks)
{
    work(i % 1000);
    if (leaks)
        keep = remember("a customer");
}

int main(int argc, char **argv)
{
    long blocks = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

    keep = malloc(2 << 20);
    memset(keep, 1, 2 << 20);
    for (int i = 0; i < 20000; i++) {
        serve(i, i < blocks);
        if (i % 100 == 0)
            usleep(1000); /* it has customers, not a stopwatch */
    }
    puts("served");
    fflush(stdout);
    while (argc > 2)
        pause();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -rdynamic -fno-builtin */
/*
 * Prints what malloc, calloc, realloc and free return for odd arguments, and on standard error
 * whether their code in memory is that of their file.
 *
 *   hooks [TIMES [wait]]    first calls each of the four so often, in spin(); with "wait" it says
 *                           "ready" and reads a line before that
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the file of a function has its first byte; 0: nobody knows. */
static off_t place_in_file(uintptr_t function)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    off_t found = 0;

    while (maps && fgets(line, sizeof(line), maps)) {
        uint64_t start, end, offset;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64, &start, &end, &offset) == 3 &&
            function >= start && function < end)
            found = (off_t)(offset + function - start);
    }
    if (maps)
        fclose(maps);
    return found;
}

static const char *told(const char *name)
{
    uint8_t *function = dlsym(RTLD_DEFAULT, name), there[4096];
    const ElfW(Sym) * symbol;
    Dl_info info;
    int fd;

    if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
        symbol->st_size > sizeof(there))
        return "unknown";
    fd = open(info.dli_fname, O_RDONLY);
    if (pread(fd, there, symbol->st_size, place_in_file((uintptr_t)function)) !=
        (ssize_t)symbol->st_size)
        return "unread";
    close(fd);
    return memcmp(function, there, symbol->st_size) == 0 ? "as in its file" : "changed";
}

static void tell_all(void)
{
    static const char *const names[] = {"malloc", "calloc", "realloc", "free"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        fprintf(stderr, "%s: %s\n", names[i], told(names[i]));
}

static void say(const char *what, const void *block)
{
    printf("%s: %s, %s\n", what, block ? "a block" : "NULL", strerror(errno));
    errno = EDOM;
}

static void try_odd_arguments(void)
{
    volatile size_t all = SIZE_MAX, half = SIZE_MAX / 2 + 1, n = 16;
    char *block;

    errno = EDOM;
    say("malloc(0)", malloc(0));
    say("malloc(all)", malloc(all));
    say("malloc(half)", malloc(half));
    say("calloc(0, n)", calloc(0, n));
    say("calloc(half, 2)", calloc(half, 2));
    say("calloc(half, 3)", calloc(half, 3));
    say("calloc(all, n)", calloc(all, n));
    say("calloc(1, all)", calloc(1, all));
    block = calloc(n, n);
    for (size_t i = 0; i < n * n; i++)
        if (block[i])
            say("calloc() has a byte", block);
    memset(block, 7, n * n);
    say("realloc(block, all)", realloc(block, all));
    block = realloc(block, 1 << 20);
    printf("realloc: %d %d\n", block[0], block[n * n - 1]);
    free(block);
    say("realloc(NULL, n)", realloc(NULL, n));
    say("realloc(block, 0)", realloc(malloc(n), 0));
    free(NULL);
    say("free(NULL)", NULL);
}

__attribute__((noinline)) void spin(unsigned long times)
{
    for (unsigned long i = 0; i < times; i++) {
        void *volatile block = realloc(malloc(16 + i % 64), 100);

        free(block);
        block = calloc(1, 16 + i % 64);
        free(block);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        puts("ready");
        fflush(stdout);
        (void)getchar();
    }
    if (argc > 1)
        spin(strtoul(argv[1], NULL, 10));
    try_odd_arguments();
    tell_all();
    return 0;
}

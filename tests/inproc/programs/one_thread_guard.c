/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -shared */
/*
 * Behind libkiln, in front of libc: ends a program of one thread as soon as any other thread of the
 * process has to do with its allocator.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void look(void)
{
    static const char text[] = "a helper is in the program's allocator\n";

    if (getpid() == syscall(SYS_gettid))
        return;
    (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
    _exit(66);
}

void *malloc(size_t size)
{
    look();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    look();
    return __libc_calloc(n, size);
}

void *realloc(void *block, size_t size)
{
    look();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size)
{
    look();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    *ret = memalign(alignment, size);
    return *ret ? 0 : ENOMEM;
}

/* Threads that end give back what they never had. */
void free(void *block)
{
    if (block)
        look();
    __libc_free(block);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next - what is behind our hooks of memory: the C library's functions, or those of somebody whom
 * the program has put before it (jemalloc, tcmalloc, another preload).
 *
 * Before the first call allocations lead to functions that look for all of them, and from then on
 * straight to them: hooks jump through them without a test.
 *
 * Threads: from anywhere.  The first call of a process comes while it has one thread.
 */
#ifndef KILN_INPROC_HOOK_NEXT_H
#define KILN_INPROC_HOOK_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "inproc/hook/hook.h"

struct kiln_in_next {
    void (*free)(void *block);
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t n, size_t size);
    void *(*realloc)(void *block, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    int (*posix_memalign)(void **ret, size_t alignment, size_t size);
    void (*free_sized)(void *block, size_t size);
    void (*free_aligned_sized)(void *block, size_t alignment, size_t size);
    void *(*mmap)(void *address, size_t length, int prot, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t length);
    void *(*mremap)(void *address, size_t from, size_t to, int flags, ...);
};

extern struct kiln_in_next kiln_in_next __attribute__((visibility("hidden")));

/* Finds all of them, where that has not been done. */
void kiln_in_next_init(void);

#endif /* KILN_INPROC_HOOK_NEXT_H */

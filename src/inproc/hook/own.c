/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What malloc() and its relatives mean inside of the library: our own heap.  The linker leads calls
 * there (--wrap, cmake/inproc.cmake), those of libraries that are linked in as well; hooks are
 * not calls of ours, and lead to the program's allocator.
 */
#include <errno.h>
#include <stddef.h>

#include "inproc/thread/heap.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
size_t __wrap_malloc_usable_size(const void *block);

void *__wrap_malloc(size_t size)
{
    return kiln_in_heap_take(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (__builtin_mul_overflow(n, size, &size)) {
        errno = ENOMEM;
        return NULL;
    }
    return kiln_in_heap_take_zeroed(size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return kiln_in_heap_resize(block, size);
}

void __wrap_free(void *block)
{
    kiln_in_heap_give(block);
}

size_t __wrap_malloc_usable_size(const void *block)
{
    return kiln_in_heap_size(block);
}

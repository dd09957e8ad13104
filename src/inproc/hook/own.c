/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What malloc() and its relatives mean inside of the library: our own heap; and qsort(), which may
 * call them: a sort without memory.  The linker leads calls
 * there (--wrap, cmake/inproc.cmake), those of libraries that are linked in as well; hooks are
 * not calls of ours, and lead to the program's allocator.
 */
#include <errno.h>
#include <stddef.h>

#include "inproc/thread/heap.h"
#include "inproc/thread/sort.h"

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
size_t __wrap_malloc_usable_size(const void *block);
void __wrap_qsort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *));
void __wrap_qsort_r(void *array, size_t n, size_t size,
                    int (*compare)(const void *, const void *, void *), void *arg);

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

static int compare_two(const void *a, const void *b, void *arg)
{
    return (*(int (**)(const void *, const void *))arg)(a, b);
}

void __wrap_qsort(void *array, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    kiln_in_sort(array, n, size, compare_two, &compare);
}

void __wrap_qsort_r(void *array, size_t n, size_t size,
                    int (*compare)(const void *, const void *, void *), void *arg)
{
    kiln_in_sort(array, n, size, compare, arg);
}

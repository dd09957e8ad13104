/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc() and its relatives inside of the library: our own heap.  Two functions of the C library
 * are replaced because they use the program's allocator or its state: qsort() allocates; strerror()
 * takes locks and reads the environment to find a translation, while another thread may fork or
 * change the environment.
 *
 * The linker redirects calls (--wrap, cmake/inproc.cmake), those of libraries that are linked in
 * included.  Hooks are not calls of ours: they call the program's allocator.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
char *__wrap_strerror(int code);
char *__real_strerror(int code);

/* Since glibc 2.32. */
const char *strerrordesc_np(int code);
#pragma weak strerrordesc_np

/* ---- memory ---- */

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

/* ---- functions that use the program's ---- */

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

char *__wrap_strerror(int code)
{
    const char *text;

    if (!strerrordesc_np)
        return __real_strerror(code);
    text = strerrordesc_np(code);
    return (char *)(uintptr_t)(text ? text : "unknown error");
}

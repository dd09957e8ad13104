/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort - in place.  The C library's qsort() may want as much memory again, which would be the
 * program's: the linker leads our own calls of it here (inproc/hook/own.c).
 *
 * Threads: no state.
 */
#ifndef KILN_INPROC_THREAD_SORT_H
#define KILN_INPROC_THREAD_SORT_H

#include <stddef.h>

/* Equal elements come in any order, the same for the same array. */
void kiln_in_sort(void *array, size_t n, size_t size,
                  int (*compare)(const void *a, const void *b, void *arg), void *arg);

#endif /* KILN_INPROC_THREAD_SORT_H */

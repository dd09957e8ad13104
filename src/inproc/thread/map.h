/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map - memory for hook paths: pages straight from the kernel, zeroes at first, touched as used.
 *
 * The system call is made directly: the program, or a hook of ours, may have its own mmap().
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_THREAD_MAP_H
#define KILN_INPROC_THREAD_MAP_H

#include <stddef.h>

/* NULL: no memory.  errno may change. */
void *kiln_in_map(size_t bytes);
void kiln_in_unmap(void *at, size_t bytes);

#endif /* KILN_INPROC_THREAD_MAP_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap - memory of our own threads, which is not the program's: its allocator has locks that may be
 * left behind (a fork, a thread that is cancelled in it), limits, and figures that the program
 * looks at.  What we take there would also make it grow at moments at which it would not have.
 *
 * In the library all of malloc() and its relatives that is not a hook leads here (hook/own.c): our
 * own code, and what is linked in.
 *
 * Threads: from any, but not in handlers of signals.
 */
#ifndef KILN_INPROC_THREAD_HEAP_H
#define KILN_INPROC_THREAD_HEAP_H

#include <stddef.h>

/* As malloc(), realloc(), free() and malloc_usable_size(); a block is aligned to 16 bytes. */
void *kiln_in_heap_take(size_t size);
/* The same, all zeroes. */
void *kiln_in_heap_take_zeroed(size_t size);
void *kiln_in_heap_resize(void *block, size_t size);
void kiln_in_heap_give(void *block);
size_t kiln_in_heap_size(const void *block);

/* In a forked child: blocks stay as they are; what was free is not used again. */
void kiln_in_heap_forked(void);

#endif /* KILN_INPROC_THREAD_HEAP_H */

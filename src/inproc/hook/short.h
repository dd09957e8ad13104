/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short - malloc, calloc, realloc and free in as few instructions as can be, once it is known where
 * all lies that they need.
 *
 * Compiled code takes the distance of a thread's line from a table, and jumps through another: the
 * linker places both when the program starts.  From then on they stay, and the code of the four is
 * written anew over itself, with the distance and a conditional jump to the allocator in it: two
 * instructions instead of four, five instead of six.  The page is this process' own from then on.
 * docs/adr/0032 has why, and where it is not done.
 *
 * Threads: while the process has one.
 */
#ifndef KILN_INPROC_HOOK_SHORT_H
#define KILN_INPROC_HOOK_SHORT_H

#include <stddef.h>

/* The hooks, by names that the linker does not lead to our own allocator (hook/own.c). */
void *kiln_in_malloc_hook(size_t size);
void *kiln_in_calloc_hook(size_t n, size_t size);
void *kiln_in_realloc_hook(void *block, size_t size);
void kiln_in_free_hook(void *block);

/* What does not pass: counted out, or known to the filter. */
void *kiln_in_malloc_slow(size_t size);
void *kiln_in_calloc_slow(size_t n, size_t size);
void *kiln_in_realloc_slow(void *block, size_t size);
void *kiln_in_realloc_found(void *block, size_t size);
void kiln_in_free_found(void *block);

#endif /* KILN_INPROC_HOOK_SHORT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place - blocks that are about to be sampled, asked for at a place (sample/places.h).
 *
 * Allocators that are known not to mind: the C library's and jemalloc, which find out by themselves
 * what size a block has.  Of others, and where live blocks are not wanted, they are as the program
 * asked for them.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_INPROC_HOOK_PLACE_H
#define KILN_INPROC_HOOK_PLACE_H

#include <stddef.h>

/* Once, as soon as it is known who is next. */
void kiln_in_place_init(void);

/* As malloc(), calloc() and realloc() of who is next; errno is that of a failure. */
void *kiln_in_place_malloc(size_t size);
void *kiln_in_place_calloc(size_t n, size_t size);
void *kiln_in_place_realloc(void *block, size_t size);

/* What to ask for instead of this alignment. */
size_t kiln_in_place_alignment(size_t alignment);

#endif /* KILN_INPROC_HOOK_PLACE_H */

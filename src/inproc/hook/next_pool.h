/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next_pool - memory for the few allocations that the linker makes while it is asked for the
 * allocator: taken from one small array and never given back.
 *
 * The filter (sample/filter.h) has all addresses of it, so that free() comes to its slow path with
 * them, where they are told from others.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_INPROC_HOOK_NEXT_POOL_H
#define KILN_INPROC_HOOK_NEXT_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* All zeroes; NULL with ENOMEM: it is empty.  `alignment` is a power of two. */
void *kiln_in_pool_take(size_t alignment, size_t size);
bool kiln_in_pool_has(const void *block);
/* As it was asked for. */
size_t kiln_in_pool_size(const void *block);

#endif /* KILN_INPROC_HOOK_NEXT_POOL_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc, calloc, realloc, free: in front of the allocator's own.  A call that nobody wants to know
 * of is one subtraction, or one look at the filter, and a jump: no frame, so that errno, the stack
 * and what the allocator sees of its caller are as without us.
 *
 * malloc_usable_size() and all else that asks about blocks is not hooked: blocks are the
 * allocator's, as it made them.  strdup() and the like call malloc() through the linker, and are
 * counted there.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "inproc/hook/next.h"
#include "inproc/hook/next_pool.h"
#include "inproc/sample/alloc.h"
#include "inproc/sample/filter.h"

/* ---- malloc, calloc ---- */

KILN_IN_SLOW static void *malloc_slow(size_t size)
{
    void *block;

    kiln_in_alloc_begins(size);
    block = kiln_in_next.malloc(size);
    kiln_in_alloc_ends(block, size);
    return block;
}

KILN_IN_HOOK void *malloc(size_t size)
{
    if (kiln_in_alloc_passes(size))
        return kiln_in_next.malloc(size);
    return malloc_slow(size);
}

/* More bytes than can be counted: the allocator refuses, and is heard by the caller. */
KILN_IN_SLOW static void *calloc_slow(size_t n, size_t size)
{
    size_t bytes;
    void *block;

    if (__builtin_mul_overflow(n, size, &bytes))
        return kiln_in_next.calloc(n, size);
    kiln_in_alloc_begins(bytes);
    block = kiln_in_next.calloc(n, size);
    kiln_in_alloc_ends(block, bytes);
    return block;
}

KILN_IN_HOOK void *calloc(size_t n, size_t size)
{
    size_t bytes;

    if (!__builtin_mul_overflow(n, size, &bytes) && kiln_in_alloc_passes(bytes))
        return kiln_in_next.calloc(n, size);
    return calloc_slow(n, size);
}

/* ---- realloc ---- */

static void *realloc_of_pool(void *block, size_t size)
{
    size_t old = kiln_in_pool_size(block);
    void *larger = kiln_in_next.malloc(size);

    if (larger)
        memcpy(larger, block, old < size ? old : size);
    return larger;
}

/*
 * A failure leaves the old block as it is; no bytes at all are, for most allocators, a free() that
 * returns NULL.
 */
static void *realloc_told(void *block, size_t size)
{
    uint64_t mark;
    void *moved;

    if (kiln_in_pool_has(block))
        return realloc_of_pool(block, size);
    mark = kiln_in_alloc_moving(block);
    moved = kiln_in_next.realloc(block, size);
    if (mark && (moved || size == 0))
        kiln_in_alloc_moved(block, mark);
    return moved;
}

KILN_IN_SLOW static void *realloc_found(void *block, size_t size)
{
    return realloc_told(block, size);
}

KILN_IN_SLOW static void *realloc_slow(void *block, size_t size)
{
    void *moved;

    kiln_in_alloc_begins(size);
    moved = realloc_told(block, size);
    kiln_in_alloc_ends(moved, size);
    return moved;
}

/* What becomes of a block is a new one: it gets its own chance to be sampled. */
KILN_IN_HOOK void *realloc(void *block, size_t size)
{
    if (!kiln_in_alloc_passes(size))
        return realloc_slow(block, size);
    if (kiln_in_filter_has(block))
        return realloc_found(block, size);
    return kiln_in_next.realloc(block, size);
}

KILN_IN_HOOK void *reallocarray(void *block, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

/* ---- free ---- */

/* Whether it is the allocator's to free. */
static bool is_next_s(void *block)
{
    if (kiln_in_pool_has(block))
        return false;
    kiln_in_alloc_freed(block);
    return true;
}

KILN_IN_SLOW static void free_found(void *block)
{
    if (is_next_s(block))
        kiln_in_next.free(block);
}

KILN_IN_HOOK void free(void *block)
{
    if (__builtin_expect(kiln_in_filter_has(block), 0))
        free_found(block);
    else
        kiln_in_next.free(block);
}

/* C23's, declared here because older headers lack them. */
KILN_IN_HOOK void free_sized(void *block, size_t size);
KILN_IN_HOOK void free_aligned_sized(void *block, size_t alignment, size_t size);

KILN_IN_SLOW static void free_sized_found(void *block, size_t size)
{
    if (is_next_s(block))
        kiln_in_next.free_sized(block, size);
}

KILN_IN_HOOK void free_sized(void *block, size_t size)
{
    if (__builtin_expect(kiln_in_filter_has(block), 0))
        free_sized_found(block, size);
    else
        kiln_in_next.free_sized(block, size);
}

KILN_IN_SLOW static void free_aligned_sized_found(void *block, size_t alignment, size_t size)
{
    if (is_next_s(block))
        kiln_in_next.free_aligned_sized(block, alignment, size);
}

KILN_IN_HOOK void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    if (__builtin_expect(kiln_in_filter_has(block), 0))
        free_aligned_sized_found(block, alignment, size);
    else
        kiln_in_next.free_aligned_sized(block, alignment, size);
}

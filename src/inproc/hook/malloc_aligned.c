/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that ask for an alignment, as hook/malloc.c has the others.
 *
 * valloc() and pvalloc() are memalign() by definition.  An allocator that does not know them leaves
 * them to the C library, whose blocks it could not free: here they are always the next one's.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "inproc/hook/next.h"
#include "inproc/sample/alloc.h"

KILN_IN_SLOW static void *memalign_slow(size_t alignment, size_t size)
{
    void *block;

    kiln_in_alloc_begins(size);
    block = kiln_in_next.memalign(alignment, size);
    kiln_in_alloc_ends(block, size);
    return block;
}

KILN_IN_HOOK void *memalign(size_t alignment, size_t size)
{
    if (kiln_in_alloc_passes(size))
        return kiln_in_next.memalign(alignment, size);
    return memalign_slow(alignment, size);
}

KILN_IN_SLOW static void *aligned_alloc_slow(size_t alignment, size_t size)
{
    void *block;

    kiln_in_alloc_begins(size);
    block = kiln_in_next.aligned_alloc(alignment, size);
    kiln_in_alloc_ends(block, size);
    return block;
}

KILN_IN_HOOK void *aligned_alloc(size_t alignment, size_t size)
{
    if (kiln_in_alloc_passes(size))
        return kiln_in_next.aligned_alloc(alignment, size);
    return aligned_alloc_slow(alignment, size);
}

KILN_IN_SLOW static int posix_memalign_slow(void **ret, size_t alignment, size_t size)
{
    int r;

    kiln_in_alloc_begins(size);
    r = kiln_in_next.posix_memalign(ret, alignment, size);
    kiln_in_alloc_ends(r == 0 ? *ret : NULL, size);
    return r;
}

KILN_IN_HOOK int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (kiln_in_alloc_passes(size))
        return kiln_in_next.posix_memalign(ret, alignment, size);
    return posix_memalign_slow(ret, alignment, size);
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

KILN_IN_HOOK void *valloc(size_t size)
{
    return memalign(page_bytes(), size);
}

KILN_IN_HOOK void *pvalloc(size_t size)
{
    size_t page = page_bytes();

    if (size > SIZE_MAX - page + 1) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(page, (size + page - 1) & ~(page - 1));
}

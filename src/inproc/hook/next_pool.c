/* SPDX-License-Identifier: Apache-2.0 */
/* Before each block lies its size. */
#include "inproc/hook/next_pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "inproc/sample/filter.h"

enum { BYTES = 8 << 10, LEAST = 16 };

static char pool[BYTES] __attribute__((aligned(64)));
static _Atomic size_t used;

void *kiln_in_pool_take(size_t alignment, size_t size)
{
    size_t room = size + sizeof(size_t) + (alignment < LEAST ? LEAST : alignment);
    uintptr_t at;

    if (size > BYTES || alignment > BYTES || atomic_load(&used) > BYTES ||
        (at = atomic_fetch_add(&used, room)) + room > BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    alignment = alignment < LEAST ? LEAST : alignment;
    at = ((uintptr_t)pool + at + sizeof(size_t) + alignment - 1) & ~(alignment - 1);
    memcpy((void *)(at - sizeof(size_t)), &size, sizeof(size));
    kiln_in_filter_keep((void *)at);
    return (void *)at;
}

bool kiln_in_pool_has(const void *block)
{
    return (uintptr_t)block - (uintptr_t)pool < BYTES;
}

size_t kiln_in_pool_size(const void *block)
{
    size_t size;

    memcpy(&size, (const char *)block - sizeof(size), sizeof(size));
    return size;
}

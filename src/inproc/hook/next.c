/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker is asked for each function, once, at the first call of any: earlier than any
 * constructor of ours.  What it allocates meanwhile comes from a pool.  Where it knows none (a
 * static program) the C library's own names for its allocator serve.
 */
#include "inproc/hook/next.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "inproc/hook/next_find.h"
#include "inproc/hook/next_kernel.h"
#include "inproc/hook/next_pool.h"

extern void *__libc_malloc(size_t size) __attribute__((weak));
extern void __libc_free(void *block) __attribute__((weak));
extern void *__libc_calloc(size_t n, size_t size) __attribute__((weak));
extern void *__libc_realloc(void *block, size_t size) __attribute__((weak));
extern void *__libc_memalign(size_t alignment, size_t size) __attribute__((weak));

enum { UNKNOWN, LOOKING, KNOWN };

static _Atomic int state;

/* ---- what an allocator lacks ---- */

static void free_sized_by_free(void *block, size_t size)
{
    (void)size;
    kiln_in_next.free(block);
}

static void free_aligned_sized_by_free(void *block, size_t alignment, size_t size)
{
    (void)alignment;
    (void)size;
    kiln_in_next.free(block);
}

static void *aligned_alloc_by_memalign(size_t alignment, size_t size)
{
    return kiln_in_next.memalign(alignment, size);
}

static int posix_memalign_by_memalign(void **ret, size_t alignment, size_t size)
{
    int kept_errno = errno;
    void *block;

    if (alignment % sizeof(void *) || alignment == 0 || (alignment & (alignment - 1)))
        return EINVAL;
    block = kiln_in_next.memalign(alignment, size);
    errno = kept_errno;
    if (!block)
        return ENOMEM;
    *ret = block;
    return 0;
}

/* ---- looking ---- */

/* Function pointers and others are of one size here, but C has no conversion between them. */
#define FIND(target, name, otherwise)                                                              \
    do {                                                                                           \
        void *found = kiln_in_next_find(name, NULL);                                               \
        __typeof__(target) use = (otherwise);                                                      \
        if (found)                                                                                 \
            memcpy(&use, &found, sizeof(use));                                                     \
        (target) = use;                                                                            \
    } while (0)

static void look(struct kiln_in_next *next)
{
    FIND(next->malloc, "malloc", __libc_malloc);
    FIND(next->free, "free", __libc_free);
    FIND(next->calloc, "calloc", __libc_calloc);
    FIND(next->realloc, "realloc", __libc_realloc);
    FIND(next->memalign, "memalign", __libc_memalign);
    FIND(next->aligned_alloc, "aligned_alloc", aligned_alloc_by_memalign);
    FIND(next->posix_memalign, "posix_memalign", posix_memalign_by_memalign);
    FIND(next->free_sized, "free_sized", free_sized_by_free);
    FIND(next->free_aligned_sized, "free_aligned_sized", free_aligned_sized_by_free);
    FIND(next->mmap, "mmap", kiln_in_kernel_mmap);
    FIND(next->munmap, "munmap", kiln_in_kernel_munmap);
    FIND(next->mremap, "mremap", kiln_in_kernel_mremap);
}

/* True: the allocator is known.  False: it is being looked for, by this thread. */
static bool find_all(void)
{
    struct kiln_in_next found;
    int was = UNKNOWN;

    if (atomic_load(&state) == KNOWN)
        return true;
    if (!atomic_compare_exchange_strong(&state, &was, LOOKING))
        return was == KNOWN;
    look(&found);
    kiln_in_next = found;
    atomic_store(&state, KNOWN);
    return true;
}

void kiln_in_next_init(void)
{
    find_all();
}

/* ---- the first calls ---- */

static void *first_malloc(size_t size)
{
    return find_all() ? kiln_in_next.malloc(size) : kiln_in_pool_take(1, size);
}

static void first_free(void *block)
{
    if (find_all())
        kiln_in_next.free(block);
}

static void *first_calloc(size_t n, size_t size)
{
    size_t bytes;

    if (find_all())
        return kiln_in_next.calloc(n, size);
    if (__builtin_mul_overflow(n, size, &bytes))
        bytes = SIZE_MAX;
    return kiln_in_pool_take(1, bytes);
}

/* Before the allocator is known all blocks are the pool's, and hooks do not come here with those.
 */
static void *first_realloc(void *block, size_t size)
{
    return find_all() ? kiln_in_next.realloc(block, size) : kiln_in_pool_take(1, size);
}

static void *first_memalign(size_t alignment, size_t size)
{
    return find_all() ? kiln_in_next.memalign(alignment, size) : kiln_in_pool_take(alignment, size);
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
    return find_all() ? kiln_in_next.aligned_alloc(alignment, size)
                      : kiln_in_pool_take(alignment, size);
}

static int first_posix_memalign(void **ret, size_t alignment, size_t size)
{
    void *block;

    if (find_all())
        return kiln_in_next.posix_memalign(ret, alignment, size);
    block = kiln_in_pool_take(alignment, size);
    if (!block)
        return ENOMEM;
    *ret = block;
    return 0;
}

static void first_free_sized(void *block, size_t size)
{
    if (find_all())
        kiln_in_next.free_sized(block, size);
}

static void first_free_aligned_sized(void *block, size_t alignment, size_t size)
{
    if (find_all())
        kiln_in_next.free_aligned_sized(block, alignment, size);
}

struct kiln_in_next kiln_in_next __attribute__((aligned(64))) = {
    .free = first_free,
    .malloc = first_malloc,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .memalign = first_memalign,
    .aligned_alloc = first_aligned_alloc,
    .posix_memalign = first_posix_memalign,
    .free_sized = first_free_sized,
    .free_aligned_sized = first_free_aligned_sized,
    .mmap = kiln_in_kernel_mmap,
    .munmap = kiln_in_kernel_munmap,
    .mremap = kiln_in_kernel_mremap,
};

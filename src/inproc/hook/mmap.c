/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap, munmap, mremap, in front of whoever has them next.  The C library's own allocator does not
 * come here: it calls the kernel by names of its own.
 */
#include <stdarg.h>
#include <sys/mman.h>

#include "inproc/hook/next.h"
#include "inproc/sample/live.h"
#include "inproc/sample/mapping.h"

static bool counts(int prot, int flags)
{
    return (flags & MAP_ANONYMOUS) && prot != PROT_NONE;
}

KILN_IN_HOOK void *mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
    void *mapped;

    if (!kiln_in_mapping_wanted())
        return kiln_in_next.mmap(address, length, prot, flags, fd, offset);
    if (flags & MAP_FIXED)
        kiln_in_mapping_ends(address, length);
    mapped = kiln_in_next.mmap(address, length, prot, flags, fd, offset);
    if (mapped != MAP_FAILED && counts(prot, flags))
        kiln_in_mapping_made(mapped, length);
    return mapped;
}

#ifdef __LP64__
KILN_IN_HOOK void *mmap64(void *address, size_t length, int prot, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));
#endif

KILN_IN_HOOK int munmap(void *address, size_t length)
{
    kiln_in_mapping_ends(address, length);
    return kiln_in_next.munmap(address, length);
}

KILN_IN_HOOK void *mremap(void *address, size_t from, size_t to, int flags, ...)
{
    struct kiln_in_live old;
    bool is_sampled;
    void *target, *mapped;
    va_list rest;

    va_start(rest, flags);
    target = va_arg(rest, void *);
    va_end(rest);
    is_sampled = kiln_in_mapping_moves(address, &old);
    mapped = kiln_in_next.mremap(address, from, to, flags, target);
    if (is_sampled)
        kiln_in_mapping_moved(&old, mapped, to);
    return mapped;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/thread/map.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA           0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

void *kiln_in_map(size_t bytes)
{
    void *at = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    /* Large pages would make all of it resident at the first touch. */
    madvise(at, bytes, MADV_NOHUGEPAGE);
    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, bytes, "kiln");
    return at;
}

void kiln_in_unmap(void *at, size_t bytes)
{
    syscall(SYS_munmap, at, bytes);
}

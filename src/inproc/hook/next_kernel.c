/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/hook/next_kernel.h"

#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

void *kiln_in_kernel_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, length, prot, flags, fd, offset);
}

int kiln_in_kernel_munmap(void *address, size_t length)
{
    return (int)syscall(SYS_munmap, address, length);
}

void *kiln_in_kernel_mremap(void *address, size_t from, size_t to, int flags, ...)
{
    va_list rest;
    void *target;

    va_start(rest, flags);
    target = va_arg(rest, void *);
    va_end(rest);
    return (void *)syscall(SYS_mremap, address, from, to, flags, target);
}

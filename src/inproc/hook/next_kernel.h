/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next_kernel - mappings straight from the kernel, for calls that come before it is known whose
 * functions are next.
 *
 * Threads: from anywhere.
 */
#ifndef KILN_INPROC_HOOK_NEXT_KERNEL_H
#define KILN_INPROC_HOOK_NEXT_KERNEL_H

#include <sys/types.h>

void *kiln_in_kernel_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset);
int kiln_in_kernel_munmap(void *address, size_t length);
void *kiln_in_kernel_mremap(void *address, size_t from, size_t to, int flags, ...);

#endif /* KILN_INPROC_HOOK_NEXT_KERNEL_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resident - whether memory of a process can be read without waiting for anybody.
 *
 * To read memory that is not there asks whoever provides it: a file system in user space, or a
 * handler of page faults (userfaultfd), which may be the process itself and need never answer;
 * whoever reads would wait, and could not be woken.
 *
 * Threads: any.
 */
#ifndef KILN_HOST_RESIDENT_H
#define KILN_HOST_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True: all of it is in memory, or in swap.  It may be gone a moment later. */
bool kiln_is_resident(uint32_t pid, uint64_t address, size_t n);

#endif /* KILN_HOST_RESIDENT_H */

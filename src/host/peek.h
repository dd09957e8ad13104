/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peek - bytes out of the memory of a process, through its folder in /proc, which stays with it.
 *
 * Only pages that are in memory or in the swap are read: any other would be brought by a file
 * system or a handler of faults that the process itself may run, at its leisure.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_HOST_PEEK_H
#define KILN_HOST_PEEK_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct kiln_peek {
    int mem, pagemap;
};

/* `dir`: the folder. */
KILN_CHECK int kiln_peek_open(int dir, struct kiln_peek *ret_peek);
void kiln_peek_close(struct kiln_peek *peek);
/* All of `size` bytes, or -EFAULT. */
KILN_CHECK int kiln_peek(const struct kiln_peek *peek, uint64_t address, void *to, size_t size);

#endif /* KILN_HOST_PEEK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine - gives up, for good, everything but reading descriptors that are there, and the heap.
 *
 * After it this process has no privilege, no other descriptor than `fd` and three of /dev/null, no
 * way to open, connect, start or trace anything, no executable memory to make; whatever else it
 * tries kills it.
 *
 * Threads: the process has one.
 */
#ifndef KILN_SYMBOL_CONFINE_H
#define KILN_SYMBOL_CONFINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/*
 * `memory_bytes` may be taken on top of what there is; `files` descriptors be open at once.
 * Negative: something that must not fail did, and the process must end.
 */
KILN_CHECK int kiln_confine(int fd, size_t memory_bytes, uint32_t files);

#endif /* KILN_SYMBOL_CONFINE_H */

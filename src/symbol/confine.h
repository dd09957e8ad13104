/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine - gives up, for good, everything but reading descriptors that are there, one scratch file
 * and the heap.
 *
 * After it this process has no privilege, no other descriptor than those and three of /dev/null, no
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

struct kiln_confinement {
    int fd;                 /* stays open */
    int scratch;            /* fd + 1: may be written at offsets and cut; -1: there is none */
    int last;               /* all up to this one stay open; 0: no more than these */
    uint64_t scratch_bytes; /* that it may have */
    size_t memory_bytes;    /* may be taken on top of what there is */
    uint32_t files;         /* descriptors that may be open at once */
};

/* Negative: something that must not fail did, and the process must end. */
KILN_CHECK int kiln_confine(const struct kiln_confinement *to);

#endif /* KILN_SYMBOL_CONFINE_H */

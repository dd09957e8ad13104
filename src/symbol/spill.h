/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spill - memory of this process that nothing needs just now, given back to the system.
 *
 * What is in it moves to a scratch file, which is mapped in its place: it is still there, at the
 * same addresses, and comes back page by page when it is touched; until then it is the system's
 * cache, which it may drop.  Pages that are written afterwards are memory again.
 *
 * Threads: the process has one.
 */
#ifndef KILN_SYMBOL_SPILL_H
#define KILN_SYMBOL_SPILL_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct kiln_spill {
    int scratch;       /* fd; may be written at offsets; outlives the process' memory */
    int maps, pagemap; /* fds of its own /proc/self/maps and /proc/self/pagemap */
    uint64_t next;     /* where in the scratch file */
    uint64_t end, cut; /* so far only, and the size that the file gets: past `end` by as much as
                          memory may grow in place */
    uint64_t inode;    /* of the scratch file */
};

enum { KILN_SPILL_LEAST = 64 << 10 }; /* of a mapping that is looked at */

/* All but the inode is filled in.  Negative: nothing can be spilled. */
KILN_CHECK int kiln_spill_open(struct kiln_spill *spill);
/* Bytes of memory that moved.  What cannot be moved stays where it is. */
size_t kiln_spill(struct kiln_spill *spill);

#endif /* KILN_SYMBOL_SPILL_H */

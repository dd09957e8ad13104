/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk - from a frame to its caller, until there is none.
 *
 * A rule for each address comes from the cache, or from tables (inproc/unwind/table.h).  Memory is
 * read as it is where that is safe (inproc/unwind/bounds.h), through the kernel elsewhere: garbage
 * in registers and on stacks ends a walk, it never faults.
 *
 * The stack pointer rises from frame to frame, except where a signal's frame leads to another
 * stack; such falls are counted, so that every walk ends.
 *
 * Threads: a walk belongs to one; handlers of signals included.
 */
#ifndef KILN_INPROC_UNWIND_WALK_H
#define KILN_INPROC_UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "inproc/unwind/arch.h"

struct kiln_in_thread;
struct kiln_in_room;

struct kiln_in_walk {
    struct kiln_in_registers regs; /* of the leaf */
    struct kiln_in_thread *thread; /* the calling one; NULL: the stack is another one's */
    uint64_t pc, sp, fp;
    uint64_t low, high; /* of memory that is read as it is */
    uint64_t bx_at;     /* where rbx is; 0: in regs, 1: it is lost */
    uint64_t era;
    struct kiln_in_room *room; /* NULL until it is needed */
    uint64_t *pcs;
    unsigned n, depth;
    unsigned skip; /* frames that are not kept, from the leaf on */
    bool leaf;     /* pc is where it is, not where it returns to; regs hold */
    bool by_fp;    /* the last step was by the frame pointer */
    uint8_t falls;
    bool is_whole; /* it came to a frame that nobody called */
};

/* From walk->regs; thread, pcs, depth, skip and leaf are set.  Leaves n and is_whole. */
void kiln_in_walk_run(struct kiln_in_walk *walk);

#endif /* KILN_INPROC_UNWIND_WALK_H */

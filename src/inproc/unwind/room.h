/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room - what a walk needs beyond a small stack, where it meets an address for the first time or a
 * stack that is not its thread's: lent out of a few, because that is seldom and soon over.
 *
 * Threads: from anywhere, handlers of signals included.
 */
#ifndef KILN_INPROC_UNWIND_ROOM_H
#define KILN_INPROC_UNWIND_ROOM_H

#include <stdint.h>

#include "symbol/cfi_entry.h"

enum { KILN_IN_ROOMS = 32 };

struct kiln_in_room {
    struct kiln_cfi_room program;
    uint8_t fde[1536], cie[256]; /* copies of entries; larger ones are not followed */
    uint64_t stack[256];         /* and of a piece of stack */
    uint64_t stack_at, stack_bytes;
};

/* NULL: all are lent. */
struct kiln_in_room *kiln_in_room_take(void);
void kiln_in_room_give(struct kiln_in_room *room); /* may be NULL */
/* On a thread that has left walks by a jump. */
void kiln_in_rooms_left(void);
/* In a forked child: those of threads that are not there. */
void kiln_in_rooms_forked(void);

#endif /* KILN_INPROC_UNWIND_ROOM_H */

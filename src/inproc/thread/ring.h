/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring - records of what was sampled, from the thread they happened on to the keeper.
 *
 * One writer, the thread and handlers on it, which never both write (kiln_in_enter); one reader,
 * whoever holds the keeper's lock, who is called when a ring is half full.  Nobody waits: where
 * records come faster than they are read, some are put for many, and what finds no room at all is
 * counted and gone.
 *
 * Threads: put on the thread itself between kiln_in_enter() and kiln_in_leave(); take under the
 * keeper's lock.
 */
#ifndef KILN_INPROC_THREAD_RING_H
#define KILN_INPROC_THREAD_RING_H

#include <stdatomic.h>
#include <stdint.h>

#include "inproc/thread/bell.h"

enum kiln_in_kind {
    KILN_IN_CPU,
    KILN_IN_ALLOC,
    KILN_IN_WAIT,   /* off the processor */
    KILN_IN_MUTEX,  /* for a lock: the waiter's stack */
    KILN_IN_HOLDER, /* the stack of who let go of it */
    KILN_IN_BLOCK,  /* for a condition, a semaphore, a thread's end */
    KILN_IN_LOOP,   /* between two polls of an event loop */
    KILN_IN_CREATE, /* of a thread */
    KILN_IN_MMAP,
    KILN_IN_KINDS
};

struct kiln_in_record {
    uint8_t kind, reason; /* of a wait: what for (inproc/sample/wait.h) */
    uint16_t labels;      /* set of labels (inproc/labels.h); 0: none */
    uint32_t stack;       /* inproc/thread/stacks.h; 0: it is not known */
    uint64_t at_ns;       /* CLOCK_MONOTONIC */
    double count, value;  /* weighted: objects and bytes; ticks and ns; contentions and ns */
    uint8_t trace[16], span[8];
    int32_t tid;
    uint32_t extra; /* the kind's own: of a loop, its descriptor */
};

enum { KILN_IN_RING_RECORDS = 256 };

struct kiln_in_ring {
    _Atomic uint32_t written; /* by the thread */
    _Atomic uint32_t read;    /* by the keeper; both count for ever */
    struct kiln_in_record records[KILN_IN_RING_RECORDS];
};

struct kiln_in_thread;

/* Calls the keeper before its time. */
extern struct kiln_in_bell kiln_in_keeper_bell;

/*
 * 0: it is in the ring, and count and value of *record are by how much it weighs there.  -1:
 * another one stands for it, or there is no room, which is counted.
 */
int kiln_in_ring_put(struct kiln_in_thread *thread, struct kiln_in_record *record);

/* The keeper's: the oldest record is moved into *ret.  1, or 0: there is none. */
int kiln_in_ring_take(struct kiln_in_ring *ring, struct kiln_in_record *ret);

/* Empties the record and fills in its kind, the time, and the thread's labels and span. */
void kiln_in_record_begin(struct kiln_in_record *record, enum kiln_in_kind kind);

#endif /* KILN_INPROC_THREAD_RING_H */

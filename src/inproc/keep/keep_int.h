/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_int - what the files of keep/ share.
 *
 *   keep.c      the thread, the rings, counts and the window, under one lock that is held for
 *               moments
 *   table.c     rows added up
 *   making.c    a batch in the making: mappings, locations, stacks, attributes
 *   profile.c   which profiles there are, and what they are made of
 *   threads.c   where threads are
 *   pace.c      when CPU time and waits are sampled
 *   mappings.c  which file an address is in
 *
 * Whoever makes a batch has taken what it needs from the keeper before, and holds only the lock of
 * the makers.
 *
 * Threads: as each function says.
 */
#ifndef KILN_INPROC_KEEP_KEEP_INT_H
#define KILN_INPROC_KEEP_KEEP_INT_H

#include "inproc/keep/keep.h"
#include "inproc/keep/table.h"

enum {
    KILN_IN_TURN_MS = 100,
    KILN_IN_COUNTS_MAX = 1 << 16 /* different (kind, reason, stack) */
};

struct kiln_in_making;
struct kiln_in_thread_now;

struct kiln_in_counts {
    uint64_t unix_ns; /* when it was taken */
    uint32_t n;
    struct kiln_in_row rows[]; /* the first n of any later snapshot are of the same keys */
};

/* When counting began, CLOCK_REALTIME. */
uint64_t kiln_in_keep_since(void);

/* What was sampled since this was called last, and when that was.  The rows are the caller's. */
struct kiln_in_row *kiln_in_keep_take(uint32_t *ret_n, uint64_t *ret_since_ns,
                                      uint64_t *ret_until_ns);

/* The keeper's lock, for moments. */
void kiln_in_keep_hold(void);
void kiln_in_keep_release(void);

/* Threads as they are: copied, and then put into a batch.  The copy is the caller's. */
struct kiln_in_thread_list {
    struct kiln_in_thread_now *threads;
    uint32_t n;
};
void kiln_in_threads_copy(struct kiln_in_thread_list *ret_list);
void kiln_in_threads_add(struct kiln_in_making *m, const struct kiln_in_thread_list *list);

/* Around a fork: the child finds the tables whole, or forgets them. */
void kiln_in_keep_before_fork(void);
void kiln_in_keep_after_fork(void);

#endif /* KILN_INPROC_KEEP_KEEP_INT_H */

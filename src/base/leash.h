/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leash - how far the answer to one question may go: for how long, over how many bytes, in how much
 * memory, and whether anybody still waits for it.
 *
 * Whoever answers looks at it every few thousand steps and stops where it says so.  Memory is
 * reserved before the work begins, as much as it will take: a question that does not fit now waits
 * for its turn, first come, first served, and one that can never fit is refused at once.  So two
 * questions never wait for each other half-way.  Whoever reserves may be mistaken: how far those
 * before were is saved on top.
 *
 * Threads: a leash has one owner; the pool behind it, and `gone`, are shared.
 */
#ifndef KILN_BASE_LEASH_H
#define KILN_BASE_LEASH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/pool.h"

struct kiln_leash {
    const _Atomic bool *gone;  /* set when nobody waits any more; NULL: somebody always does */
    uint64_t deadline_mono_ns; /* base/clock.h; 0: none */
    uint64_t bytes_max;        /* of blocks, as on disk; 0: no limit */
    size_t memory_max;         /* 0: what the pool has */
    struct kiln_pool *pool;    /* NULL: only memory_max */
    bool exact;                /* no more will be taken than is reserved at first */
    /* filled on the way, for the answer and for metrics */
    uint64_t bytes_read;
    size_t memory; /* reserved now */
    size_t memory_peak;
    size_t saved;             /* of the pool, for what will be taken; see kiln_leash_save() */
    bool was_short;           /* others had what it wanted to take: it may be there later */
    size_t first, first_peak; /* what was reserved last by who had nothing, and what became of it */
};

/* 0; -ECANCELED if nobody waits any more; -ETIMEDOUT past the deadline.  Cheap. */
KILN_CHECK int kiln_leash_check(const struct kiln_leash *leash);

/* The most memory that a query of it can have while no other has any. */
size_t kiln_leash_most(const struct kiln_leash *leash);

/* Counts bytes that are about to be read; KILN_E_LIMIT past the most. */
KILN_CHECK int kiln_leash_read(struct kiln_leash *leash, uint64_t bytes);

/*
 * Waits until there is memory, and takes it.  KILN_E_LIMIT where it is more than there will ever
 * be; else as check.  `err` says how much was wanted, and what to do.  Who has some already does
 * not wait, as with take.
 */
KILN_CHECK int kiln_leash_reserve(struct kiln_leash *leash, size_t bytes, struct kiln_err *err);
/* More for who has some already: never waits. */
KILN_CHECK int kiln_leash_take(struct kiln_leash *leash, size_t bytes);
void kiln_leash_give(struct kiln_leash *leash, size_t bytes);

/* Waits as reserve does, for memory that is taken later: takes draw on it first.  What is left of
 * it goes back with kiln_leash_spend(). */
KILN_CHECK int kiln_leash_save(struct kiln_leash *leash, size_t bytes, struct kiln_err *err);
void kiln_leash_spend(struct kiln_leash *leash);

#endif /* KILN_BASE_LEASH_H */

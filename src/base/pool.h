/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - a memory ceiling that threads share.
 *
 * A budget (base/mem.h) bounds one batch or one question and has one owner.  A pool bounds what all
 * of them take together: whoever is about to use memory on behalf of a stranger (a request body, a
 * decoded batch, the head of the store, a page in the cache) takes the bytes first and refuses, or
 * waits, when there are none.  Pools nest: what a pool gives out it takes from its parent.
 *
 * Pools beside each other may overlap (their limits are more than the parent has), and each may own
 * a part that nobody else can take: what it gives out beyond that is the parent's.
 *
 * Threads: safe from anywhere; one atomic addition a level, or a short lock where a part is owned.
 */
#ifndef KILN_BASE_POOL_H
#define KILN_BASE_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* Who wants to look at the process whenever so much was taken, whatever was given back meanwhile.
 */
struct kiln_pool_meter {
    size_t every;
    _Atomic size_t taken; /* since the last look, which sets it to 0 */
    void (*look)(void *context);
    void *context;
};

struct kiln_pool {
    const char *name; /* "ingest", "head", "compaction": a label of the metrics */
    struct kiln_pool *parent;
    size_t limit;
    size_t own; /* taken from the parent for good */
    _Atomic size_t used;
    _Atomic size_t leashed; /* of that, what questions hold: base/leash.h */
    _Atomic size_t peak;
    _Atomic uint64_t refused;
    pthread_mutex_t lock; /* where a part is owned; and for: */
    void (*reclaim)(void *context, size_t bytes);
    void *reclaim_context;
    struct kiln_pool_meter *meter; /* NULL: nobody looks */
};

/* `parent` may be NULL. */
void kiln_pool_init(struct kiln_pool *pool, const char *name, size_t limit,
                    struct kiln_pool *parent);

/* Sets a part of the parent's aside for this pool alone, before anybody uses it.  KILN_E_LIMIT. */
KILN_CHECK int kiln_pool_own(struct kiln_pool *pool, size_t bytes);

/*
 * Who holds memory of this pool that can be done without (a cache) is asked to give about so much
 * back where this pool, or one above it, has not enough for somebody.  Called by whoever takes,
 * under any lock of his: it must not wait (try a lock), nor take.  NULL: nobody.
 */
void kiln_pool_on_short(struct kiln_pool *pool, void (*reclaim)(void *context, size_t bytes),
                        void *context);
/* Asks for what a taking lacks; false: there is nobody to ask. */
bool kiln_pool_reclaim(struct kiln_pool *pool, size_t bytes);

/*
 * What is taken here and below counts; before anybody takes, and before pools below are made.  The
 * one whose taking is due for it looks, before he gets anything: under any lock of his, as above.
 */
void kiln_pool_set_meter(struct kiln_pool *pool, struct kiln_pool_meter *meter);

/* Whether a taking would succeed just now; counts nothing and asks nobody. */
bool kiln_pool_has(struct kiln_pool *pool, size_t bytes);
/* The same, after caches were asked to give back what is lacking. */
bool kiln_pool_could(struct kiln_pool *pool, size_t bytes);

/* Takes `bytes` here and from every parent.  Returns 0 or KILN_E_LIMIT, and then took nothing. */
KILN_CHECK int kiln_pool_take(struct kiln_pool *pool, size_t bytes);
void kiln_pool_give(struct kiln_pool *pool, size_t bytes);

#endif /* KILN_BASE_POOL_H */

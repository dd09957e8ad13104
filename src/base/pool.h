/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool - a memory ceiling that threads share.
 *
 * A budget (base/mem.h) bounds one batch or one question and has one owner.  A pool bounds what all
 * of them take together: whoever is about to use memory on behalf of a stranger (a request body, a
 * decoded batch, the head of the store, a page in the cache) takes the bytes first and refuses, or
 * waits, when there are none.  Pools nest: what a pool gives out it takes from its parent.
 *
 * Threads: safe from anywhere; one atomic addition a level.
 */
#ifndef KILN_BASE_POOL_H
#define KILN_BASE_POOL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct kiln_pool {
    const char *name; /* "ingest", "head", "compaction": a label of the metrics */
    struct kiln_pool *parent;
    size_t limit;
    _Atomic size_t used;
    _Atomic size_t peak;
    _Atomic uint64_t refused;
};

/* `parent` may be NULL. */
void kiln_pool_init(struct kiln_pool *pool, const char *name, size_t limit,
                    struct kiln_pool *parent);

/* Takes `bytes` here and from every parent.  Returns 0 or KILN_E_LIMIT, and then took nothing. */
KILN_CHECK int kiln_pool_take(struct kiln_pool *pool, size_t bytes);
void kiln_pool_give(struct kiln_pool *pool, size_t bytes);

#endif /* KILN_BASE_POOL_H */

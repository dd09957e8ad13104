/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache - what was read of blocks and may be asked for again: dictionaries (store/dict.h), the
 * stacks of a service as a forest (store/forest.h), and what rows add up to (store/ready.h), by the
 * id of the block and what it is of it.
 *
 * Everything in it is immutable and counted.  Its bytes are charged to a pool while it is cached;
 * what was not used for longest goes first when the share of the cache, or the pool, is used up.
 * What finds no room is not kept, and lives as long as who made it needs it.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_STORE_CACHE_H
#define KILN_STORE_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "store/block.h"

/* The head of everything that can be cached. */
struct kiln_cached {
    _Atomic uint32_t refs;
    size_t bytes;
    void (*free)(struct kiln_cached *object);
};

static inline void kiln_cached_ref(struct kiln_cached *object)
{
    atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
}
void kiln_cached_unref(struct kiln_cached *object); /* may be NULL */

/* Instead of the number of a service; store/ready.h has those with the highest bit. */
#define KILN_CACHE_DICT   UINT32_MAX
#define KILN_CACHE_META   (UINT32_MAX - 1)

#define KILN_CACHE_CHAINS 1024u
struct kiln_cache_entry;

struct kiln_cache {
    struct kiln_pool *pool; /* borrowed */
    size_t limit;
    pthread_mutex_t lock;
    size_t used;
    struct kiln_cache_entry *chains[KILN_CACHE_CHAINS];
    struct kiln_cache_entry *newest, *oldest;
    _Atomic uint64_t hits, misses;
};

/* Whoever is short of the pool's memory is given of the cache's. */
void kiln_cache_init(struct kiln_cache *cache, struct kiln_pool *pool, size_t limit);
void kiln_cache_done(struct kiln_cache *cache);

/* A reference, or NULL.  `age` must be that it was put with, unless that was 0. */
struct kiln_cached *kiln_cache_find(struct kiln_cache *cache, const struct kiln_block_id *block,
                                    uint64_t what, uint64_t age);
/* Whether it is there, without counting it as a use. */
bool kiln_cache_has(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what);
/* Keeps a reference of its own, if there is room, in the place of what was there; false: there is
 * none, and the object is the caller's alone. */
bool kiln_cache_put(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object);
/* The same for what is made of the rest of the cache: it goes before anything else does, and only
 * its like makes room for it. */
bool kiln_cache_add(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object);
/* The same for what can easily be made again: only where half of the cache is free. */
bool kiln_cache_offer(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                      struct kiln_cached *object);
/* Nothing of this block is kept any more. */
void kiln_cache_forget(struct kiln_cache *cache, const struct kiln_block_id *block);

#endif /* KILN_STORE_CACHE_H */

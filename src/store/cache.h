/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache - parts of blocks that queries read or computed and may need again: dictionaries
 * (store/dict.h), the stacks of a service as a forest (store/forest.h), and sums of rows
 * (store/ready.h).  The key is the id of the block and a number that says which part it is.
 *
 * Cached objects are immutable and reference-counted.  Their bytes are charged to a pool while they
 * are cached.  When the cache's limit or the pool is used up, the least recently used object that
 * only the cache holds is evicted.  An object that finds no room is not kept; it lives as long as
 * the caller's reference.
 *
 * Finding, adding and evicting one object take constant time, however many there are, and however
 * many of them are held.
 *
 * An object that was put must not be released after kiln_cache_done().
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_STORE_CACHE_H
#define KILN_STORE_CACHE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/pool.h"
#include "store/block.h"

struct kiln_cache;
struct kiln_cache_entry;

/* The head of everything that can be cached. */
struct kiln_cached {
    _Atomic uint32_t refs;
    size_t bytes;
    void (*free)(struct kiln_cached *object);
    struct kiln_cache *home;        /* set once, when it is put; NULL: it never was */
    struct kiln_cache_entry *entry; /* under the cache's lock; NULL: it is not cached */
};

static inline void kiln_cached_ref(struct kiln_cached *object)
{
    atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
}
void kiln_cached_unref(struct kiln_cached *object); /* may be NULL */

/* Instead of the number of a service; store/ready.h has those with the highest bit. */
#define KILN_CACHE_DICT UINT32_MAX
#define KILN_CACHE_META (UINT32_MAX - 1)

/* A hash table of entries, or of blocks: chains that stay short. */
struct kiln_cache_link {
    struct kiln_cache_link *chain;
    uint64_t hash;
};
struct kiln_cache_table {
    struct kiln_cache_link **chains;
    uint32_t n, n_chains; /* a power of two */
};

/* Entries in the order of their last use. */
struct kiln_cache_order {
    struct kiln_cache_entry *newest, *oldest;
};

struct kiln_cache {
    struct kiln_pool *pool; /* borrowed */
    size_t limit;
    pthread_mutex_t lock;
    size_t used;
    struct kiln_cache_table entries; /* by block and part */
    struct kiln_cache_table blocks;  /* those that have entries */
    struct kiln_cache_order idle[2]; /* entries that only the cache holds; [1]: those of _add() */
    uint64_t n_looks;                /* entries that were looked at, for tests */
    _Atomic uint64_t hits, misses;
};

/* The cache gives memory back when others are short of the pool's. */
void kiln_cache_init(struct kiln_cache *cache, struct kiln_pool *pool, size_t limit);
void kiln_cache_done(struct kiln_cache *cache);

/* A reference, or NULL.  `age` must be the one that the object was put with, unless that was 0. */
struct kiln_cached *kiln_cache_find(struct kiln_cache *cache, const struct kiln_block_id *block,
                                    uint64_t what, uint64_t age);
/* Whether it is cached; does not count as a use. */
bool kiln_cache_has(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what);
/* Keeps a reference of its own if there is room, and drops the object that had the same key.
 * Returns false where there is no room: the object is the caller's alone. */
bool kiln_cache_put(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object);
/* The same for objects computed from other cached objects: they are evicted before all others, and
 * only objects of this kind are evicted to make room for them. */
bool kiln_cache_add(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object);
/* The same for objects that are cheap to make again: only where half of the cache is free. */
bool kiln_cache_offer(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                      struct kiln_cached *object);
/* Drops all objects of a block. */
void kiln_cache_forget(struct kiln_cache *cache, const struct kiln_block_id *block);

#endif /* KILN_STORE_CACHE_H */

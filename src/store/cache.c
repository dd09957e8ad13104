/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry is in a hash table by its key, and in the list of its block.  While only the cache holds
 * its object the entry is also in one of two lists in the order of use, one for each kind; eviction
 * takes entries from their ends.  An entry whose object is held is in neither list, so eviction
 * never meets it: kiln_cache_find() takes it out, and the last holder puts it back.
 *
 * So the count of references falls to 1 or 0 only under the lock, where the object was ever put.
 * Objects are freed after the lock was released: freeing one may release another.
 */
#include "store/cache.h"

#include "base/hash.h"
#include "base/mem.h"

#define CHAINS_MIN 64u

/* A block that has entries. */
struct kiln_cache_block {
    struct kiln_cache_link link; /* first */
    struct kiln_block_id id;
    struct kiln_cache_entry *entries;
};

struct kiln_cache_entry {
    struct kiln_cache_link link;            /* first */
    struct kiln_cache_entry *newer, *older; /* in the order of use, while `is_idle` */
    struct kiln_cache_entry *next, *before; /* of the same block */
    struct kiln_cache_block *block;
    uint64_t what;
    uint64_t age;
    bool goes_first, is_idle;
    struct kiln_cached *object; /* NULL once it was dropped */
};

/* ---- hash tables ---- */

static struct kiln_cache_link **chain_of(struct kiln_cache_table *table, uint64_t hash)
{
    return &table->chains[hash & (table->n_chains - 1)];
}

/* Doubles the number of chains.  Without memory for that, chains get longer. */
static void grow(struct kiln_cache_table *table)
{
    struct kiln_cache_table grown = {.n = table->n};

    grown.n_chains = table->n_chains ? 2 * table->n_chains : CHAINS_MIN;
    grown.chains = kiln_calloc(grown.n_chains, sizeof(*grown.chains));
    if (!grown.chains)
        return;
    for (uint32_t i = 0; i < table->n_chains; i++) {
        for (struct kiln_cache_link *l = table->chains[i], *next; l; l = next) {
            struct kiln_cache_link **chain = chain_of(&grown, l->hash);

            next = l->chain;
            l->chain = *chain;
            *chain = l;
        }
    }
    kiln_free(table->chains);
    *table = grown;
}

/* False where there is no memory for the first chains. */
static bool add_link(struct kiln_cache_table *table, struct kiln_cache_link *link)
{
    struct kiln_cache_link **chain;

    if (table->n >= table->n_chains)
        grow(table);
    if (!table->n_chains)
        return false;
    chain = chain_of(table, link->hash);
    link->chain = *chain;
    *chain = link;
    table->n++;
    return true;
}

static void remove_link(struct kiln_cache *cache, struct kiln_cache_table *table,
                        struct kiln_cache_link *link)
{
    struct kiln_cache_link **at = chain_of(table, link->hash);

    for (; *at != link; at = &(*at)->chain)
        cache->n_looks++;
    *at = link->chain;
    table->n--;
}

static struct kiln_cache_link *first_link(struct kiln_cache_table *table, uint64_t hash)
{
    return table->n_chains ? *chain_of(table, hash) : NULL;
}

static uint64_t hash_of(const struct kiln_block_id *block)
{
    return kiln_hash(block->bytes, sizeof(block->bytes));
}

static struct kiln_cache_block *find_block(struct kiln_cache *cache, const struct kiln_block_id *id)
{
    uint64_t hash = hash_of(id);

    for (struct kiln_cache_link *l = first_link(&cache->blocks, hash); l; l = l->chain) {
        struct kiln_cache_block *block = (struct kiln_cache_block *)l;

        cache->n_looks++;
        if (l->hash == hash && memcmp(&block->id, id, sizeof(*id)) == 0)
            return block;
    }
    return NULL;
}

static struct kiln_cache_entry *find(struct kiln_cache *cache, const struct kiln_block_id *block,
                                     uint64_t what)
{
    uint64_t hash = kiln_hash_mix(hash_of(block), what);

    for (struct kiln_cache_link *l = first_link(&cache->entries, hash); l; l = l->chain) {
        struct kiln_cache_entry *e = (struct kiln_cache_entry *)l;

        cache->n_looks++;
        if (l->hash == hash && e->what == what && memcmp(&e->block->id, block, sizeof(*block)) == 0)
            return e;
    }
    return NULL;
}

/* ---- the order of use ---- */

static void leave_order(struct kiln_cache *cache, struct kiln_cache_entry *e)
{
    struct kiln_cache_order *order = &cache->idle[e->goes_first];

    if (!e->is_idle)
        return;
    *(e->newer ? &e->newer->older : &order->newest) = e->older;
    *(e->older ? &e->older->newer : &order->oldest) = e->newer;
    e->is_idle = false;
}

static void join_order(struct kiln_cache *cache, struct kiln_cache_entry *e)
{
    struct kiln_cache_order *order = &cache->idle[e->goes_first];

    e->newer = NULL;
    e->older = order->newest;
    *(e->older ? &e->older->newer : &order->oldest) = e;
    order->newest = e;
    e->is_idle = true;
}

/* ---- blocks ---- */

static struct kiln_cache_block *get_block(struct kiln_cache *cache, const struct kiln_block_id *id)
{
    struct kiln_cache_block *block = find_block(cache, id);

    if (block)
        return block;
    block = kiln_calloc(1, sizeof(*block));
    if (!block)
        return NULL;
    block->id = *id;
    block->link.hash = hash_of(id);
    if (add_link(&cache->blocks, &block->link))
        return block;
    kiln_free(block);
    return NULL;
}

static void leave_block(struct kiln_cache *cache, struct kiln_cache_block *block)
{
    if (block->entries)
        return;
    remove_link(cache, &cache->blocks, &block->link);
    kiln_free(block);
}

/* ---- dropping ---- */

/* Takes an entry out of the cache; it joins a list of those to be freed without the lock. */
static void drop(struct kiln_cache *cache, struct kiln_cache_entry *e,
                 struct kiln_cache_entry **dropped)
{
    remove_link(cache, &cache->entries, &e->link);
    leave_order(cache, e);
    *(e->before ? &e->before->next : &e->block->entries) = e->next;
    if (e->next)
        e->next->before = e->before;
    leave_block(cache, e->block);
    cache->used -= e->object->bytes;
    kiln_pool_give(cache->pool, e->object->bytes);
    e->object->entry = NULL;
    if (atomic_fetch_sub_explicit(&e->object->refs, 1, memory_order_acq_rel) != 1)
        e->object = NULL; /* its last holder frees it */
    e->next = *dropped;
    *dropped = e;
}

/* Without the lock. */
static void free_dropped(struct kiln_cache_entry *dropped)
{
    for (struct kiln_cache_entry *next; dropped; dropped = next) {
        next = dropped->next;
        if (dropped->object)
            dropped->object->free(dropped->object);
        kiln_free(dropped);
    }
}

void kiln_cached_unref(struct kiln_cached *object)
{
    struct kiln_cache *cache;
    uint32_t refs;

    if (!object)
        return;
    cache = object->home;
    refs = atomic_load_explicit(&object->refs, memory_order_relaxed);
    while (refs > 2) {
        if (atomic_compare_exchange_weak(&object->refs, &refs, refs - 1))
            return;
    }
    if (cache)
        pthread_mutex_lock(&cache->lock);
    refs = atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) - 1;
    if (refs == 1 && object->entry)
        join_order(cache, object->entry);
    if (cache)
        pthread_mutex_unlock(&cache->lock);
    if (refs == 0)
        object->free(object);
}

/* ---- making room ---- */

static void evict_down_to(struct kiln_cache *cache, size_t goal, bool goes_first,
                          struct kiln_cache_entry **dropped)
{
    while (cache->idle[goes_first].oldest && cache->used > goal) {
        cache->n_looks++;
        drop(cache, cache->idle[goes_first].oldest, dropped);
    }
}

/* Evicts objects until `bytes` are freed; false if there was less. */
static bool make_room(struct kiln_cache *cache, size_t bytes, bool all,
                      struct kiln_cache_entry **dropped)
{
    size_t goal = cache->used > bytes ? cache->used - bytes : 0;

    evict_down_to(cache, goal, true, dropped);
    if (all)
        evict_down_to(cache, goal, false, dropped);
    return cache->used <= goal;
}

/* Called by a thread that takes memory: it may hold this very lock. */
static void reclaim(void *context, size_t bytes)
{
    struct kiln_cache_entry *dropped = NULL;
    struct kiln_cache *cache = context;

    if (pthread_mutex_trylock(&cache->lock) != 0)
        return;
    make_room(cache, bytes, true, &dropped);
    pthread_mutex_unlock(&cache->lock);
    free_dropped(dropped);
}

/* Takes the bytes of an object from the pool, and evicts others where that needs it. */
static bool charge(struct kiln_cache *cache, size_t bytes, bool all,
                   struct kiln_cache_entry **dropped)
{
    if (cache->used > cache->limit - bytes &&
        !make_room(cache, cache->used - (cache->limit - bytes), all, dropped))
        return false;
    while (!kiln_pool_has(cache->pool, bytes) || kiln_pool_take(cache->pool, bytes) < 0) {
        size_t before = cache->used;

        make_room(cache, bytes, all, dropped);
        if (cache->used == before)
            return false;
    }
    return true;
}

/* ---- the cache ---- */

void kiln_cache_init(struct kiln_cache *cache, struct kiln_pool *pool, size_t limit)
{
    *cache = (struct kiln_cache){.pool = pool, .limit = limit};
    pthread_mutex_init(&cache->lock, NULL);
    kiln_pool_on_short(pool, reclaim, cache);
}

struct kiln_cached *kiln_cache_find(struct kiln_cache *cache, const struct kiln_block_id *block,
                                    uint64_t what, uint64_t age)
{
    struct kiln_cached *found = NULL;
    struct kiln_cache_entry *e;

    pthread_mutex_lock(&cache->lock);
    e = find(cache, block, what);
    if (e && (e->age == age || e->age == 0)) {
        leave_order(cache, e);
        found = e->object;
        kiln_cached_ref(found);
    }
    pthread_mutex_unlock(&cache->lock);
    atomic_fetch_add_explicit(found ? &cache->hits : &cache->misses, 1, memory_order_relaxed);
    return found;
}

bool kiln_cache_has(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what)
{
    bool has;

    pthread_mutex_lock(&cache->lock);
    has = find(cache, block, what) != NULL;
    pthread_mutex_unlock(&cache->lock);
    return has;
}

/* Under the lock.  The caller holds the object, so the entry is not idle. */
static bool add_entry(struct kiln_cache *cache, const struct kiln_block_id *block,
                      struct kiln_cache_entry *e)
{
    e->block = get_block(cache, block);
    if (!e->block)
        return false;
    e->link.hash = kiln_hash_mix(e->block->link.hash, e->what);
    if (!add_link(&cache->entries, &e->link)) {
        leave_block(cache, e->block);
        return false;
    }
    e->next = e->block->entries;
    if (e->next)
        e->next->before = e;
    e->block->entries = e;
    kiln_cached_ref(e->object);
    e->object->home = cache;
    e->object->entry = e;
    cache->used += e->object->bytes;
    return true;
}

static bool put(struct kiln_cache *cache, const struct kiln_block_id *block,
                const struct kiln_cache_entry *made)
{
    struct kiln_cache_entry *e, *known, *dropped = NULL;
    size_t bytes = made->object->bytes;
    bool kept = false;

    if (bytes > cache->limit)
        return false;
    e = kiln_malloc(sizeof(*e));
    if (!e)
        return false;
    *e = *made;
    pthread_mutex_lock(&cache->lock);
    known = find(cache, block, made->what);
    if (known)
        drop(cache, known, &dropped);
    if (charge(cache, bytes, !made->goes_first, &dropped)) {
        kept = add_entry(cache, block, e);
        if (!kept)
            kiln_pool_give(cache->pool, bytes);
    }
    pthread_mutex_unlock(&cache->lock);
    free_dropped(dropped);
    if (!kept)
        kiln_free(e);
    return kept;
}

bool kiln_cache_put(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object)
{
    return put(cache, block,
               &(struct kiln_cache_entry){.what = what, .age = age, .object = object});
}

bool kiln_cache_add(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object)
{
    return put(
        cache, block,
        &(struct kiln_cache_entry){.what = what, .age = age, .object = object, .goes_first = true});
}

bool kiln_cache_offer(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                      struct kiln_cached *object)
{
    bool room;

    pthread_mutex_lock(&cache->lock);
    room = object->bytes < cache->limit / 2 && cache->used < cache->limit / 2 - object->bytes;
    pthread_mutex_unlock(&cache->lock);
    return room && kiln_cache_put(cache, block, what, 0, object);
}

void kiln_cache_forget(struct kiln_cache *cache, const struct kiln_block_id *block)
{
    struct kiln_cache_entry *dropped = NULL;
    struct kiln_cache_block *b;

    pthread_mutex_lock(&cache->lock);
    b = find_block(cache, block);
    for (bool more = b; more;) {
        more = b->entries->next;
        drop(cache, b->entries, &dropped); /* the last one frees the block */
    }
    pthread_mutex_unlock(&cache->lock);
    free_dropped(dropped);
}

/* Entries that others hold are dropped as well. */
static void drop_all(struct kiln_cache *cache, struct kiln_cache_entry **dropped)
{
    for (uint32_t i = 0; i < cache->entries.n_chains; i++) {
        while (cache->entries.chains[i])
            drop(cache, (struct kiln_cache_entry *)cache->entries.chains[i], dropped);
    }
}

void kiln_cache_done(struct kiln_cache *cache)
{
    struct kiln_cache_entry *dropped = NULL;

    if (!cache->pool)
        return;
    kiln_pool_on_short(cache->pool, NULL, NULL);
    pthread_mutex_lock(&cache->lock);
    drop_all(cache, &dropped);
    pthread_mutex_unlock(&cache->lock);
    free_dropped(dropped);
    kiln_free(cache->entries.chains);
    kiln_free(cache->blocks.chains);
    pthread_mutex_destroy(&cache->lock);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains by a hash of the block's id alone, so that a block is forgotten by one of them; a list of
 * all in the order of use.  What somebody holds is not evicted: it would free nothing.
 */
#include "store/cache.h"

#include "base/hash.h"
#include "base/mem.h"

struct kiln_cache_entry {
    struct kiln_cache_entry *chain;         /* of the same hash */
    struct kiln_cache_entry *newer, *older; /* in the order of use */
    struct kiln_block_id block;
    uint64_t what;
    uint64_t age;
    bool goes_first;
    struct kiln_cached *object;
};

void kiln_cached_unref(struct kiln_cached *object)
{
    if (object && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1)
        object->free(object);
}

static struct kiln_cache_entry **chain_of(struct kiln_cache *cache,
                                          const struct kiln_block_id *block)
{
    return &cache->chains[kiln_hash(block->bytes, sizeof(block->bytes)) % KILN_CACHE_CHAINS];
}

static void unlink_use(struct kiln_cache *cache, struct kiln_cache_entry *e)
{
    *(e->newer ? &e->newer->older : &cache->newest) = e->older;
    *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
}

static void link_newest(struct kiln_cache *cache, struct kiln_cache_entry *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(e->older ? &e->older->newer : &cache->oldest) = e;
    cache->newest = e;
}

/* Under the lock, `at` is where the chain points to it. */
static void drop(struct kiln_cache *cache, struct kiln_cache_entry **at)
{
    struct kiln_cache_entry *e = *at;

    *at = e->chain;
    unlink_use(cache, e);
    cache->used -= e->object->bytes;
    kiln_pool_give(cache->pool, e->object->bytes);
    kiln_cached_unref(e->object);
    kiln_free(e);
}

static void evict(struct kiln_cache *cache, struct kiln_cache_entry *e)
{
    struct kiln_cache_entry **at = chain_of(cache, &e->block);

    while (*at != e)
        at = &(*at)->chain;
    drop(cache, at);
}

static void evict_down_to(struct kiln_cache *cache, size_t goal, bool goes_first)
{
    for (struct kiln_cache_entry *e = cache->oldest, *newer; e && cache->used > goal; e = newer) {
        newer = e->newer;
        if (e->goes_first == goes_first &&
            atomic_load_explicit(&e->object->refs, memory_order_acquire) == 1)
            evict(cache, e);
    }
}

/* Evicts what nobody holds until `bytes` are freed; false if there was less. */
static bool make_room(struct kiln_cache *cache, size_t bytes, bool all)
{
    size_t goal = cache->used > bytes ? cache->used - bytes : 0;

    evict_down_to(cache, goal, true);
    if (all)
        evict_down_to(cache, goal, false);
    return cache->used <= goal;
}

/* Somebody else needs it; whoever holds the lock may be just him. */
static void reclaim(void *context, size_t bytes)
{
    struct kiln_cache *cache = context;

    if (pthread_mutex_trylock(&cache->lock) != 0)
        return;
    make_room(cache, bytes, true);
    pthread_mutex_unlock(&cache->lock);
}

void kiln_cache_init(struct kiln_cache *cache, struct kiln_pool *pool, size_t limit)
{
    *cache = (struct kiln_cache){.pool = pool, .limit = limit};
    pthread_mutex_init(&cache->lock, NULL);
    kiln_pool_on_short(pool, reclaim, cache);
}

static struct kiln_cache_entry **find(struct kiln_cache *cache, const struct kiln_block_id *block,
                                      uint64_t what)
{
    struct kiln_cache_entry **at = chain_of(cache, block);

    while (*at && ((*at)->what != what || memcmp(&(*at)->block, block, sizeof(*block)) != 0))
        at = &(*at)->chain;
    return at;
}

struct kiln_cached *kiln_cache_find(struct kiln_cache *cache, const struct kiln_block_id *block,
                                    uint64_t what, uint64_t age)
{
    struct kiln_cached *found = NULL;
    struct kiln_cache_entry *e;

    pthread_mutex_lock(&cache->lock);
    e = *find(cache, block, what);
    if (e && (e->age == age || e->age == 0)) {
        unlink_use(cache, e);
        link_newest(cache, e);
        found = e->object;
        kiln_cached_ref(found);
    }
    pthread_mutex_unlock(&cache->lock);
    atomic_fetch_add_explicit(found ? &cache->hits : &cache->misses, 1, memory_order_relaxed);
    return found;
}

/* Takes the bytes of an object from the pool, if need be by evicting. */
static bool charge(struct kiln_cache *cache, size_t bytes, bool all)
{
    if (cache->used > cache->limit - bytes &&
        !make_room(cache, cache->used - (cache->limit - bytes), all))
        return false;
    while (!kiln_pool_has(cache->pool, bytes) || kiln_pool_take(cache->pool, bytes) < 0) {
        size_t before = cache->used;

        make_room(cache, bytes, all);
        if (cache->used == before)
            return false;
    }
    return true;
}

bool kiln_cache_has(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what)
{
    bool has;

    pthread_mutex_lock(&cache->lock);
    has = *find(cache, block, what) != NULL;
    pthread_mutex_unlock(&cache->lock);
    return has;
}

static bool put(struct kiln_cache *cache, const struct kiln_cache_entry *made)
{
    struct kiln_cached *object = made->object;
    struct kiln_cache_entry *e, **at;

    if (object->bytes > cache->limit)
        return false;
    e = kiln_malloc(sizeof(*e));
    if (!e)
        return false;
    pthread_mutex_lock(&cache->lock);
    at = find(cache, &made->block, made->what);
    if (*at)
        drop(cache, at);
    if (charge(cache, object->bytes, !made->goes_first)) {
        kiln_cached_ref(object);
        *e = *made;
        at = chain_of(cache, &made->block);
        e->chain = *at;
        *at = e;
        link_newest(cache, e);
        cache->used += object->bytes;
        e = NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    kiln_free(e);
    return !e;
}

bool kiln_cache_put(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object)
{
    return put(cache, &(struct kiln_cache_entry){
                          .block = *block, .what = what, .age = age, .object = object});
}

bool kiln_cache_add(struct kiln_cache *cache, const struct kiln_block_id *block, uint64_t what,
                    uint64_t age, struct kiln_cached *object)
{
    return put(
        cache,
        &(struct kiln_cache_entry){
            .block = *block, .what = what, .age = age, .object = object, .goes_first = true});
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
    struct kiln_cache_entry **at;

    pthread_mutex_lock(&cache->lock);
    at = chain_of(cache, block);
    while (*at) {
        if (memcmp(&(*at)->block, block, sizeof(*block)) == 0)
            drop(cache, at);
        else
            at = &(*at)->chain;
    }
    pthread_mutex_unlock(&cache->lock);
}

void kiln_cache_done(struct kiln_cache *cache)
{
    if (!cache->pool)
        return;
    kiln_pool_on_short(cache->pool, NULL, NULL);
    while (cache->oldest)
        evict(cache, cache->oldest);
    pthread_mutex_destroy(&cache->lock);
}

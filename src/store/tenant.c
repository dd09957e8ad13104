/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/hash.h"
#include "store/store_int.h"

#define TENANTS_MAX   10000u
#define TENANTS_LEAST 1000u
#define TENANT_BYTES  ((size_t)16 << 10) /* of the pool for each: a small head, an open block */
#define HEAD_MAX      ((size_t)1 << 30) /* of one head: beyond what cuts and refusals ever let it be */

int kiln_tenant_new_head(struct kiln_store *store, struct kiln_head **ret_head)
{
    struct kiln_head_opts opts = {
        .seed = store->seed,
        .rule = store->opts.series_rule,
        .pool = store->pool,
        .bytes = &store->head_bytes,
        .memory_bytes = HEAD_MAX,
    };

    return kiln_head_new(&opts, ret_head);
}

/* The chain that a tenant of this name is in; under the store's lock, like what follows. */
static struct kiln_tenant **chain_of(struct kiln_store *store, struct kiln_str name)
{
    return &store->tenants_by_hash[kiln_hash(name.ptr, name.len) % KILN_TENANT_CHAINS];
}

static struct kiln_tenant *find(struct kiln_store *store, struct kiln_str name)
{
    struct kiln_tenant *tenant = *chain_of(store, name);

    while (tenant && !kiln_str_eq(kiln_str_of(tenant->name), name))
        tenant = tenant->beside;
    return tenant;
}

struct kiln_tenant *kiln_tenant_find(struct kiln_store *store, struct kiln_str name)
{
    struct kiln_tenant *tenant;

    pthread_mutex_lock(&store->lock);
    tenant = find(store, name);
    pthread_mutex_unlock(&store->lock);
    return tenant;
}

static int new_tenant(struct kiln_store *store, struct kiln_str name,
                      struct kiln_tenant **ret_tenant)
{
    struct kiln_tenant *tenant = kiln_calloc(1, sizeof(*tenant) + name.len + 1);
    struct kiln_book_opts book = {.io = store->io,
                                  .cache = &store->cache,
                                  .ages = &store->symbols_age,
                                  .tenant = name,
                                  .damaged = store->metrics.damaged_symbols,
                                  .files = store->metrics.symbol_files};
    int r;

    if (!tenant)
        return -ENOMEM;
    r = kiln_book_new(&book, &tenant->book);
    if (r == 0)
        r = kiln_census_new(tenant->book, &tenant->census);
    if (r == 0)
        r = kiln_tenant_new_head(store, &tenant->head);
    if (r < 0) {
        kiln_census_free(tenant->census);
        kiln_book_free(tenant->book);
        kiln_free(tenant);
        return r;
    }
    tenant->name = memcpy(tenant + 1, name.ptr, name.len);
    pthread_mutex_init(&tenant->lock, NULL);
    kiln_seen_init(&tenant->seen, store->pool, store->seed, atomic_load(&store->last_number));
    *ret_tenant = tenant;
    return 0;
}

/* The list is in the order of coming: a walk over it never misses one that was there. */
static void put_last(struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct kiln_tenant **chain = chain_of(store, kiln_str_of(tenant->name));

    if (store->last_tenant)
        store->last_tenant->next = tenant;
    else
        store->tenants = tenant;
    store->last_tenant = tenant;
    store->n_tenants++;
    tenant->beside = *chain;
    *chain = tenant;
}

int kiln_tenant_get(struct kiln_store *store, struct kiln_str name, struct kiln_tenant **ret_tenant)
{
    int r = 0;

    pthread_mutex_lock(&store->lock);
    *ret_tenant = find(store, name);
    if (!*ret_tenant) {
        r = store->n_tenants >= TENANTS_MAX ? KILN_E_LIMIT : new_tenant(store, name, ret_tenant);
        if (r == 0)
            put_last(store, *ret_tenant);
    }
    pthread_mutex_unlock(&store->lock);
    return r;
}

bool kiln_tenant_may_come(struct kiln_store *store, struct kiln_str name)
{
    size_t most = store->pool->limit / TENANT_BYTES;
    bool may;

    most = most < TENANTS_LEAST ? TENANTS_LEAST : most;
    pthread_mutex_lock(&store->lock);
    may = store->n_tenants < most || find(store, name);
    pthread_mutex_unlock(&store->lock);
    return may;
}

struct kiln_tenant *kiln_tenant_next(struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct kiln_tenant *next;

    pthread_mutex_lock(&store->lock);
    next = tenant ? tenant->next : store->tenants;
    pthread_mutex_unlock(&store->lock);
    return next;
}

int kiln_store_tenants(struct kiln_engine *engine,
                       int (*each)(void *context, struct kiln_str tenant), void *context)
{
    struct kiln_store *store = kiln_store_of(engine);
    int r = 0;

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t && r >= 0;
         t = kiln_tenant_next(store, t))
        r = each(context, kiln_str_of(t->name));
    return r < 0 ? r : 0;
}

void kiln_tenant_free(struct kiln_tenant *tenant)
{
    kiln_seen_done(&tenant->seen);
    for (uint32_t i = 0; i < tenant->n_blocks; i++)
        kiln_block_unref(tenant->blocks[i]);
    kiln_free(tenant->blocks);
    kiln_head_unref(tenant->head);
    kiln_head_unref(tenant->cutting);
    kiln_series_set_done(&tenant->known);
    kiln_census_free(tenant->census);
    kiln_book_free(tenant->book);
    pthread_mutex_destroy(&tenant->lock);
    kiln_free(tenant);
}

/* ---- the series of a tenant ---- */

static int know_block(struct kiln_series_set *known, const struct kiln_block *block)
{
    struct kiln_block_series series;
    int r = 0;

    for (uint32_t i = 0; r >= 0 && i < kiln_block_info(block)->n_series; i++) {
        r = kiln_block_series(block, i, &series);
        if (r == 0)
            r = kiln_series_set_add(known, series.key);
    }
    return r < 0 ? r : 0;
}

static int know_head(struct kiln_series_set *known, const struct kiln_head *head)
{
    int r = 0;

    for (uint32_t i = 0; r >= 0 && head && i < kiln_head_info(head)->n_series; i++)
        r = kiln_series_set_add(known, kiln_head_series(head, i)->key);
    return r < 0 ? r : 0;
}

static bool holds(const struct kiln_block_list *list, const struct kiln_block *block)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->blocks[i] == block)
            return true;
    }
    return false;
}

/* Adds the series of the heads and of blocks that are not in `done`, and makes that what is known;
 * under the lock. */
static int know_rest(struct kiln_tenant *tenant, const struct kiln_block_list *done,
                     struct kiln_series_set *known)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < tenant->n_blocks; i++)
        r = holds(done, tenant->blocks[i]) ? 0 : know_block(known, tenant->blocks[i]);
    if (r == 0)
        r = know_head(known, tenant->cutting);
    if (r == 0)
        r = know_head(known, tenant->head);
    if (r < 0) {
        kiln_series_set_done(known);
        return r;
    }
    kiln_series_set_done(&tenant->known);
    tenant->known = *known;
    return 0;
}

int kiln_tenant_count_series(struct kiln_tenant *tenant)
{
    struct kiln_series_set known = {0};
    int r = know_rest(tenant, &(struct kiln_block_list){0}, &known);

    tenant->known_stale &= r < 0;
    return r;
}

int kiln_tenant_recount_series(struct kiln_tenant *tenant)
{
    struct kiln_series_set known = {0};
    struct kiln_block_list list;
    int r;

    pthread_mutex_lock(&tenant->lock);
    r = kiln_catalog_list_locked(tenant, &list);
    tenant->known_stale &= r < 0; /* a block that goes from now on sets it again */
    pthread_mutex_unlock(&tenant->lock);
    if (r < 0)
        return r;
    for (uint32_t i = 0; r == 0 && i < list.n; i++)
        r = know_block(&known, list.blocks[i]);
    pthread_mutex_lock(&tenant->lock);
    if (r == 0)
        r = know_rest(tenant, &list, &known);
    else
        kiln_series_set_done(&known);
    tenant->known_stale |= r < 0;
    pthread_mutex_unlock(&tenant->lock);
    kiln_block_list_done(&list);
    return r;
}

bool kiln_tenant_has_block(struct kiln_tenant *tenant, const struct kiln_block *block)
{
    bool has = false;

    pthread_mutex_lock(&tenant->lock);
    for (uint32_t i = 0; i < tenant->n_blocks; i++)
        has |= tenant->blocks[i] == block;
    pthread_mutex_unlock(&tenant->lock);
    return has;
}

void kiln_store_forget_seen(struct kiln_store *store, struct kiln_tenant *tenant)
{
    uint64_t number = atomic_load(&store->last_number); /* 0 if nothing came since the start */

    pthread_mutex_lock(&tenant->lock);
    kiln_seen_clear(&tenant->seen, number < tenant->covered ? tenant->covered : number);
    pthread_mutex_unlock(&tenant->lock);
}

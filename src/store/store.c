/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing.  A store that is closed in peace has nothing in its log, and opens at once;
 * what could not be written then is in the log still.
 */
#include "store/store.h"

#include <errno.h>

#include "base/thread.h"
#include "store/store_int.h"

#define DAY_NS       (24 * 3600 * UINT64_C(1000000000))
#define POOL_DEFAULT ((size_t)256 << 20)
#define CACHE_SHARE  4u /* of the pool: what was read of blocks, if that has no pool of its own */
#define HEAD_SHARE   4u /* of the pool: heads that make a cut; and as much to write them */

static const struct kiln_engine_ops store_ops;

/* ---- settings ---- */

static void fill_in(uint64_t *value, uint64_t usual)
{
    if (*value == 0)
        *value = usual;
}

static int set_up(struct kiln_store *store, const struct kiln_store_opts *opts)
{
    struct kiln_store_opts *o = &store->opts;
    int r = 0;

    *o = *opts;
    fill_in(&o->retention.age_ns, 14 * DAY_NS);
    fill_in(&o->cut_raw_bytes, (uint64_t)128 << 20);
    fill_in(&o->cut_age_ns, 600 * UINT64_C(1000000000));
    fill_in(&o->lag_wait_ns, UINT64_C(250000000));
    fill_in(&o->lag_max_ns, UINT64_C(2000000000));
    fill_in(&o->min_free_bytes, (uint64_t)64 << 20);
    if (o->retention.disk_percent == 0)
        o->retention.disk_percent = 80;
    if (o->series_max == 0)
        o->series_max = 250000;
    if (!o->pool)
        kiln_pool_init(&store->own_pool, "store", POOL_DEFAULT, NULL);
    store->pool = o->pool ? o->pool : &store->own_pool;
    store->head_max = store->pool->limit / HEAD_SHARE;
    if (o->query_pool)
        kiln_cache_init(&store->cache, o->query_pool, o->query_pool->limit / 8 * 7);
    else
        kiln_cache_init(&store->cache, store->pool, store->pool->limit / CACHE_SHARE);
    if (!o->series_rule) {
        r = kiln_series_rule_new(NULL, 0, &store->own_rule);
        o->series_rule = store->own_rule;
    }
    return r;
}

static void init_locks(struct kiln_store *store)
{

    pthread_mutex_init(&store->lock, NULL);
    kiln_wide_shelf_init(&store->wide);
    kiln_aside_init(&store->aside);
    pthread_mutex_init(&store->keeping, NULL);
    pthread_mutex_init(&store->keep.merging, NULL);
    pthread_mutex_init(&store->probe.lock, NULL);
    pthread_mutex_init(&store->keep.salvaging, NULL);
    kiln_cond_init(&store->settled);
    pthread_cond_init(&store->work, NULL);
    kiln_cond_init(&store->keeper_work);
}

/* What is left when threads and log are closed. */
static void free_store(struct kiln_store *store)
{
    while (store->tenants) {
        struct kiln_tenant *next = store->tenants->next;

        kiln_tenant_free(store->tenants);
        store->tenants = next;
    }
    kiln_cache_done(&store->cache);
    kiln_wide_shelf_done(&store->wide);
    kiln_pool_give(store->pool, store->reserve);
    kiln_series_rule_free(store->own_rule);
    kiln_aside_done(&store->aside);
    pthread_mutex_destroy(&store->lock);
    pthread_mutex_destroy(&store->keeping);
    pthread_mutex_destroy(&store->keep.merging);
    pthread_mutex_destroy(&store->probe.lock);
    pthread_mutex_destroy(&store->keep.salvaging);
    pthread_cond_destroy(&store->settled);
    pthread_cond_destroy(&store->work);
    pthread_cond_destroy(&store->keeper_work);
    kiln_free(store);
}

/* ---- opening ---- */

static int make_folders(struct kiln_store *store, struct kiln_err *err)
{
    static const char *const folders[] = {"wal", "blocks", "symbols", "aside"};
    struct kiln_io *io = store->io;
    int r = 0;

    if (store->opts.read_only)
        return 0;
    for (size_t i = 0; r == 0 && i < KILN_ARRAY_LEN(folders); i++)
        r = io->mkdir(io, folders[i]);
    if (r == 0)
        r = io->sync_dir(io, ".");
    return r < 0 ? kiln_err_set(err, r, NULL, "the folders of the store cannot be made: %s",
                                kiln_err_text(r))
                 : 0;
}

static int start_threads(struct kiln_store *store, struct kiln_err *err)
{
    int r = 0;

    if (store->opts.read_only)
        return 0;
    if (!store->opts.no_background) {
        store->has_keeper = true; /* the applier looks at it */
        r = kiln_thread_start("kiln-keeper", kiln_keeper_main, store, &store->keeper);
        store->has_keeper = r == 0;
    }
    if (r == 0) {
        r = kiln_thread_start("kiln-applier", kiln_applier_main, store, &store->applier);
        store->has_applier = r == 0;
    }
    return r < 0 ? kiln_err_set(err, r, NULL, "no thread can be started: %s", kiln_err_text(r)) : 0;
}

static int load_aside(struct kiln_store *store, struct kiln_err *err)
{
    int r;

    kiln_aside_sweep(store);
    r = kiln_aside_load(store);
    return r < 0 ? kiln_err_set(err, r, "aside", "%s", kiln_err_text(r)) : 0;
}

static int open_all(struct kiln_store *store, struct kiln_err *err)
{
    int r = make_folders(store, err);

    if (r == 0)
        r = kiln_store_read_meta(store, err);
    if (r == 0)
        r = kiln_catalog_load(store, err);
    if (r == 0)
        r = load_aside(store, err);
    if (r == 0)
        r = kiln_store_replay(store, err);
    if (r == 0 && !store->opts.read_only)
        kiln_keep_clock_start(store);
    if (r == 0)
        r = start_threads(store, err);
    return r;
}

static void stop_threads(struct kiln_store *store)
{
    pthread_mutex_lock(&store->lock);
    store->stop_applier = store->stop_keeper = true;
    pthread_cond_broadcast(&store->work);
    pthread_cond_broadcast(&store->keeper_work);
    pthread_mutex_unlock(&store->lock);
    if (store->has_applier)
        pthread_join(store->applier, NULL);
    if (store->has_keeper)
        pthread_join(store->keeper, NULL);
    store->has_applier = store->has_keeper = false;
}

int kiln_store_open(const struct kiln_store_opts *opts, struct kiln_engine **ret_engine,
                    struct kiln_err *err)
{
    struct kiln_store *store = kiln_calloc(1, sizeof(*store));
    int r;

    if (!store)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    store->engine.ops = &store_ops;
    store->io = opts->io;
    store->queue_end = &store->queue;
    init_locks(store);
    r = set_up(store, opts);
    kiln_store_open_metrics(store);
    if (r == 0 && kiln_pool_take(store->pool, store->head_max) == 0)
        store->reserve = store->head_max;
    if (r == 0)
        r = open_all(store, err);
    if (r < 0) {
        stop_threads(store);
        if (store->wal)
            kiln_wal_close(store->wal);
        free_store(store);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    store->opts.opening = NULL;
    *ret_engine = &store->engine;
    return 0;
}

/* ---- closing ---- */

static void close_store(struct kiln_engine *engine)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_err err = {0};

    pthread_mutex_lock(&store->lock);
    store->closing = true;
    while (store->under_way)
        pthread_cond_wait(&store->settled, &store->lock);
    pthread_mutex_unlock(&store->lock);
    kiln_store_settle(engine);
    kiln_keep_stop(store);
    stop_threads(store);
    if (!store->opts.read_only && kiln_store_flush(engine, &err) < 0)
        kiln_log(store->opts.log, KILN_LOG_WARN, "the log is kept for the next start", "why", "%s",
                 err.text, NULL);
    kiln_wal_close(store->wal);
    free_store(store);
}

static const struct kiln_engine_ops store_ops = {
    .append = kiln_store_append,
    .has_room = kiln_store_has_room,
    .series = kiln_store_series,
    .select = kiln_store_select,
    .merge = kiln_store_merge,
    .timeline = kiln_store_timeline,
    .found = kiln_store_found,
    .moments = kiln_store_moments,
    .labels = kiln_store_labels,
    .put_symbols = kiln_store_put_symbols,
    .drop_symbols = kiln_store_drop_symbols,
    .unnamed = kiln_store_unnamed,
    .build_ids = kiln_store_build_ids,
    .tenants = kiln_store_tenants,
    .delete_service = kiln_store_delete_service,
    .stats = kiln_store_stats,
    .close = close_store,
};

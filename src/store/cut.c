/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cut: the head is frozen and an empty one takes its place; the frozen one is written as a block;
 * then, in one step for readers, the block comes and the frozen head goes; then the log may forget.
 *
 * A cut that fails keeps the frozen head and is tried again.  What it may have left under a final
 * name (its rename worked, the sync behind it did not) is looked for and removed before: it has the
 * level and the first log record of the frozen head.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "store/cut_isolate.h"

#define WRITE_MIN     ((size_t)16 << 20)
#define RETRY_SECONDS 5u
#define COUNT_NS      (60 * KILN_NS_PER_S)

void kiln_store_want_cut(struct kiln_store *store)
{
    if (!store->has_keeper || atomic_exchange(&store->cut_wanted, true))
        return;
    pthread_mutex_lock(&store->lock);
    pthread_cond_signal(&store->keeper_work);
    pthread_mutex_unlock(&store->lock);
}

void kiln_store_log_lost(struct kiln_store *store)
{
    atomic_store(&store->log_lost, true);
    kiln_store_want_cut(store);
}

/* ---- what a failed cut left ---- */

struct sweeping {
    struct kiln_store *store;
    struct kiln_tenant *tenant;
    uint64_t log_from;
};

/* 1 or 0, or why that cannot be told now.  One that is damaged the next start sets aside. */
static int is_left_over(struct sweeping *s, const char *path)
{
    struct kiln_block *block;
    const struct kiln_block_info *info;
    bool left_over, is_open = false;
    int r = kiln_block_open(s->store->io, path, &block, NULL);

    if (r < 0)
        return r > KILN_E_TRUNCATED && r != -ENOENT ? r : 0;
    info = kiln_block_info(block);
    for (uint32_t i = 0; i < s->tenant->n_blocks; i++) /* only who has `keeping` changes it */
        is_open |=
            memcmp(&kiln_block_info(s->tenant->blocks[i])->id, &info->id, sizeof(info->id)) == 0;
    left_over = !is_open && info->level == 0 && info->log_from == s->log_from;
    kiln_block_unref(block);
    return left_over;
}

static int sweep_file(void *context, const char *name)
{
    struct sweeping *s = context;
    char path[KILN_PATH_MAX];
    int r;

    if (!kiln_str_ends(kiln_str_of(name), KILN_STR(KILN_BLOCK_ENDING)))
        return 0;
    snprintf(path, sizeof(path), "blocks/%s/%.64s", s->tenant->name, name);
    r = is_left_over(s, path);
    return r > 0 ? s->store->io->unlink(s->store->io, path) : r;
}

static int sweep(struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct sweeping s = {
        .store = store, .tenant = tenant, .log_from = kiln_head_info(tenant->cutting)->log_from};
    char path[KILN_PATH_MAX];
    int r;

    snprintf(path, sizeof(path), "blocks/%s", tenant->name);
    r = store->io->list(store->io, path, sweep_file, &s);
    if (r == -ENOENT)
        return 0;
    return r < 0 ? r : store->io->sync_dir(store->io, path);
}

/* ---- one tenant ---- */

/* Freezes the head, unless one is frozen already.  1 if there is something to write. */
static int freeze(struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct kiln_head *fresh = NULL;
    bool has;
    int r;

    pthread_mutex_lock(&tenant->lock);
    has = tenant->cutting || kiln_head_info(tenant->head)->n_profiles;
    pthread_mutex_unlock(&tenant->lock);
    if (!has)
        return 0;
    r = kiln_tenant_new_head(store, &fresh);
    if (r < 0)
        return r;
    pthread_mutex_lock(&tenant->lock);
    if (!tenant->cutting) {
        tenant->cutting = tenant->head;
        tenant->head = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&tenant->lock);
    kiln_head_unref(fresh);
    return 1;
}

/* The block takes the place of the frozen head, if there is one. */
static int publish(struct kiln_store *store, struct kiln_tenant *tenant, struct kiln_block *block)
{
    struct kiln_catalog_change change = {.added = &block, .n_added = block != NULL};
    struct kiln_head *written;
    int r;

    pthread_mutex_lock(&tenant->lock);
    r = kiln_catalog_change_locked(tenant, &change);
    written = tenant->cutting;
    if (r == 0)
        tenant->cutting = NULL;
    pthread_mutex_unlock(&tenant->lock);
    if (r < 0)
        return r;
    atomic_fetch_sub(&store->raw_bytes, kiln_head_info(written)->raw_bytes);
    kiln_head_unref(written);
    atomic_store(&store->starved, false); /* the next batch tells */
    return 0;
}

/* *ret_block stays NULL where all of the head was set aside. */
static int write_block(struct kiln_store *store, struct kiln_tenant *tenant,
                       struct kiln_block **ret_block, struct kiln_err *err)
{
    size_t need = kiln_head_bytes(tenant->cutting) + WRITE_MIN;
    struct kiln_head_write_opts opts = {
        .io = store->io,
        .tenant = kiln_str_of(tenant->name),
        .memory_bytes = need > store->reserve ? need : store->reserve,
        .verify = store->opts.verify,
    };
    struct kiln_block_id id;
    int r;

    if (tenant->cut_failed) {
        r = sweep(store, tenant);
        if (r < 0)
            return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    r = kiln_head_write(tenant->cutting, &opts, &id, err);
    if (r == 0)
        r = 1;
    else if (kiln_block_is_damage(r))
        r = kiln_cut_isolate(store, tenant, &opts, &id, err);
    if (r > 0)
        r = kiln_catalog_open_block(store, tenant->name, &id, ret_block, err);
    return r < 0 ? r : 0;
}

/* Under `keeping`, with a frozen head. */
static int cut(struct kiln_store *store, struct kiln_tenant *tenant, struct kiln_err *err)
{
    struct kiln_block *block = NULL;
    uint64_t start = kiln_clock_mono_ns();
    int r = 0;

    if (kiln_head_info(tenant->cutting)->n_profiles)
        r = write_block(store, tenant, &block, err);
    if (r == 0) {
        r = publish(store, tenant, block);
        if (r < 0)
            kiln_block_unref(block);
    }
    tenant->cut_failed = r < 0;
    atomic_store(&store->cut_error, r);
    kiln_metric_observe(store->metrics.cut_seconds,
                        (double)(kiln_clock_mono_ns() - start) / (double)KILN_NS_PER_S);
    kiln_metric_add(r < 0 ? store->metrics.cut_failures : store->metrics.cuts, 1);
    return r;
}

int kiln_store_cut(struct kiln_store *store, struct kiln_tenant *tenant, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r;

    if (store->opts.read_only)
        return kiln_err_set(err, -EROFS, NULL, "the store is open for reading only");
    pthread_mutex_lock(&store->keeping);
    r = freeze(store, tenant);
    if (r > 0)
        r = cut(store, tenant, &why);
    pthread_mutex_unlock(&store->keeping);
    if (r < 0) {
        if (kiln_log_every(&store->cut_said, 60))
            kiln_log(store->opts.log, KILN_LOG_ERROR, "head could not be written as a block",
                     "tenant", "%s", tenant->name, "why", "%s", why.text, "where", "%s", why.where,
                     NULL);
        kiln_err_set(err, r, why.where, "%s", why.code ? why.text : kiln_err_text(r));
    }
    return r;
}

/* ---- the log ---- */

/* The first record that some head of a tenant still needs; UINT64_MAX: none. */
static uint64_t needed_by(struct kiln_tenant *tenant)
{
    uint64_t first = UINT64_MAX;

    pthread_mutex_lock(&tenant->lock);
    if (kiln_head_info(tenant->head)->n_profiles)
        first = kiln_head_info(tenant->head)->log_from;
    if (tenant->cutting && kiln_head_info(tenant->cutting)->n_profiles)
        first = kiln_head_info(tenant->cutting)->log_from;
    pthread_mutex_unlock(&tenant->lock);
    return first;
}

/* Lets the log forget what blocks hold. */
static int trim(struct kiln_store *store)
{
    uint64_t upto = atomic_load(&store->last_number); /* before any head is looked at */
    int r;

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t)) {
        uint64_t first = needed_by(t);

        if (first <= upto)
            upto = first - 1;
    }
    pthread_mutex_lock(&store->keeping);
    r = store->wal ? kiln_wal_trim(store->wal, upto) : 0;
    pthread_mutex_unlock(&store->keeping);
    return r;
}

static bool is_empty(struct kiln_tenant *tenant)
{
    bool empty;

    pthread_mutex_lock(&tenant->lock);
    empty = !tenant->cutting && !kiln_head_info(tenant->head)->n_profiles;
    pthread_mutex_unlock(&tenant->lock);
    return empty;
}

/* Cuts all heads that `due` says (NULL: all).  Goes on after a failure, and returns the first. */
static int cut_all(struct kiln_store *store, bool (*due)(struct kiln_store *, struct kiln_tenant *),
                   struct kiln_err *err)
{
    int first = 0;

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t)) {
        int r = 0;

        /* A frozen head first, and then the one behind it. */
        for (int i = 0; i < 2 && r == 0 && !is_empty(t) && (!due || due(store, t)); i++)
            r = kiln_store_cut(store, t, err);
        first = first < 0 ? first : r;
    }
    return first;
}

int kiln_store_flush(struct kiln_engine *engine, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    int r;

    if (store->opts.read_only)
        return kiln_err_set(err, -EROFS, NULL, "the store is open for reading only");
    kiln_store_settle(engine);
    r = cut_all(store, NULL, err);
    if (r == 0)
        r = trim(store);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    return r;
}

/* ---- the keeper ---- */

bool kiln_store_is_large(struct kiln_store *store)
{
    return atomic_load(&store->starved) || atomic_load(&store->head_bytes) >= store->head_max ||
           atomic_load(&store->raw_bytes) >= store->opts.cut_raw_bytes;
}

static bool is_due(struct kiln_store *store, struct kiln_tenant *tenant)
{
    bool large = kiln_store_is_large(store);
    const struct kiln_head_info *info;
    bool due;

    pthread_mutex_lock(&tenant->lock);
    info = kiln_head_info(tenant->head);
    due =
        large || tenant->cutting ||
        (info->n_profiles && kiln_clock_mono_ns() - info->since_mono_ns >= store->opts.cut_age_ns);
    pthread_mutex_unlock(&tenant->lock);
    return due;
}

/* Of a tenant that has everything in blocks: they tell what was seen, if somebody asks. */
static void forget_seen(struct kiln_store *store, struct kiln_tenant *tenant)
{
    uint64_t number = atomic_load(&store->last_number);

    pthread_mutex_lock(&tenant->lock);
    if (!tenant->cutting && !kiln_head_info(tenant->head)->n_profiles)
        kiln_seen_clear(&tenant->seen, number < tenant->covered ? tenant->covered : number);
    pthread_mutex_unlock(&tenant->lock);
}

/*
 * Where appends are refused for a whole second although no head is large, many small heads, and
 * what is remembered for tenants that came once, have taken the memory.
 */
static int relieve(struct kiln_store *store, uint64_t now, uint64_t *since_ns)
{
    int r;

    if (!atomic_load(&store->short_of_memory))
        *since_ns = 0;
    else if (*since_ns == 0)
        *since_ns = now;
    if (*since_ns == 0 || now - *since_ns < KILN_NS_PER_S)
        return 0;
    *since_ns = 0;
    r = cut_all(store, NULL, NULL);
    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t))
        forget_seen(store, t);
    return r;
}

/* What was read to find duplicates is let go when none came for a second. */
static void rest_seen(struct kiln_store *store)
{
    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t)) {
        pthread_mutex_lock(&t->lock);
        kiln_seen_rest(&t->seen);
        pthread_mutex_unlock(&t->lock);
    }
}

/* Series that went with their profiles make room for others; soon enough once a minute. */
static void count_series(struct kiln_store *store, uint64_t now)
{
    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t)) {
        bool stale;

        pthread_mutex_lock(&t->lock);
        stale = t->known_stale;
        pthread_mutex_unlock(&t->lock);
        if (!stale || (t->counted_mono_ns && now - t->counted_mono_ns < COUNT_NS))
            continue;
        t->counted_mono_ns = now;
        (void)!kiln_tenant_recount_series(t); /* what fails is tried again */
    }
}

/* Waits for work or a second; false when it is time to go. */
static bool wait_for_work(struct kiln_store *store)
{
    struct timespec until;
    bool stop;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
    pthread_mutex_lock(&store->lock);
    if (!store->stop_keeper && !atomic_load(&store->cut_wanted))
        pthread_cond_timedwait(&store->keeper_work, &store->lock, &until);
    stop = store->stop_keeper;
    pthread_mutex_unlock(&store->lock);
    return !stop;
}

void *kiln_keeper_main(void *context)
{
    struct kiln_store *store = context;
    uint64_t retry_ns = 0, short_ns = 0;

    while (wait_for_work(store)) {
        uint64_t now = kiln_clock_mono_ns();

        atomic_store(&store->cut_wanted, false);
        if (now >= retry_ns || !atomic_load(&store->cut_error)) {
            int r = cut_all(store, is_due, NULL);

            if (r == 0 && kiln_store_is_large(store))
                r = cut_all(store, NULL, NULL); /* many small ones */
            if (r == 0 && atomic_exchange(&store->log_lost, false))
                r = cut_all(store, NULL, NULL);
            if (r == 0)
                r = relieve(store, now, &short_ns);
            if (r == 0)
                r = trim(store);
            if (r < 0)
                retry_ns = now + RETRY_SECONDS * KILN_NS_PER_S;
        }
        rest_seen(store);
        count_series(store, now);
        kiln_store_set_gauges(store);
        kiln_keep_start(store);
    }
    return NULL;
}

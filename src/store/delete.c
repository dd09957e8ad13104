/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing a service: everything goes into blocks first, every block that has something of the
 * service is rewritten without it, and the log lets go of the records that brought it.  What comes
 * in meanwhile is newer than the wish, and stays.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "core/series.h"
#include "store/keep.h"
#include "store/store_int.h"

enum { LOG_TRIES = 64, DAMAGE_TRIES = 3 };

struct wish {
    struct kiln_str service;
    uint64_t profiles; /* that were removed */
};

static uint64_t cutoff_of(void *context, struct kiln_str service)
{
    const struct wish *wish = context;

    return kiln_str_eq(wish->service, service) ? UINT64_MAX : 0;
}

static bool has_service(const struct kiln_block *block, struct kiln_str service)
{
    uint64_t n = kiln_block_info(block)->n_series;

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_block_series s;
        struct kiln_series parsed;

        if (kiln_block_series(block, i, &s) == 0 && kiln_series_parse(s.key, &parsed) == 0 &&
            kiln_str_eq(parsed.service, service))
            return true;
    }
    return false;
}

static int rewrite_one(struct kiln_store *store, struct kiln_tenant *tenant,
                       struct kiln_block *block, struct wish *wish, struct kiln_err *err)
{
    struct kiln_rewrite w = {.tenant = tenant,
                             .blocks = &block,
                             .n = 1,
                             .level = kiln_block_info(block)->level,
                             .cutoff = cutoff_of,
                             .context = wish,
                             .whatever = true};
    int r = kiln_keep_rewrite(store, &w, err);

    wish->profiles += w.left_out;
    if (r == 0 && w.unlinked < 0)
        r = kiln_err_set(err, w.unlinked, NULL, "an old block cannot be removed: %s",
                         kiln_err_text(w.unlinked));
    return r;
}

/* KILN_E_CORRUPT: a damaged block has become another one, which may still have the service. */
static int rewrite_all(struct kiln_store *store, struct kiln_tenant *tenant, struct wish *wish,
                       struct kiln_err *err)
{
    struct kiln_block_list list;
    bool damaged = false;
    int r = kiln_catalog_list(tenant, &list);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    for (uint32_t i = 0; r == 0 && i < list.n; i++) {
        struct kiln_err why = {0};

        if (!has_service(list.blocks[i], wish->service))
            continue;
        r = rewrite_one(store, tenant, list.blocks[i], wish, &why);
        if (r < 0 && r != KILN_E_CORRUPT)
            kiln_err_set(err, r, why.where, "%s", why.text);
        damaged |= r == KILN_E_CORRUPT;
        r = r == KILN_E_CORRUPT ? 0 : r;
    }
    kiln_block_list_done(&list);
    return r == 0 && damaged ? KILN_E_CORRUPT : r;
}

/* ---- the log ---- */

static int note_oldest(void *context, const char *name)
{
    uint64_t *oldest = context, first;

    if (sscanf(name, "%" SCNu64, &first) == 1 && first < *oldest)
        *oldest = first;
    return 0;
}

/* Segments are named by their first record; the log is clean when none begins so early. */
static bool log_begins_after(struct kiln_store *store, uint64_t number)
{
    uint64_t oldest = UINT64_MAX;
    int r = store->io->list(store->io, "wal", note_oldest, &oldest);

    return (r == 0 || r == -ENOENT) && oldest > number;
}

static int clean_log(struct kiln_store *store, uint64_t number, struct kiln_err *err)
{
    for (int i = 0; i < LOG_TRIES && !log_begins_after(store, number); i++) {
        int r;

        kiln_wal_turn(store->wal);
        r = kiln_store_flush(&store->engine, err);
        if (r < 0)
            return r;
    }
    if (!log_begins_after(store, number))
        return kiln_err_set(err, -EAGAIN, NULL,
                            "the profiles are gone, but the log still holds their bytes: it is "
                            "being written to all the time; try again");
    return 0;
}

int kiln_store_delete_service(struct kiln_engine *engine, struct kiln_str tenant,
                              struct kiln_str service, uint64_t *ret_profiles, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_tenant *t = kiln_tenant_find(store, tenant);
    struct wish wish = {.service = service};
    uint64_t number;
    int r;

    if (store->opts.read_only)
        return kiln_err_set(err, -EROFS, NULL, "the store is open for reading only");
    if (!t) {
        *ret_profiles = 0;
        return 0;
    }
    number = kiln_wal_durable(store->wal);
    kiln_wal_turn(store->wal);
    r = kiln_store_flush(engine, err);
    if (r < 0)
        return r;
    pthread_mutex_lock(&store->keep.merging);
    r = KILN_E_CORRUPT;
    for (int i = 0; r == KILN_E_CORRUPT && i < DAMAGE_TRIES; i++)
        r = rewrite_all(store, t, &wish, err);
    pthread_mutex_unlock(&store->keep.merging);
    kiln_store_forget_seen(store, t);
    kiln_metric_add(kiln_keep_metrics_of(store)->deleted_profiles, (int64_t)wish.profiles);
    if (r == KILN_E_CORRUPT)
        kiln_err_set(err, r, NULL, "a damaged block cannot be rewritten now: try again");
    if (r == 0)
        r = clean_log(store, number, err);
    if (r == 0)
        *ret_profiles = wish.profiles;
    return r;
}

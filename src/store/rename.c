/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks whose names are worse than what came later (store/census.h) are rewritten with better
 * ones, one at a time: then their roll-ups hold again.  Answers do not wait for it.
 *
 * So that no block is rewritten again and again while names come bit by bit, nothing is done until
 * its names have not changed for a minute, nor within an hour of the making of the block.  Fresh
 * blocks wait for their merge, which gives them their names.
 */
#include <errno.h>

#include "base/clock.h"
#include "store/census.h"
#include "store/keep.h"
#include "store/store_int.h"

#define LOOKS_MAX 8u /* blocks of a round that nobody looked at before */

struct kiln_rename_limits kiln_rename_limits = {
    .rest_ns = 3600 * KILN_NS_PER_S,
    .quiet_ns = 60 * KILN_NS_PER_S,
};

struct round {
    struct kiln_store *store;
    bool all;
    uint32_t looks;
};

/* Whether it was left alone for long enough. */
static bool has_rested(const struct round *round, const struct kiln_block *block)
{
    uint64_t now = kiln_clock_unix_ns(), made = kiln_block_info(block)->made_ns;

    if (kiln_keep_is_skipped(round->store, block))
        return false;
    return round->all || (now >= made && now - made >= kiln_rename_limits.rest_ns);
}

/* Whether no names came for a while; of a block that was looked at. */
static bool is_quiet(const struct round *round, const struct kiln_census_look *look)
{
    return round->all ||
           kiln_clock_mono_ns() - kiln_census_changed(look) >= kiln_rename_limits.quiet_ns;
}

/* 1 or 0; a few blocks of each round are looked at for the first time. */
static int is_stale(struct round *round, const struct kiln_census_look *look)
{
    struct kiln_stale *stale = NULL;
    int r;

    if (!round->all && !kiln_census_is_looked_at(look) && round->looks++ >= LOOKS_MAX)
        return 0;
    r = kiln_census_stale(look, &stale, NULL);
    if (r == 0)
        r = stale != NULL;
    kiln_stale_unref(stale);
    return r < 0 ? 0 : r; /* who reads it finds out */
}

static int rewrite(struct kiln_store *store, const struct kiln_census_look *look,
                   struct kiln_err *err)
{
    struct kiln_block *block = look->block;
    const struct kiln_block_info *info = kiln_block_info(block);
    struct kiln_rewrite w = {.tenant = look->tenant,
                             .blocks = &block,
                             .n = 1,
                             .level = info->level,
                             .extra_bytes = info->dict_bytes};
    struct kiln_err why = {0};
    int r = kiln_keep_rewrite(store, &w, &why);

    if (r == -EBUSY || r == KILN_E_CORRUPT)
        return 0; /* there may be memory later; or it is gone */
    if (r == -ECANCELED)
        return kiln_err_set(err, r, why.where, "%s", why.text);
    if (r < 0) {
        kiln_keep_skip(store, block);
        kiln_log(store->opts.log, KILN_LOG_WARN, "a block could not be given its names", "tenant",
                 "%s", look->tenant->name, "where", "%s", why.where, "why", "%s", why.text, NULL);
        return 0;
    }
    kiln_metric_add(kiln_keep_metrics_of(store)->renamed, 1);
    kiln_log(store->opts.log, KILN_LOG_INFO, "block rewritten with names that came later", "tenant",
             "%s", look->tenant->name, "bytes_in", "%llu", (unsigned long long)info->bytes,
             "bytes_out", "%llu", (unsigned long long)w.bytes_out, NULL);
    return 1;
}

/* 1 if one was rewritten. */
static int rename_tenant(struct round *round, struct kiln_tenant *tenant, struct kiln_err *err)
{
    struct kiln_block_list list;
    int r;

    if (kiln_book_count(tenant->book) == 0)
        return 0;
    r = kiln_catalog_list(tenant, &list);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    for (uint32_t i = list.n; r == 0 && i > 0; i--) { /* the newest is asked about most */
        const struct kiln_census_look look = {
            .store = round->store, .tenant = tenant, .block = list.blocks[i - 1]};

        if (has_rested(round, look.block) && is_stale(round, &look) && is_quiet(round, &look))
            r = rewrite(round->store, &look, err);
    }
    kiln_block_list_done(&list);
    return r;
}

int kiln_keep_rename(struct kiln_store *store, bool all, struct kiln_err *err)
{
    struct round round = {.store = store, .all = all};
    int r = 0;

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t && r == 0;
         t = kiln_tenant_next(store, t))
        r = rename_tenant(&round, t, err);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention: what store/retain.h decides, done.  The blocks of all tenants are listed with what
 * they hold of each service; those that go are removed together, a tenant at a time, and those that
 * are worth it are rewritten one by one.  Then symbols go that nothing needs any more.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/series.h"
#include "store/keep.h"
#include "store/retain.h"
#include "store/store_int.h"

#define PARTS_BYTES_MAX ((size_t)64 << 20)

/* ---- what there is ---- */

struct tenant_list {
    struct kiln_tenant *tenant;
    struct kiln_block_list list;
};

struct everything {
    struct tenant_list *tenants;
    struct kiln_retain_block *blocks; /* tenant after tenant, in the order of their lists */
    uint32_t n_tenants, n_blocks;
    struct kiln_budget budget; /* of the parts */
};

/* The services of a block, each once: in the order of keys those of one stand together. */
static int list_parts(struct kiln_budget *budget, struct kiln_block *block,
                      struct kiln_retain_block *ret)
{
    uint64_t n = kiln_block_info(block)->n_series;
    uint32_t cap = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_retain_part *last = ret->n_parts ? &ret->parts[ret->n_parts - 1] : NULL;
        struct kiln_block_series s;
        struct kiln_series parsed;
        int r = kiln_block_series(block, i, &s);

        if (r == 0)
            r = kiln_series_parse(s.key, &parsed);
        if (r < 0)
            return r;
        if (last && kiln_str_eq(last->service, parsed.service)) {
            last->min_ns = s.min_ns < last->min_ns ? s.min_ns : last->min_ns;
            last->max_ns = s.max_ns > last->max_ns ? s.max_ns : last->max_ns;
            last->bytes += s.bytes;
            continue;
        }
        r = kiln_grow(budget, (void **)&ret->parts, &cap, (uint64_t)ret->n_parts + 1,
                      sizeof(*ret->parts), UINT32_MAX);
        if (r < 0)
            return r;
        ret->parts[ret->n_parts++] = (struct kiln_retain_part){
            .service = parsed.service, .min_ns = s.min_ns, .max_ns = s.max_ns, .bytes = s.bytes};
    }
    return 0;
}

static int list_tenants(struct kiln_store *store, struct everything *all)
{
    uint32_t n = 0;

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t))
        n++;
    all->tenants = kiln_calloc((size_t)n + 1, sizeof(*all->tenants));
    if (!all->tenants)
        return -ENOMEM;
    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t && all->n_tenants < n;
         t = kiln_tenant_next(store, t)) {
        struct tenant_list *to = &all->tenants[all->n_tenants];
        int r = kiln_catalog_list(t, &to->list);

        if (r < 0)
            return r;
        to->tenant = t;
        all->n_tenants++;
        all->n_blocks += to->list.n;
    }
    return 0;
}

static int list_blocks(struct everything *all)
{
    uint32_t at = 0;

    all->blocks = kiln_calloc((size_t)all->n_blocks + 1, sizeof(*all->blocks));
    if (!all->blocks)
        return -ENOMEM;
    for (uint32_t t = 0; t < all->n_tenants; t++) {
        const struct kiln_block_list *list = &all->tenants[t].list;

        for (uint32_t i = 0; i < list->n; i++, at++) {
            int r = list_parts(&all->budget, list->blocks[i], &all->blocks[at]);

            if (r < 0)
                return r;
            all->blocks[at].info = kiln_block_info(list->blocks[i]);
        }
    }
    return 0;
}

static void forget_everything(struct everything *all)
{
    for (uint32_t i = 0; all->blocks && i < all->n_blocks; i++)
        kiln_free(all->blocks[i].parts);
    for (uint32_t i = 0; i < all->n_tenants; i++)
        kiln_block_list_done(&all->tenants[i].list);
    kiln_free(all->blocks);
    kiln_free(all->tenants);
}

/* ---- doing it ---- */

static void note_drop(struct kiln_store *store, const struct kiln_retain_block *b)
{
    struct kiln_keep_metrics *m = kiln_keep_metrics_of(store);
    char tenant[KILN_TENANT_MAX + 1];

    snprintf(tenant, sizeof(tenant), "%.*s", KILN_STR_ARG(b->info->tenant));
    kiln_metric_add(m->retired_blocks[b->reason], 1);
    kiln_metric_add(m->retired_bytes[b->reason], (int64_t)b->info->bytes);
    kiln_log(store->opts.log, KILN_LOG_INFO, "block retired", "tenant", "%s", tenant, "reason",
             "%s", kiln_retain_reason_name(b->reason), "bytes", "%llu",
             (unsigned long long)b->info->bytes, "profiles", "%llu",
             (unsigned long long)b->info->n_profiles, NULL);
}

/* All blocks of a tenant that go, at once. */
static int drop_out(struct kiln_store *store, struct tenant_list *t,
                    const struct kiln_retain_block *fates, struct kiln_err *err)
{
    struct kiln_block **gone = kiln_calloc((size_t)t->list.n + 1, sizeof(*gone));
    uint32_t n = 0;
    int r = 0;

    if (!gone)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->list.n; i++) {
        if (fates[i].fate == KILN_RETAIN_DROP)
            gone[n++] = t->list.blocks[i];
    }
    if (n)
        r = kiln_keep_drop(store, t->tenant, gone, n, err);
    for (uint32_t i = 0; r == 0 && i < t->list.n; i++) {
        if (fates[i].fate == KILN_RETAIN_DROP)
            note_drop(store, &fates[i]);
    }
    kiln_free(gone);
    return r;
}

static uint64_t cutoff_of(void *context, struct kiln_str service)
{
    const struct kiln_retain_block *block = context;
    uint32_t low = 0, high = block->n_parts;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = kiln_str_cmp(block->parts[middle].service, service);

        if (order == 0)
            return block->parts[middle].cutoff_ns;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static int rewrite(struct kiln_store *store, struct kiln_tenant *tenant, struct kiln_block *block,
                   struct kiln_retain_block *fate, struct kiln_err *err)
{
    struct kiln_rewrite w = {.tenant = tenant,
                             .blocks = &block,
                             .n = 1,
                             .level = fate->info->level,
                             .cutoff = cutoff_of,
                             .context = fate,
                             .only_smaller = true};
    int r = kiln_keep_rewrite(store, &w, err);

    if (r < 0 || w.left_out == 0)
        return r;
    kiln_metric_add(kiln_keep_metrics_of(store)->rewritten, 1);
    kiln_log(store->opts.log, KILN_LOG_INFO, "block rewritten without what is out", "tenant", "%s",
             tenant->name, "profiles_out", "%llu", (unsigned long long)w.left_out, "profiles_left",
             "%llu", (unsigned long long)w.profiles, NULL);
    return 0;
}

/* One block that cannot be rewritten does not keep the others from it. */
static int carry_out(struct kiln_store *store, struct everything *all, struct kiln_err *err)
{
    struct kiln_retain_block *fates = all->blocks;
    int worst = 0;

    for (uint32_t t = 0; t < all->n_tenants; t++) {
        struct tenant_list *list = &all->tenants[t];
        int r = drop_out(store, list, fates, err);

        worst = r < 0 ? r : worst;
        for (uint32_t i = 0; i < list->list.n; i++) {
            if (fates[i].fate != KILN_RETAIN_REWRITE ||
                kiln_keep_is_skipped(store, list->list.blocks[i]) ||
                kiln_block_rests(list->list.blocks[i]))
                continue;
            r = rewrite(store, list->tenant, list->list.blocks[i], &fates[i], err);
            worst = r < 0 ? r : worst;
        }
        fates += list->list.n;
    }
    return worst;
}

int kiln_keep_retire(struct kiln_store *store, uint64_t now_ns, struct kiln_err *err)
{
    struct kiln_retain_opts opts = {.now_ns = now_ns,
                                    .no_age = kiln_keep_clock_ahead(store) != 0,
                                    .retention = store->opts.retention,
                                    .rules = store->opts.rules,
                                    .n_rules = store->opts.n_rules};
    struct everything all = {.budget.limit = PARTS_BYTES_MAX};
    int r = list_tenants(store, &all);

    if (store->io->space(store->io, &opts.disk_free, &opts.disk_total) < 0)
        opts.disk_free = opts.disk_total = 0;
    if (r == 0)
        r = list_blocks(&all);
    if (r == 0)
        r = kiln_retain_decide(&opts, all.blocks, all.n_blocks);
    if (r == 0)
        r = carry_out(store, &all, err);
    for (uint32_t i = 0; r == 0 && !opts.no_age && i < all.n_tenants; i++)
        r = kiln_census_retire(store, all.tenants[i].tenant, now_ns, err);
    forget_everything(&all);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

int kiln_store_retire(struct kiln_engine *engine, uint64_t now_ns, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    int r;

    pthread_mutex_lock(&store->keep.merging);
    r = kiln_keep_retire(store, now_ns, err);
    pthread_mutex_unlock(&store->keep.merging);
    return r;
}

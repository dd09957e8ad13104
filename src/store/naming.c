/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that come later, as the engine has them: put, dropped, and asked for.
 */
#include <errno.h>
#include <stdlib.h>

#include "core/frame.h"
#include "store/lacks.h"
#include "store/scan_int.h"

static int find_book(struct kiln_store *store, struct kiln_str name, bool make,
                     struct kiln_tenant **ret_tenant, struct kiln_err *err)
{
    int r = 0;

    if (!kiln_tenant_valid(name))
        return kiln_err_set(err, -EINVAL, NULL, "this is no name of a tenant");
    if (store->opts.read_only)
        return kiln_err_set(err, -EROFS, NULL, "the store is open for reading only");
    *ret_tenant = kiln_tenant_find(store, name);
    if (!*ret_tenant && make)
        r = kiln_tenant_may_come(store, name) ? kiln_tenant_get(store, name, ret_tenant)
                                              : KILN_E_LIMIT;
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

int kiln_store_put_symbols(struct kiln_engine *engine, struct kiln_str tenant,
                           struct kiln_str build_id, const struct kiln_symbol *symbols, uint32_t n,
                           struct kiln_err *err)
{
    struct kiln_tenant *t;
    int r = find_book(kiln_store_of(engine), tenant, true, &t, err);

    return r < 0 ? r : kiln_book_put(t->book, build_id, symbols, n, err);
}

int kiln_store_drop_symbols(struct kiln_engine *engine, struct kiln_str tenant,
                            struct kiln_str build_id, struct kiln_err *err)
{
    struct kiln_tenant *t;
    int r = find_book(kiln_store_of(engine), tenant, false, &t, err);

    return r < 0 || !t ? r : kiln_book_drop(t->book, build_id, err);
}

/* ---- what lacks names ---- */

static int add_head(struct kiln_lacks *lacks, const struct kiln_head *head)
{
    const struct kiln_head_info *info = kiln_head_info(head);
    struct kiln_lacks_source source = {.batch = kiln_rows_batch(kiln_head_rows(head)),
                                       .samples = info->n_samples,
                                       .newest_ns = info->max_ns};

    return kiln_lacks_add(lacks, &source);
}

static int add_block(struct kiln_lacks *lacks, struct kiln_store *store, struct kiln_block *block)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    struct kiln_lacks_source source = {.samples = info->n_samples, .newest_ns = info->max_ns};
    struct kiln_leash leash = {0};
    struct kiln_block_dict *dict;
    struct kiln_fund fund;
    int r;

    kiln_fund_init(&fund, &leash);
    r = kiln_block_dict(&store->cache, block, &fund, &dict, NULL);
    if (r == 0) {
        source.batch = dict->batch;
        r = kiln_lacks_add(lacks, &source);
        kiln_block_dict_unref(dict);
    }
    kiln_fund_done(&fund);
    return kiln_keep_is_damage(r) ? 0 : r;
}

static int add_all(struct kiln_lacks *lacks, struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct kiln_block_list list = {0};
    struct kiln_head *cutting;
    int r;

    pthread_mutex_lock(&tenant->lock);
    r = kiln_catalog_list_locked(tenant, &list);
    cutting = r == 0 && tenant->cutting ? kiln_head_ref(tenant->cutting) : NULL;
    if (r == 0)
        r = add_head(lacks, tenant->head);
    pthread_mutex_unlock(&tenant->lock);
    if (r == 0 && cutting)
        r = add_head(lacks, cutting);
    for (uint32_t i = 0; r == 0 && i < list.n; i++)
        r = add_block(lacks, store, list.blocks[i]);
    kiln_block_list_done(&list);
    kiln_head_unref(cutting);
    return r;
}

int kiln_store_unnamed(struct kiln_engine *engine, struct kiln_str tenant,
                       int (*each)(void *context, const struct kiln_unnamed *unnamed),
                       void *context, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_tenant *t = kiln_tenant_find(store, tenant);
    struct kiln_lacks *lacks = NULL;
    int r;

    if (!t)
        return 0;
    kiln_store_settle(engine);
    r = kiln_lacks_new(t->book, &lacks);
    if (r == 0)
        r = add_all(lacks, store, t);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    for (uint32_t i = 0; r == 0 && i < kiln_lacks_count(lacks); i++) {
        struct kiln_unnamed unnamed;

        r = kiln_lacks_get(lacks, i, &unnamed);
        if (r == 0 && unnamed.n)
            r = each(context, &unnamed);
    }
    kiln_lacks_free(lacks);
    return r;
}

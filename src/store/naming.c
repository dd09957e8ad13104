/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that come later, as the engine has them: put, dropped, and asked for.
 */
#include <errno.h>

#include "store/census.h"
#include "store/store_int.h"

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

    if (r < 0 || !t)
        return r;
    r = kiln_book_drop(t->book, build_id, err);
    kiln_census_restart(t->census, build_id);
    return r;
}

int kiln_store_unnamed(struct kiln_engine *engine, struct kiln_str tenant,
                       int (*each)(void *context, const struct kiln_unnamed *unnamed),
                       void *context, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_tenant *t = kiln_tenant_find(store, tenant);
    int r = t ? kiln_store_settle_within(store, NULL, err) : 0;

    return t && r == 0 ? kiln_census_unnamed(store, t, each, context, err) : r;
}

int kiln_store_build_ids(struct kiln_engine *engine, struct kiln_str tenant,
                         int (*each)(void *context, struct kiln_str build_id), void *context,
                         struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_tenant *t = kiln_tenant_find(store, tenant);
    int r = t ? kiln_store_settle_within(store, NULL, err) : 0;

    return t && r == 0 ? kiln_census_used(store, t, each, context, err) : r;
}

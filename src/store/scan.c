/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view is taken in one hold of each tenant's lock: the blocks, the frozen head, and how far the
 * growing one goes.  Whatever is cut or merged meanwhile, a row is seen once.  A query that waits
 * for memory holds no view, and takes a new one afterwards.
 */
#include <errno.h>

#include "store/digest.h"
#include "store/scan_int.h"

#define SCRATCH_MAX ((size_t)256 << 20)

/* ---- the view ---- */

static void note_aside(void *context, uint64_t min_ns, uint64_t max_ns)
{
    struct kiln_scan *scan = context;

    scan->n_damaged += kiln_scan_touches(scan, min_ns, max_ns);
}

static int take_view(struct kiln_scan *scan, struct kiln_scan_part *part,
                     struct kiln_tenant *tenant)
{
    const struct kiln_head_info *info;
    int r;

    part->tenant = tenant;
    kiln_aside_each(&scan->store->aside, tenant->name, note_aside, scan);
    pthread_mutex_lock(&tenant->lock);
    r = kiln_catalog_list_locked(tenant, &part->blocks);
    if (r == 0) {
        info = kiln_head_info(tenant->head);
        part->cutting = tenant->cutting ? kiln_head_ref(tenant->cutting) : NULL;
        part->head = kiln_head_ref(tenant->head);
        part->n_rows = kiln_head_rows(tenant->head)->n;
        part->n_series = info->n_series;
        part->n_stacks = kiln_rows_batch(kiln_head_rows(tenant->head))->dict.n_stacks;
        part->n_frames = kiln_rows_batch(kiln_head_rows(tenant->head))->dict.n_frames;
    }
    pthread_mutex_unlock(&tenant->lock);
    if (r == 0) {
        part->damaged = kiln_calloc((size_t)part->blocks.n + 1, sizeof(*part->damaged));
        r = part->damaged ? 0 : -ENOMEM;
    }
    return r;
}

static int take_views(struct kiln_scan *scan)
{
    const struct kiln_question *q = scan->q;
    int r = 0;

    scan->parts = kiln_calloc((size_t)q->n_tenants + 1, sizeof(*scan->parts));
    if (!scan->parts)
        return -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < q->n_tenants; i++) {
        struct kiln_tenant *tenant = kiln_tenant_find(scan->store, q->tenants[i]);
        bool twice = false;

        for (uint32_t k = 0; k < scan->n_parts; k++)
            twice |= scan->parts[k].tenant == tenant;
        if (tenant && !twice)
            r = take_view(scan, &scan->parts[scan->n_parts++], tenant);
    }
    return r;
}

static void drop_views(struct kiln_scan *scan)
{
    for (uint32_t i = 0; i < scan->n_parts; i++) {
        kiln_block_list_done(&scan->parts[i].blocks);
        kiln_head_unref(scan->parts[i].cutting);
        kiln_head_unref(scan->parts[i].head);
        kiln_free(scan->parts[i].damaged);
    }
    kiln_free(scan->parts);
    scan->parts = NULL;
    scan->n_parts = 0;
    scan->n_damaged = 0;
    scan->has_service = false; /* its text was theirs */
}

/*
 * A view keeps heads in memory that are written in the meantime.  A query that waits with a view
 * may wait for memory that it holds itself, and the store refuses profiles until then.
 */
int kiln_scan_wait(struct kiln_scan *scan, size_t bytes, size_t ahead, struct kiln_err *err)
{
    int r;

    drop_views(scan);
    r = kiln_fund_reserve(&scan->fund, bytes, ahead, err);
    if (r < 0)
        return r;
    r = take_views(scan);
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

int kiln_scan_open(struct kiln_store *store, const struct kiln_question *question, unsigned columns,
                   struct kiln_scan **ret_scan, struct kiln_err *err)
{
    struct kiln_scan *scan;
    int r;

    if (question->n_matchers > KILN_SCAN_MATCHERS_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "a question has at most %d conditions",
                            KILN_SCAN_MATCHERS_MAX);
    scan = kiln_calloc(1, sizeof(*scan));
    if (!scan)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    scan->store = store;
    scan->q = question;
    scan->columns = columns;
    kiln_fund_init(&scan->fund, question->leash);
    scan->budget.limit = SCRATCH_MAX;
    r = kiln_store_settle_within(store, question->leash, err);
    if (r == 0)
        r = kiln_scan_sort_ids(scan);
    if (r == 0)
        r = take_views(scan);
    if (r < 0) {
        kiln_scan_close(scan);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_scan = scan;
    return 0;
}

void kiln_scan_done(struct kiln_scan *scan)
{
    kiln_fund_done(&scan->fund);
    kiln_scan_forget(scan);
    for (size_t i = 0; i < KILN_ARRAY_LEN(scan->scratch); i++)
        kiln_column_done(&scan->scratch[i], &scan->budget);
    kiln_array_free(&scan->budget, (void **)&scan->intervals, &scan->cap_intervals,
                    sizeof(*scan->intervals));
}

void kiln_scan_close(struct kiln_scan *scan)
{
    if (!scan)
        return;
    if (scan->q->n_damaged && *scan->q->n_damaged < scan->n_damaged)
        *scan->q->n_damaged = scan->n_damaged;
    drop_views(scan);
    kiln_scan_done(scan);
    kiln_free(scan->traces.all);
    kiln_free(scan->spans.all);
    kiln_free(scan->profiles.all);
    kiln_free(scan);
}

bool kiln_scan_missed(const struct kiln_scan *scan)
{
    return scan->pairs_missing;
}

void kiln_scan_asks(struct kiln_scan *scan, const struct kiln_str *names, uint32_t n)
{
    scan->names = names;
    scan->n_names = n;
}

/* ---- going through it ---- */

/* A block that is damaged is left out from now on. */
static int scan_or_set_aside(struct kiln_scan *scan, struct kiln_scan_part *part, uint32_t i,
                             struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r = kiln_scan_digest(scan, part, part->blocks.blocks[i], &why);

    if (r > 0)
        r = kiln_scan_block(scan, part, part->blocks.blocks[i], &why);
    kiln_block_naming_free(scan->naming);
    scan->naming = NULL;
    if (kiln_block_is_damage(r)) {
        kiln_keep_damaged(scan->store, part->tenant, part->blocks.blocks[i], &why);
        part->damaged[i] = true;
        scan->n_damaged++;
        scan->again = true;
        return -EAGAIN;
    }
    if (r < 0)
        kiln_err_set(err, r, why.where, "%s", why.code ? why.text : kiln_err_text(r));
    return r;
}

static int scan_part(struct kiln_scan *scan, struct kiln_scan_part *part, struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < part->blocks.n; i++) {
        uint32_t at = scan->columns & KILN_SCAN_PAIRS ? part->blocks.n - 1 - i : i;

        if (!part->damaged[at])
            r = scan_or_set_aside(scan, part, at, err);
    }
    if (r == 0 && part->cutting)
        r = kiln_scan_head(scan, part, part->cutting, false, err);
    if (r == 0 && part->n_rows)
        r = kiln_scan_head(scan, part, part->head, true, err);
    return r;
}

int kiln_scan_run(struct kiln_scan *scan, const struct kiln_scan_visitor *visitor,
                  struct kiln_basis *ret_basis, struct kiln_err *err)
{
    int r;

    scan->visitor = visitor;
    for (;;) {
        r = kiln_leash_check(scan->q->leash);
        scan->again = false;
        scan->pairs_left = kiln_digest_pairs_bytes;
        scan->pairs_missing = false;
        scan->basis = (struct kiln_basis){.n_damaged = scan->n_damaged};
        scan->n_intervals = scan->first_interval = 0;
        for (uint32_t i = 0; r == 0 && i < scan->n_parts; i++)
            r = scan_part(scan, &scan->parts[i], err);
        if (!scan->again)
            break;
        if (visitor->restart)
            visitor->restart(visitor->context);
    }
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    scan->basis.covered_ns = kiln_scan_covered(scan);
    if (ret_basis)
        *ret_basis = scan->basis;
    return r;
}

int kiln_scan_forest(struct kiln_scan *scan, const struct kiln_scan_source *source,
                     const uint32_t *stacks, uint32_t n, struct kiln_forest **ret_forest,
                     struct kiln_err *err)
{
    struct kiln_forest_place place = {scan->store, source->tenant, &scan->fund, &scan->naming,
                                      scan->is_wide};
    struct kiln_head_stacks list = {source->tenant, source->head, source->live, stacks, n, NULL};

    if (source->block)
        return kiln_forest_of_block(&place, source->block, source->service, ret_forest, err);
    return kiln_forest_of_head(&place, &list, ret_forest);
}

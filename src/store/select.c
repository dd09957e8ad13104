/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A question is answered source by source: the head, the frozen head, each block that has a chosen
 * series in the time; each gives a batch, and these are merged, profiles kept apart.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "core/merge.h"
#include "store/store_int.h"

#define SERIES_BYTES_MAX ((size_t)256 << 20) /* of keys in one answer */
#define SERIES_MAX       (1u << 24)
#define TOO_MUCH         "this takes more memory than an answer may: choose less"

/* One consistent state of a tenant. */
struct view {
    struct kiln_block_list blocks;
    struct kiln_head *cutting;
};

static void view_done(struct view *view)
{
    kiln_block_list_done(&view->blocks);
    kiln_head_unref(view->cutting);
}

/* Under the tenant's lock. */
static int view_take(struct kiln_tenant *tenant, struct view *ret_view)
{
    int r = kiln_catalog_list_locked(tenant, &ret_view->blocks);

    if (r == 0)
        ret_view->cutting = tenant->cutting ? kiln_head_ref(tenant->cutting) : NULL;
    return r;
}

static bool touches(const struct kiln_selection *s, uint64_t min_ns, uint64_t max_ns)
{
    return (!s->start_ns && !s->end_ns) || (max_ns >= s->start_ns && min_ns < s->end_ns);
}

static bool wants(const struct kiln_selection *selection, struct kiln_str key)
{
    struct kiln_series series;

    return kiln_series_parse(key, &series) == 0 &&
           kiln_series_match(&series, selection->matchers, selection->n_matchers);
}

/* ---- select ---- */

/*
 * The batches of an answer.  All of them, and what is needed to read one more, stay within one
 * limit of memory: what is left of it is shared by the rows of a block (a quarter), the batch made
 * of them (a quarter), the reader (an eighth), and the dictionary it reads (what it may take is
 * known beforehand, and no more than a quarter).
 */
struct parts {
    struct kiln_limits limits; /* of what is left */
    struct kiln_budget budget;
    struct kiln_batch **all;
    uint32_t n, cap;
};

/* Takes a batch over, which may be NULL. */
static int parts_add(struct parts *parts, struct kiln_batch *batch)
{
    int r;

    if (!batch)
        return 0;
    r = kiln_grow(&parts->budget, (void **)&parts->all, &parts->cap, (uint64_t)parts->n + 1,
                  sizeof(*parts->all), UINT32_MAX);
    if (r == 0 && kiln_batch_bytes(batch) > parts->limits.memory_bytes)
        r = KILN_E_LIMIT;
    if (r < 0) {
        kiln_batch_unref(batch);
        return r;
    }
    parts->all[parts->n++] = batch;
    parts->limits.memory_bytes -= kiln_batch_bytes(batch);
    return 0;
}

/* A share of what is left. */
static struct kiln_limits share(const struct parts *parts, size_t part)
{
    struct kiln_limits limits = parts->limits;

    limits.memory_bytes /= part;
    return limits;
}

static void parts_done(struct parts *parts)
{
    for (uint32_t i = 0; i < parts->n; i++)
        kiln_batch_unref(parts->all[i]);
    kiln_array_free(&parts->budget, (void **)&parts->all, &parts->cap, sizeof(*parts->all));
}

static int select_head(const struct kiln_head *head, const struct kiln_selection *s,
                       struct parts *parts, struct kiln_err *err)
{
    struct kiln_head_choice choice = {s->start_ns, s->end_ns, s->matchers, s->n_matchers};
    const struct kiln_head_info *info = kiln_head_info(head);
    struct kiln_batch *batch;
    int r;

    if (!info->n_profiles || !touches(s, info->min_ns, info->max_ns))
        return 0;
    r = kiln_head_select(head, &choice, &parts->limits, &batch, err);
    return r < 0 ? r : parts_add(parts, batch);
}

/* Marks the chosen series of a block; how many, or an error. */
static int choose_series(const struct kiln_block *block, const struct kiln_selection *s,
                         uint64_t *bits)
{
    struct kiln_block_series series;
    int n = 0;

    for (uint32_t i = 0; i < kiln_block_info(block)->n_series; i++) {
        int r = kiln_block_series(block, i, &series);

        if (r < 0)
            return r;
        if (!touches(s, series.min_ns, series.max_ns) || !wants(s, series.key))
            continue;
        bits[i / 64] |= UINT64_C(1) << i % 64;
        n++;
    }
    return n;
}

static int read_block(struct kiln_block *block, const struct kiln_selection *s,
                      const uint64_t *bits, struct parts *parts, struct kiln_err *err)
{
    struct kiln_limits quarter = share(parts, 4);
    struct kiln_block_read_opts opts = {.series = bits,
                                        .start_ns = s->start_ns,
                                        .end_ns = s->end_ns,
                                        .memory_bytes = quarter.memory_bytes / 2};
    struct kiln_rows_choice choice = {.start_ns = s->start_ns, .end_ns = s->end_ns};
    struct kiln_block_reader *reader;
    struct kiln_batch *batch;
    struct kiln_rows rows;
    int r;

    if (kiln_block_info(block)->dict_bytes > quarter.memory_bytes / 2)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, TOO_MUCH);
    r = kiln_rows_init(&rows, &quarter);
    if (r < 0)
        return r;
    r = kiln_block_read(block, &opts, rows.b, &reader, err);
    if (r == 0) {
        r = kiln_rows_read(&rows, reader, NULL, err);
        kiln_block_reader_free(reader);
    }
    if (r == 0)
        r = kiln_rows_select(&rows, &choice, &quarter, &batch, err);
    kiln_rows_done(&rows);
    return r < 0 ? r : parts_add(parts, batch);
}

static int select_block(struct kiln_block *block, const struct kiln_selection *s,
                        struct parts *parts, struct kiln_err *err)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    uint64_t *bits;
    int r;

    if (!touches(s, info->min_ns, info->max_ns))
        return 0;
    bits = kiln_calloc((size_t)info->n_series / 64 + 1, sizeof(*bits));
    if (!bits)
        return -ENOMEM;
    r = choose_series(block, s, bits);
    if (r > 0)
        r = read_block(block, s, bits, parts, err);
    kiln_free(bits);
    return r;
}

static void note_damage(const struct kiln_selection *s)
{
    if (s->n_damaged)
        ++*s->n_damaged;
}

static void note_aside(void *context, uint64_t min_ns, uint64_t max_ns)
{
    const struct kiln_selection *s = context;

    if (touches(s, min_ns, max_ns))
        note_damage(s);
}

/* One that is damaged is set aside, and the answer is what the others have. */
static int select_or_set_aside(struct kiln_store *store, struct kiln_tenant *tenant,
                               struct kiln_block *block, const struct kiln_selection *s,
                               struct parts *parts, struct kiln_err *err)
{
    struct kiln_err why = {0};
    int r = select_block(block, s, parts, &why);

    if (kiln_block_is_damage(r)) {
        kiln_keep_damaged(store, tenant, block, &why);
        note_damage(s);
        return 0;
    }
    if (r < 0)
        kiln_err_set(err, r, why.where, "%s", why.code ? why.text : kiln_err_text(r));
    return r;
}

static int gather(struct kiln_store *store, struct kiln_tenant *tenant,
                  const struct kiln_selection *s, struct parts *parts, struct kiln_err *err)
{
    struct view view = {0};
    int r;

    kiln_aside_each(&store->aside, tenant->name, note_aside, (void *)s);
    pthread_mutex_lock(&tenant->lock);
    r = view_take(tenant, &view);
    if (r == 0)
        r = select_head(tenant->head, s, parts, err);
    pthread_mutex_unlock(&tenant->lock);
    if (r == 0 && view.cutting)
        r = select_head(view.cutting, s, parts, err);
    for (uint32_t i = 0; r == 0 && i < view.blocks.n; i++)
        r = select_or_set_aside(store, tenant, view.blocks.blocks[i], s, parts, err);
    view_done(&view);
    return r;
}

static int join(struct parts *parts, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_merge_opts opts = {.limits = parts->limits, .keep_profiles_apart = true};

    if (parts->n == 1) {
        *ret_batch = kiln_batch_ref(parts->all[0]);
        return 0;
    }
    return kiln_merge(parts->all, parts->n, &opts, ret_batch, err);
}

int kiln_store_select(struct kiln_engine *engine, const struct kiln_selection *selection,
                      size_t memory_bytes, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct parts parts = {.limits = kiln_limits_default, .budget = {.limit = SIZE_MAX}};
    struct kiln_tenant *tenant;
    struct kiln_batch *batch = NULL;
    size_t total, used;
    int r = kiln_store_settle_within(store, selection->leash, err);

    if (r < 0)
        return r;
    if (memory_bytes)
        parts.limits.memory_bytes = memory_bytes;
    total = parts.limits.memory_bytes;
    tenant = kiln_tenant_find(store, selection->tenant);
    if (tenant)
        r = gather(store, tenant, selection, &parts, err);
    if (r == 0)
        r = join(&parts, &batch, err);
    parts_done(&parts);
    if (r == 0) {
        used = batch ? kiln_batch_bytes(batch) : 0;
        r = kiln_book_apply(tenant ? tenant->book : NULL, used < total ? total - used : 0, &batch,
                            err);
        if (r < 0)
            kiln_batch_unref(batch);
    }
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    *ret_batch = batch;
    return 0;
}

/* ---- series ---- */

struct found {
    struct kiln_arena arena;
    struct kiln_budget budget;
    struct kiln_series_found *all;
    uint32_t n, cap;
};

static int found_add(struct found *found, const struct kiln_series_found *series)
{
    struct kiln_str key;
    int r;

    r = kiln_grow(&found->budget, (void **)&found->all, &found->cap, (uint64_t)found->n + 1,
                  sizeof(*found->all), SERIES_MAX);
    if (r < 0)
        return r;
    key = kiln_arena_copy(&found->arena, series->key);
    if (!key.ptr)
        return KILN_E_LIMIT;
    found->all[found->n] = *series;
    found->all[found->n++].key = key;
    return 0;
}

static int find_in_head(const struct kiln_head *head, const struct kiln_selection *s,
                        struct found *found)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && head && i < kiln_head_info(head)->n_series; i++) {
        const struct kiln_head_series *series = kiln_head_series(head, i);
        struct kiln_series_found one = {series->key, series->min_ns, series->max_ns,
                                        series->n_profiles, series->n_observations};

        if (series->n_profiles && touches(s, series->min_ns, series->max_ns) &&
            wants(s, series->key))
            r = found_add(found, &one);
    }
    return r;
}

static int find_in_block(const struct kiln_block *block, const struct kiln_selection *s,
                         struct found *found)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    int r = 0;

    if (!touches(s, info->min_ns, info->max_ns))
        return 0;
    for (uint32_t i = 0; r == 0 && i < info->n_series; i++) {
        struct kiln_block_series series;
        struct kiln_series_found one;

        r = kiln_block_series(block, i, &series);
        if (r < 0)
            return r;
        one = (struct kiln_series_found){series.key, series.min_ns, series.max_ns,
                                         series.n_profiles, series.n_observations};
        if (touches(s, series.min_ns, series.max_ns) && wants(s, series.key))
            r = found_add(found, &one);
    }
    return r;
}

static int by_key(const void *a, const void *b)
{
    const struct kiln_series_found *x = a, *y = b;

    return kiln_str_cmp(x->key, y->key);
}

/* Adds up what several sources say of one series, and tells. */
static int tell(struct found *found, int (*each)(void *, const struct kiln_series_found *),
                void *context)
{
    int r = 0;

    if (found->n)
        qsort(found->all, found->n, sizeof(*found->all), by_key);
    for (uint32_t i = 0, next; r == 0 && i < found->n; i = next) {
        struct kiln_series_found sum = found->all[i];

        for (next = i + 1; next < found->n && kiln_str_eq(found->all[next].key, sum.key); next++) {
            const struct kiln_series_found *more = &found->all[next];

            sum.min_ns = more->min_ns < sum.min_ns ? more->min_ns : sum.min_ns;
            sum.max_ns = more->max_ns > sum.max_ns ? more->max_ns : sum.max_ns;
            sum.n_profiles += more->n_profiles;
            sum.n_observations += more->n_observations;
        }
        r = each(context, &sum);
    }
    return r;
}

static int find_series(struct kiln_tenant *tenant, const struct kiln_selection *s,
                       struct found *found)
{
    struct view view = {0};
    int r;

    pthread_mutex_lock(&tenant->lock);
    r = view_take(tenant, &view);
    if (r == 0)
        r = find_in_head(tenant->head, s, found);
    pthread_mutex_unlock(&tenant->lock);
    if (r == 0)
        r = find_in_head(view.cutting, s, found);
    for (uint32_t i = 0; r == 0 && i < view.blocks.n; i++)
        r = find_in_block(view.blocks.blocks[i], s, found);
    view_done(&view);
    return r;
}

int kiln_store_series(struct kiln_engine *engine, const struct kiln_selection *selection,
                      int (*each)(void *context, const struct kiln_series_found *series),
                      void *context, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct found found = {.budget = {.limit = SERIES_BYTES_MAX}};
    struct kiln_tenant *tenant;
    int r = kiln_store_settle_within(store, selection->leash, err);

    if (r < 0)
        return r;
    kiln_arena_init(&found.arena, &found.budget);
    tenant = kiln_tenant_find(store, selection->tenant);
    if (tenant)
        r = find_series(tenant, selection, &found);
    if (tenant)
        kiln_aside_each(&store->aside, tenant->name, note_aside, (void *)selection);
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    else
        r = tell(&found, each, context);
    kiln_array_free(&found.budget, (void **)&found.all, &found.cap, sizeof(*found.all));
    kiln_arena_done(&found.arena);
    return r;
}

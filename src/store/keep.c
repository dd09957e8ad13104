/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking blocks out of the catalog is always the same steps:
 *
 *   1. what the blocks themselves replaced, and could not be removed then, is removed now: else
 *      nobody would remember, once they are gone, that it must not be read;
 *   2. the new block is committed; its footer names the old ones (a deletion instead makes sure,
 *      kiln_catalog_cover(), that the log does not bring back what goes);
 *   3. readers get the new list in one step; who has the old one still reads the old files;
 *   4. the old files are removed.
 *
 * A crash before 2 leaves a temporary file, one after it old files that the next start removes.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/compact.h"
#include "store/keep.h"
#include "store/plan.h"
#include "store/store_int.h"

#define BUSY_WAIT_NS  (100 * (long)KILN_NS_PER_MS)
#define BUSY_MAX      10u /* tries in a row for which there was no memory */
#define SKIP_NS       (3600 * KILN_NS_PER_S)
#define BEHIND_BLOCKS 200u /* due and not merged: beyond it ingest waits */
#define MEMORY_LEAST  (UINT64_C(16) << 20)

/* ---- metrics ---- */

static struct kiln_metric *counter(struct kiln_store *store, const char *name, const char *help)
{
    return kiln_metric_get(store->opts.metrics, KILN_COUNTER, name, help, NULL);
}

static void open_metrics(struct kiln_store *store, struct kiln_keep_metrics *m)
{
    static const char *const reasons[] = {"age", "bytes", "disk"};
    struct kiln_metrics *all = store->opts.metrics;

    m->merges = counter(store, "kiln_store_compactions_total", "Merges of blocks.");
    m->merge_failures =
        counter(store, "kiln_store_compaction_failures_total", "Merges that did not work out.");
    m->merge_seconds = kiln_metric_get(all, KILN_HISTOGRAM, "kiln_store_compaction_seconds",
                                       "How long a merge took.", NULL);
    m->merge_bytes_in =
        counter(store, "kiln_store_compaction_read_bytes_total", "Bytes of blocks that went in.");
    m->merge_bytes_out = counter(store, "kiln_store_compaction_written_bytes_total",
                                 "Bytes of blocks that came out.");
    m->backlog_blocks = kiln_metric_get(all, KILN_GAUGE, "kiln_store_compaction_backlog_blocks",
                                        "Blocks that are due to be merged.", NULL);
    m->backlog_bytes = kiln_metric_get(all, KILN_GAUGE, "kiln_store_compaction_backlog_bytes",
                                       "Bytes of blocks that are due to be merged.", NULL);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(reasons); i++) {
        m->retired_blocks[i] =
            kiln_metric_get(all, KILN_COUNTER, "kiln_store_retired_blocks_total",
                            "Blocks that retention removed.", KILN_LABELS("reason", reasons[i]));
        m->retired_bytes[i] = kiln_metric_get(all, KILN_COUNTER, "kiln_store_retired_bytes_total",
                                              "Bytes of blocks that retention removed.",
                                              KILN_LABELS("reason", reasons[i]));
    }
    m->rewritten = counter(store, "kiln_store_retention_rewrites_total",
                           "Blocks rewritten without what retention removed.");
    m->renamed = counter(store, "kiln_store_renamed_blocks_total",
                         "Blocks rewritten with names that came later.");
    m->paused =
        kiln_metric_get(all, KILN_GAUGE, "kiln_store_retention_paused",
                        "1 while nothing is removed by age: the clock is not trusted.", NULL);
    m->deleted_profiles = counter(store, "kiln_store_deleted_profiles_total",
                                  "Profiles removed because their service was deleted.");
}

struct kiln_keep_metrics *kiln_keep_metrics_of(struct kiln_store *store)
{
    struct kiln_keep *keep = &store->keep;

    pthread_mutex_lock(&keep->sleep);
    if (!keep->has_metrics)
        open_metrics(store, &keep->metrics);
    keep->has_metrics = true;
    pthread_mutex_unlock(&keep->sleep);
    return &keep->metrics;
}

/* ---- memory ---- */

/* What a merge takes from the pool: what it needs, or as much as there is of its share. */
static int take_memory(struct kiln_store *store, size_t need, size_t least, size_t *ret_taken)
{
    for (size_t bytes = need; bytes >= least; bytes = bytes / 2) {
        if (kiln_pool_take(store->pool, bytes) == 0) {
            *ret_taken = bytes;
            return 0;
        }
    }
    return -EBUSY;
}

/* ---- what a failed merge left ---- */

struct strays {
    struct kiln_store *store;
    struct kiln_tenant *tenant;
    const struct kiln_block_list *list;
};

static bool is_listed(const struct kiln_block_list *list, const struct kiln_block_id *id)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (memcmp(&kiln_block_info(list->blocks[i])->id, id, sizeof(*id)) == 0)
            return true;
    }
    return false;
}

/* A block that is not in the catalog and replaces one that is. */
static bool is_stray(const struct strays *s, const char *path)
{
    const struct kiln_block_info *info;
    struct kiln_block *block;
    bool stray = false;

    if (kiln_block_open(s->store->io, path, &block, NULL) < 0)
        return false; /* the next start sets it aside */
    info = kiln_block_info(block);
    for (uint32_t i = 0; i < info->n_replaces && !is_listed(s->list, &info->id); i++)
        stray = stray || is_listed(s->list, &info->replaces[i]);
    kiln_block_unref(block);
    return stray;
}

static int remove_stray(void *context, const char *name)
{
    const struct strays *s = context;
    char path[KILN_PATH_MAX];

    if (!kiln_str_ends(kiln_str_of(name), KILN_STR(KILN_BLOCK_ENDING)))
        return 0;
    snprintf(path, sizeof(path), "blocks/%s/%.64s", s->tenant->name, name);
    return is_stray(s, path) ? s->store->io->unlink(s->store->io, path) : 0;
}

/* ---- taking blocks out ---- */

static int sync_folder(struct kiln_store *store, struct kiln_tenant *tenant)
{
    char path[KILN_PATH_MAX];

    snprintf(path, sizeof(path), "blocks/%s", tenant->name);
    return store->io->sync_dir(store->io, path);
}

/*
 * A merge that failed late may have left its block under its final name.  Two blocks that replace
 * the same ones would both be read at the next start.
 */
static int remove_strays(struct kiln_store *store, struct kiln_tenant *tenant)
{
    struct kiln_block_list list;
    struct strays s = {store, tenant, &list};
    char path[KILN_PATH_MAX];
    int r = kiln_catalog_list(tenant, &list);

    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "blocks/%s", tenant->name);
    r = store->io->list(store->io, path, remove_stray, &s);
    kiln_block_list_done(&list);
    if (r == 0)
        r = sync_folder(store, tenant);
    tenant->merge_failed = r < 0;
    return r;
}

/* Step 1. */
static int sweep(struct kiln_store *store, struct kiln_tenant *tenant,
                 struct kiln_block *const *blocks, uint32_t n)
{
    char path[KILN_PATH_MAX];
    int r = tenant->merge_failed ? remove_strays(store, tenant) : 0;

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        const struct kiln_block_info *info = kiln_block_info(blocks[i]);

        for (uint32_t k = 0; r == 0 && k < info->n_replaces; k++) {
            kiln_block_path(tenant->name, &info->replaces[k], path);
            r = store->io->unlink(store->io, path);
            r = r == -ENOENT ? 0 : r;
        }
    }
    return r;
}

/*
 * Steps 3 and 4.  Files that cannot be removed now are swept later, or at the next start, if
 * something replaces them; *ret_unlinked says whether they could.
 */
static int swap(struct kiln_store *store, struct kiln_tenant *tenant,
                struct kiln_block *const *gone, uint32_t n_gone, struct kiln_block *added,
                int *ret_unlinked)
{
    int r;

    pthread_mutex_lock(&store->keeping);
    r = kiln_catalog_swap(tenant, gone, n_gone, &added, added != NULL);
    if (r == 0)
        *ret_unlinked = kiln_catalog_unlink(store, tenant, gone, n_gone);
    pthread_mutex_unlock(&store->keeping);
    if (r == 0 && *ret_unlinked < 0)
        kiln_log(store->opts.log, KILN_LOG_WARN, "old blocks could not be removed yet", "tenant",
                 "%s", tenant->name, "why", "%s", kiln_err_text(*ret_unlinked), NULL);
    return r;
}

int kiln_keep_drop(struct kiln_store *store, struct kiln_tenant *tenant,
                   struct kiln_block *const *blocks, uint32_t n, struct kiln_err *err)
{
    int unlinked = 0;
    int r = sweep(store, tenant, blocks, n);

    if (r == 0)
        r = sync_folder(store, tenant);
    if (r == 0) {
        pthread_mutex_lock(&store->keeping);
        r = kiln_catalog_cover(store, tenant);
        pthread_mutex_unlock(&store->keeping);
    }
    if (r == 0)
        r = swap(store, tenant, blocks, n, NULL, &unlinked);
    if (r == 0)
        r = unlinked;
    return r < 0 ? kiln_err_set(err, r, NULL, "blocks cannot be removed: %s", kiln_err_text(r)) : 0;
}

void kiln_keep_set_aside(struct kiln_store *store, struct kiln_tenant *tenant,
                         struct kiln_block *block, const struct kiln_err *why)
{
    struct kiln_aside_note note;
    char path[KILN_PATH_MAX];
    int r;

    kiln_aside_note_block(&note, block);
    note.why = why->text;
    pthread_mutex_lock(&store->keeping);
    kiln_block_path(tenant->name, &kiln_block_info(block)->id, path);
    (void)kiln_block_ref(block);
    r = kiln_catalog_swap(tenant, &block, 1, NULL, 0);
    if (r == 0) {
        kiln_store_set_aside(store, path, why);
        (void)!kiln_aside_put(store, &note); /* without it the file says the same */
    }
    kiln_block_unref(block);
    pthread_mutex_unlock(&store->keeping);
    kiln_store_forget_seen(store, tenant);
}

/* ---- skipping ---- */

void kiln_keep_skip(struct kiln_store *store, const struct kiln_block *block)
{
    struct kiln_keep *keep = &store->keep;

    keep->skips[keep->next_skip++ % KILN_KEEP_SKIPS] =
        (struct kiln_keep_skip){kiln_block_info(block)->id, kiln_clock_mono_ns() + SKIP_NS};
}

bool kiln_keep_is_skipped(const struct kiln_store *store, const struct kiln_block *block)
{
    const struct kiln_keep *keep = &store->keep;
    uint64_t now = kiln_clock_mono_ns();

    for (uint32_t i = 0; i < KILN_KEEP_SKIPS; i++) {
        if (keep->skips[i].until_ns > now &&
            memcmp(&keep->skips[i].id, &kiln_block_info(block)->id, sizeof(keep->skips[i].id)) == 0)
            return true;
    }
    return false;
}

/* ---- rewriting ---- */

struct job {
    struct kiln_store *store;
    struct kiln_rewrite *rewrite;
};

static uint64_t job_cutoff(void *context, struct kiln_str service)
{
    struct job *job = context;

    return job->rewrite->cutoff(job->rewrite->context, service);
}

static void job_lost(void *context, const struct kiln_block_lost *lost)
{
    struct job *job = context;

    job->rewrite->lost(job->rewrite->context, lost);
}

static bool job_stop(void *context)
{
    struct job *job = context;

    return atomic_load(&job->store->keep.stop);
}

/* The new block takes the place of the old ones, or nothing does where nothing was left. */
static int settle(struct kiln_store *store, struct kiln_rewrite *w,
                  const struct kiln_compact_result *result, struct kiln_err *err)
{
    struct kiln_block *added = NULL;
    int r;

    if (result->unchanged) {
        kiln_block_rest(w->blocks[0]);
        return 0;
    }
    if (result->empty)
        return kiln_keep_drop(store, w->tenant, w->blocks, w->n, err);
    r = kiln_catalog_open_block(store, w->tenant->name, &result->id, &added, err);
    if (r == 0) {
        w->bytes_out = kiln_block_info(added)->bytes;
        if (w->only_smaller)
            kiln_block_rest(added);
        r = swap(store, w->tenant, w->blocks, w->n, added, &w->unlinked);
    }
    if (r < 0) {
        kiln_block_unref(added);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    return 0;
}

static int compact(struct kiln_store *store, struct kiln_rewrite *w, size_t memory_bytes,
                   struct kiln_err *err)
{
    struct job job = {store, w};
    struct kiln_compact_opts opts = {
        .io = store->io,
        .tenant = kiln_str_of(w->tenant->name),
        .blocks = w->blocks,
        .n = w->n,
        .level = w->level,
        .book = w->tenant->book,
        .memory_bytes = memory_bytes,
        .cutoff = w->cutoff ? job_cutoff : NULL,
        .only_smaller = w->only_smaller,
        .stop = job_stop,
        .lost = w->lost ? job_lost : NULL,
        .context = &job,
        .verify = store->opts.verify,
    };
    struct kiln_compact_result result;
    uint32_t bad;
    int r = kiln_compact_blocks(&opts, &result, &bad, err);

    w->bad = NULL;

    if (r == 0) {
        w->profiles = result.profiles;
        w->left_out = result.left_out;
        r = settle(store, w, &result, err);
        w->tenant->merge_failed = r < 0;
        if (r < 0)
            (void)!remove_strays(store, w->tenant); /* or before the next one */
        return r;
    }
    w->tenant->merge_failed = true;
    if (w->lost)
        return bad == UINT32_MAX && kiln_block_is_damage(r) ? -ENOTRECOVERABLE : r;
    if (bad == UINT32_MAX && kiln_block_is_damage(r)) { /* what was written does not read back */
        for (uint32_t i = 0; i < w->n; i++)
            kiln_keep_skip(store, w->blocks[i]);
        return -ENOTRECOVERABLE;
    }
    if (bad == UINT32_MAX || r == -ENOMEM || r == KILN_E_LIMIT)
        return r;
    if (!kiln_block_is_damage(r)) {
        kiln_keep_skip(store, w->blocks[bad]);
        return r;
    }
    w->bad = w->blocks[bad];
    return KILN_E_CORRUPT;
}

int kiln_keep_rewrite(struct kiln_store *store, struct kiln_rewrite *w, struct kiln_err *err)
{
    uint64_t dict_bytes = w->extra_bytes;
    struct kiln_err why = {0};
    size_t need, taken;
    int r = sweep(store, w->tenant, w->blocks, w->n);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "old blocks cannot be removed: %s", kiln_err_text(r));
    for (uint32_t i = 0; i < w->n; i++)
        dict_bytes += kiln_block_info(w->blocks[i])->dict_bytes;
    need = kiln_compact_memory(dict_bytes, w->n);
    r = take_memory(store, need, w->whatever && need > MEMORY_LEAST ? MEMORY_LEAST : need, &taken);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "there is no memory for a merge now");
    r = compact(store, w, taken, &why);
    kiln_pool_give(store->pool, taken);
    if (w->bad)
        kiln_keep_rescue(store, w->tenant, w->bad, &why);
    return r < 0 ? kiln_err_set(err, r, why.where, "%s", why.text) : 0;
}

/* ---- merging ---- */

static void note_merge(struct kiln_store *store, const struct kiln_rewrite *w,
                       const struct kiln_plan *plan, uint64_t since_ns)
{
    struct kiln_keep_metrics *m = kiln_keep_metrics_of(store);
    double seconds = (double)(kiln_clock_mono_ns() - since_ns) / (double)KILN_NS_PER_S;

    kiln_metric_add(m->merges, 1);
    kiln_metric_observe(m->merge_seconds, seconds);
    kiln_metric_add(m->merge_bytes_in, (int64_t)plan->bytes);
    kiln_metric_add(m->merge_bytes_out, (int64_t)w->bytes_out);
    kiln_log(store->opts.log, KILN_LOG_INFO, "blocks merged", "tenant", "%s", w->tenant->name,
             "blocks", "%u", w->n, "level", "%u", w->level, "bytes_in", "%llu",
             (unsigned long long)plan->bytes, "bytes_out", "%llu", (unsigned long long)w->bytes_out,
             "seconds", "%g", seconds, NULL);
}

static void note_failure(struct kiln_store *store, struct kiln_tenant *tenant,
                         const struct kiln_err *err)
{
    kiln_metric_add(kiln_keep_metrics_of(store)->merge_failures, 1);
    kiln_log(store->opts.log, KILN_LOG_WARN, "blocks could not be merged", "tenant", "%s",
             tenant->name, "where", "%s", err->where, "why", "%s", err->text, NULL);
}

/* Fewer inputs, where more memory was needed than planned; the last two are then left alone for a
 * while. */
static int merge_within(struct kiln_store *store, struct kiln_rewrite *w, struct kiln_err *err)
{
    int r = kiln_keep_rewrite(store, w, err);

    while ((r == KILN_E_LIMIT || r == -ENOMEM) && w->n > 2) {
        *err = (struct kiln_err){0};
        w->n = w->n / 2 > 2 ? w->n / 2 : 2;
        r = kiln_keep_rewrite(store, w, err);
    }
    if (r == KILN_E_LIMIT) {
        kiln_keep_skip(store, w->blocks[0]);
        kiln_keep_skip(store, w->blocks[1]);
    }
    return r;
}

static int merge_plan(struct kiln_store *store, struct kiln_tenant *tenant,
                      const struct kiln_block_list *list, const struct kiln_plan *plan,
                      struct kiln_err *err)
{
    struct kiln_block *blocks[KILN_PLAN_FAN_MAX];
    struct kiln_rewrite w = {
        .tenant = tenant, .blocks = blocks, .n = plan->n, .level = plan->level};
    struct kiln_err why = {0};
    uint64_t since = kiln_clock_mono_ns();
    int r;

    for (uint32_t i = 0; i < plan->n; i++)
        blocks[i] = list->blocks[plan->blocks[i]];
    r = merge_within(store, &w, &why);
    store->keep.n_busy = r == -EBUSY ? store->keep.n_busy + 1 : 0;
    if (r == 0) {
        note_merge(store, &w, plan, since);
        return 1;
    }
    if (r == -EBUSY && !store->opts.no_background)
        return 0; /* heads have the memory: in a second they may not */
    if (r != -ECANCELED)
        note_failure(store, tenant, &why);
    if (r == KILN_E_CORRUPT || r == KILN_E_LIMIT || r == -ENOTRECOVERABLE)
        return 1; /* something has changed: look again */
    return kiln_err_set(err, r, why.where, "%s", why.text);
}

static int plan_tenant(struct kiln_store *store, struct kiln_block_list *list,
                       const struct kiln_plan_opts *opts, struct kiln_backlog *backlog,
                       struct kiln_plan *ret_plan)
{
    const struct kiln_block_info **infos = kiln_calloc((size_t)list->n + 1, sizeof(*infos));
    bool *skips = kiln_calloc((size_t)list->n + 1, sizeof(*skips));
    int r = -ENOMEM;

    if (infos && skips) {
        struct kiln_backlog more;

        for (uint32_t i = 0; i < list->n; i++) {
            infos[i] = kiln_block_info(list->blocks[i]);
            skips[i] = kiln_keep_is_skipped(store, list->blocks[i]);
        }
        more = kiln_plan_backlog(infos, list->n, opts);
        backlog->blocks += more.blocks;
        backlog->bytes += more.bytes;
        r = kiln_plan_next(infos, skips, list->n, opts, ret_plan);
    }
    kiln_free(infos);
    kiln_free(skips);
    return r;
}

static void note_backlog(struct kiln_store *store, const struct kiln_backlog *backlog)
{
    struct kiln_keep_metrics *m = kiln_keep_metrics_of(store);

    kiln_metric_set(m->backlog_blocks, (double)backlog->blocks);
    kiln_metric_set(m->backlog_bytes, (double)backlog->bytes);
    atomic_store(&store->keep.is_behind, backlog->blocks > BEHIND_BLOCKS);
}

/*
 * What a merge may take: three quarters of what is not kept for cuts.  In a server that much is
 * free only between two cuts: where it was not for a while, a quarter of all, which heads always
 * leave.
 */
static size_t memory_share(const struct kiln_store *store)
{
    size_t limit = store->pool->limit;

    if (store->keep.n_busy >= BUSY_MAX)
        return limit / 4;
    return (limit - store->reserve) / 4 * 3;
}

int kiln_keep_merge(struct kiln_store *store, uint64_t now_ns, bool all, struct kiln_err *err)
{
    struct kiln_plan_opts opts = {
        .now_ns = now_ns, .memory_bytes = kiln_compact_dict_bytes(memory_share(store)), .all = all};
    struct kiln_backlog backlog = {0};
    bool planned = false;
    int merged = 0;

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t && merged >= 0;
         t = kiln_tenant_next(store, t)) {
        struct kiln_block_list list;
        struct kiln_plan plan;
        int r = kiln_catalog_list(t, &list);

        if (r < 0)
            return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
        r = plan_tenant(store, &list, &opts, &backlog, &plan);
        planned |= r > 0;
        if (r > 0 && merged == 0)
            r = merged = merge_plan(store, t, &list, &plan, err);
        if (r < 0)
            merged = r;
        kiln_block_list_done(&list);
    }
    if (!planned && merged == 0)
        store->keep.n_busy = 0; /* nothing is left, or nothing so small: more is tried again */
    note_backlog(store, &backlog);
    return merged;
}

int kiln_store_compact(struct kiln_engine *engine, bool all, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    uint32_t waited = 0; /* rounds in a row */
    int r;

    do {
        bool busy;

        pthread_mutex_lock(&store->keep.merging);
        r = kiln_keep_merge(store, kiln_clock_unix_ns(), all, err);
        busy = store->keep.n_busy > 0;
        if (r == 0 && all && !busy)
            r = kiln_keep_rename(store, true, err);
        pthread_mutex_unlock(&store->keep.merging);
        waited = r == 0 ? waited + 1 : 0;
        if (r == 0 && all && busy && waited < 2 * BUSY_MAX) {
            nanosleep(&(struct timespec){.tv_nsec = BUSY_WAIT_NS}, NULL);
            r = 1;
        }
    } while (r > 0 && all && !atomic_load(&store->keep.stop));
    return r < 0 ? r : 0;
}

bool kiln_keep_is_behind(const struct kiln_store *store)
{
    return atomic_load(&store->keep.is_behind);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "store/store_int.h"

#define SETTLE_NS (5 * KILN_NS_PER_S) /* that statistics wait for the applier */

/* Times of nothing say nothing. */
static void widen(struct kiln_engine_stats *stats, uint64_t min_ns, uint64_t max_ns)
{
    if (stats->oldest_ns == 0 || min_ns < stats->oldest_ns)
        stats->oldest_ns = min_ns;
    if (max_ns > stats->newest_ns)
        stats->newest_ns = max_ns;
}

static void add_block(struct kiln_engine_stats *stats, const struct kiln_block_info *info)
{
    stats->blocks++;
    stats->block_bytes += info->bytes;
    stats->profiles += info->n_profiles;
    stats->samples += info->n_samples;
    stats->observations += info->n_observations;
    if (info->n_profiles)
        widen(stats, info->min_ns, kiln_block_newest(info, info->max_ns, kiln_clock_unix_ns()));
}

static void add_head(struct kiln_engine_stats *stats, const struct kiln_head *head)
{
    const struct kiln_head_info *info;

    if (!head)
        return;
    info = kiln_head_info(head);
    stats->head_bytes += kiln_head_bytes(head);
    stats->profiles += info->n_profiles;
    stats->samples += info->n_samples;
    stats->observations += info->n_observations;
    if (info->n_profiles)
        widen(stats, info->min_ns, info->max_ns);
}

static void count_aside(void *context, uint64_t min_ns, uint64_t max_ns)
{
    uint32_t *n = context;

    (void)min_ns;
    (void)max_ns;
    ++*n;
}

static void add_tenant(const struct kiln_store *store, struct kiln_engine_stats *stats,
                       struct kiln_tenant *tenant)
{
    pthread_mutex_lock(&tenant->lock);
    if (!tenant->known_stale || store->has_keeper || kiln_tenant_count_series(tenant) == 0)
        stats->series += tenant->known.n;
    for (uint32_t i = 0; i < tenant->n_blocks; i++)
        add_block(stats, kiln_block_info(tenant->blocks[i]));
    add_head(stats, tenant->head);
    add_head(stats, tenant->cutting);
    pthread_mutex_unlock(&tenant->lock);
}

void kiln_store_stats(struct kiln_engine *engine, struct kiln_str name,
                      struct kiln_engine_stats *ret_stats)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_engine_stats stats = {.set_aside = atomic_load(&store->set_aside),
                                      .clock_ahead_ns = kiln_keep_clock_ahead(store)};
    const struct kiln_leash patience = {.deadline_mono_ns = kiln_clock_mono_ns() + SETTLE_NS};

    /* They are as of now where the applier is behind. */
    (void)!kiln_store_settle_within(store, &patience, NULL);
    stats.log_bytes = store->wal ? kiln_wal_bytes(store->wal) : 0;
    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t)) {
        if (name.len && !kiln_str_eq(kiln_str_of(t->name), name))
            continue;
        add_tenant(store, &stats, t);
        kiln_aside_each(&store->aside, t->name, count_aside, &stats.n_damaged);
    }
    *ret_stats = stats;
}

/* ---- metrics ---- */

static struct kiln_metric *rejected(struct kiln_metrics *all, const char *reason)
{
    return kiln_metric_get(all, KILN_COUNTER, "kiln_store_rejected_total",
                           "Profiles (too_old) and appends (the rest) that were not taken.",
                           KILN_LABELS("reason", reason));
}

void kiln_store_set_gauges(struct kiln_store *store)
{
    const struct kiln_store_metrics *m = &store->metrics;
    struct kiln_engine_stats stats = {0};
    struct kiln_store_lag lag = kiln_store_lag(store);

    for (struct kiln_tenant *t = kiln_tenant_next(store, NULL); t; t = kiln_tenant_next(store, t))
        add_tenant(store, &stats, t);
    kiln_metric_set(m->head_bytes, (double)stats.head_bytes);
    kiln_metric_set(m->log_bytes, store->wal ? (double)kiln_wal_bytes(store->wal) : 0);
    kiln_metric_set(m->blocks, (double)stats.blocks);
    kiln_metric_set(m->block_bytes, (double)stats.block_bytes);
    kiln_metric_set(m->series, (double)stats.series);
    kiln_metric_set(m->lag, (double)lag.n);
    kiln_metric_set(m->lag_seconds, (double)lag.age_ns / (double)KILN_NS_PER_S);
}

void kiln_store_open_metrics(struct kiln_store *store)
{
    struct kiln_metrics *all = store->opts.metrics;
    struct kiln_store_metrics *m = &store->metrics;

    m->appends =
        kiln_metric_counter(all, "kiln_store_appends_total", "Batches that were made durable.");
    m->profiles =
        kiln_metric_counter(all, "kiln_store_profiles_total", "Profiles that were put into heads.");
    m->samples =
        kiln_metric_counter(all, "kiln_store_samples_total", "Samples that were put into heads.");
    m->duplicates = kiln_metric_counter(all, "kiln_store_duplicates_total",
                                        "Profiles that were there already and not kept again.");
    m->time_set = kiln_metric_counter(
        all, "kiln_store_time_set_total",
        "Profiles without a time, or ahead of it, that got the time they came.");
    m->clamped = kiln_metric_counter(
        all, "kiln_store_clamped_timestamps_total",
        "Timestamps of samples outside the range of their profile, clamped to it.");
    m->overflow =
        kiln_metric_counter(all, "kiln_store_series_overflow_total",
                            "Profiles past the series limit, kept in the overflow series.");
    m->unchecked =
        kiln_metric_counter(all, "kiln_store_unchecked_total",
                            "Profiles for which it could not be found out if they were known.");
    m->undecodable = kiln_metric_counter(all, "kiln_store_unapplied_total",
                                         "Records of the log that could not be applied.");
    m->set_aside = kiln_metric_counter(all, "kiln_store_set_aside_total",
                                       "Damaged files that were set aside.");
    m->too_old = rejected(all, "too_old");
    m->refused_memory = rejected(all, "memory");
    m->refused_lag = rejected(all, "lag");
    m->refused_space = rejected(all, "space");
    m->refused_io = rejected(all, "io");
    m->cuts =
        kiln_metric_counter(all, "kiln_store_cuts_total", "Heads that were written as blocks.");
    m->cut_failures = kiln_metric_counter(all, "kiln_store_cut_failures_total",
                                          "Heads that could not be written, and are tried again.");
    m->cut_seconds = kiln_metric_get(all, KILN_HISTOGRAM, "kiln_store_cut_seconds",
                                     "How long it took to write a head as a block.", NULL);
    m->head_bytes = kiln_metric_gauge(all, "kiln_store_head_bytes", "Memory of all heads.");
    m->log_bytes = kiln_metric_gauge(all, "kiln_store_log_bytes", "Bytes of the write-ahead log.");
    m->blocks = kiln_metric_gauge(all, "kiln_store_blocks", "Blocks on disk.");
    m->block_bytes = kiln_metric_gauge(all, "kiln_store_block_bytes", "Bytes of blocks on disk.");
    m->series = kiln_metric_gauge(all, "kiln_store_series", "Series of all tenants.");
    m->symbol_files =
        kiln_metric_gauge(all, "kiln_store_symbol_files", "Build ids that were given names later.");
    m->damaged_symbols =
        kiln_metric_get(all, KILN_COUNTER, "kiln_store_damaged_total",
                        "Damaged things that were passed over.", KILN_LABELS("what", "symbols"));
    m->lag = kiln_metric_gauge(all, "kiln_store_applier_lag",
                               "Durable batches that are not in a head yet.");
    m->lag_seconds = kiln_metric_gauge(all, "kiln_store_applier_lag_seconds",
                                       "Age of the oldest durable batch that is not in a head.");
}

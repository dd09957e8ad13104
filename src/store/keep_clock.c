/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention by age stops while the clock is not trusted (store/clock_watch.h), and the log, the
 * metrics and the status say so.  Limits of bytes and of the disk hold.
 */
#include "base/clock.h"
#include "store/keep.h"
#include "store/store_int.h"

void kiln_keep_clock_start(struct kiln_store *store)
{
    struct kiln_engine_stats stats;

    store->engine.ops->stats(&store->engine, KILN_STR_NONE, &stats);
    kiln_clock_watch_start(&store->keep.clock, kiln_clock_unix_ns(), kiln_clock_boot_ns(),
                           stats.newest_ns);
    kiln_keep_clock_look(store);
}

static void say(struct kiln_store *store, uint64_t ahead_ns)
{
    if (ahead_ns)
        kiln_log(store->opts.log, KILN_LOG_WARN,
                 "retention by age stops until the clock has been steady for a day: it jumped "
                 "ahead, or is far ahead of the newest data",
                 "clock_ahead_hours", "%llu",
                 (unsigned long long)(ahead_ns / (3600 * KILN_NS_PER_S)), NULL);
    else
        kiln_log(store->opts.log, KILN_LOG_INFO, "retention by age goes on: the clock is trusted",
                 NULL);
}

void kiln_keep_clock_look(struct kiln_store *store)
{
    struct kiln_keep *keep = &store->keep;
    uint64_t ahead =
        kiln_clock_watch_look(&keep->clock, kiln_clock_unix_ns(), kiln_clock_boot_ns());

    if ((ahead != 0) != (atomic_load(&keep->clock_ahead_ns) != 0))
        say(store, ahead);
    atomic_store(&keep->clock_ahead_ns, ahead);
    kiln_metric_set(kiln_keep_metrics_of(store)->paused, ahead != 0);
}

uint64_t kiln_keep_clock_ahead(const struct kiln_store *store)
{
    return atomic_load(&store->keep.clock_ahead_ns);
}

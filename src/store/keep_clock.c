/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention by age stops while the clock is not trusted (store/clock_watch.h), and the log, the
 * metrics and the status say so.  Limits of bytes and of the disk hold.
 *
 * Meanwhile the file `clock` has the Unix time that was expected, in nanoseconds and decimal
 * digits.  After a restart it counts instead of the newest data, which may have come by the same
 * wrong clock.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "store/keep.h"
#include "store/store_int.h"

#define PATH "clock"
enum { DIGITS_MAX = 20 };

/* 0: nothing was noted. */
static uint64_t noted_ns(struct kiln_store *store)
{
    char digits[DIGITS_MAX + 1] = "";
    void *data;
    size_t n;

    if (kiln_io_get(store->io, PATH, DIGITS_MAX, &data, &n) < 0)
        return 0;
    memcpy(digits, data, n);
    kiln_free(data);
    return strtoull(digits, NULL, 10);
}

/* Without the right to write it is not noted, and what was noted stays. */
static void note(struct kiln_store *store, uint64_t ahead_ns)
{
    char digits[DIGITS_MAX + 1];
    int n = snprintf(digits, sizeof(digits), "%llu",
                     (unsigned long long)(kiln_clock_unix_ns() - ahead_ns));

    if (ahead_ns)
        (void)!kiln_io_put(store->io, PATH, digits, (size_t)n);
    else
        (void)!store->io->unlink(store->io, PATH);
}

void kiln_keep_clock_start(struct kiln_store *store)
{
    uint64_t noted = noted_ns(store);
    struct kiln_engine_stats stats;

    store->engine.ops->stats(&store->engine, KILN_STR_NONE, &stats);
    if (noted && noted < stats.newest_ns)
        stats.newest_ns = noted;
    kiln_clock_watch_start(&store->keep.clock, kiln_clock_unix_ns(), kiln_clock_boot_ns(),
                           stats.newest_ns);
    kiln_keep_clock_look(store);
    if (noted && !kiln_keep_clock_ahead(store))
        note(store, 0);
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

    if ((ahead != 0) != (atomic_load(&keep->clock_ahead_ns) != 0)) {
        say(store, ahead);
        note(store, ahead);
    }
    atomic_store(&keep->clock_ahead_ns, ahead);
    kiln_metric_set(kiln_keep_metrics_of(store)->paused, ahead != 0);
}

uint64_t kiln_keep_clock_ahead(const struct kiln_store *store)
{
    return atomic_load(&store->keep.clock_ahead_ns);
}

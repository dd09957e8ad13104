/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metric - counters, gauges and histograms, and their Prometheus text.
 *
 * A metric is asked for once, by name and labels, and kept; adding to it is one atomic operation.
 * Asking never fails: without memory, or past 10,000 metrics, one shared metric that is not shown
 * takes the blows (and kiln_metrics_overflow_total says so).
 *
 * Names follow Prometheus: kiln_<part>_<what>_<unit>, counters end in _total.
 * Threads: safe from anywhere.
 */
#ifndef KILN_BASE_METRIC_H
#define KILN_BASE_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"

enum kiln_metric_kind {
    KILN_COUNTER,
    KILN_GAUGE,
    KILN_HISTOGRAM,       /* of seconds, in buckets of powers of two from 1/16 ms to 65 s */
    KILN_HISTOGRAM_ITEMS, /* of counts from 10 to 100,000, in the Collector's buckets */
    KILN_HISTOGRAM_BYTES, /* in powers of two from 128 to 16 Mi */
};

struct kiln_metric;
struct kiln_metrics;

KILN_CHECK int kiln_metrics_new(struct kiln_metrics **ret_metrics);
void kiln_metrics_free(struct kiln_metrics *metrics);

/*
 * The metric of this name and these labels, made if it is not there yet.  `labels` are names and
 * values in turn, ended by NULL: KILN_LABELS("reason", "too_old").  `help` is one sentence.
 * `metrics` may be NULL, for callers that are not measured.
 */
struct kiln_metric *kiln_metric_get(struct kiln_metrics *metrics, enum kiln_metric_kind kind,
                                    const char *name, const char *help, const char *const *labels);
#define KILN_LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/*
 * The same for who wants to know more than most: where that is not asked for, before, the metric is
 * neither shown nor kept, and what it takes to know it need not be found out.
 */
struct kiln_metric *kiln_metric_detail(struct kiln_metrics *metrics, enum kiln_metric_kind kind,
                                       const char *name, const char *help,
                                       const char *const *labels);
void kiln_metrics_want_details(struct kiln_metrics *metrics, bool wanted);
bool kiln_metric_is_kept(const struct kiln_metric *metric);

/* The same without labels. */
static inline struct kiln_metric *kiln_metric_counter(struct kiln_metrics *metrics,
                                                      const char *name, const char *help)
{
    return kiln_metric_get(metrics, KILN_COUNTER, name, help, NULL);
}
static inline struct kiln_metric *kiln_metric_gauge(struct kiln_metrics *metrics, const char *name,
                                                    const char *help)
{
    return kiln_metric_get(metrics, KILN_GAUGE, name, help, NULL);
}

void kiln_metric_add(struct kiln_metric *metric, int64_t n); /* counter, gauge */
/* Several that add up to something, changed in one step: who has them formatted sees all or none.
 */
struct kiln_metric_change {
    struct kiln_metric *metric;
    int64_t n;
};
void kiln_metrics_change(struct kiln_metrics *metrics, const struct kiln_metric_change *changes,
                         uint32_t n);
/* Gauge; also a counter that is kept elsewhere and only read here, on collecting. */
void kiln_metric_set(struct kiln_metric *metric, double value);
/* Histogram. */
void kiln_metric_observe(struct kiln_metric *metric, double value);
double kiln_metric_value(const struct kiln_metric *metric); /* of a histogram: its count */

/* Called before every kiln_metrics_format(), to set gauges that are read from somewhere. */
void kiln_metrics_on_collect(struct kiln_metrics *metrics, void (*collect)(void *context),
                             void *context);

/* Brings them up to date: calls all of those. */
void kiln_metrics_collect(struct kiln_metrics *metrics);

/* One as it stands; `labels` as they are shown: reason="too_old",receiver="otlp". */
struct kiln_metric_shown {
    struct kiln_str name, labels;
    enum kiln_metric_kind kind;
    double value; /* of a histogram: its count */
};
/* Visits all of them, in no order.  `each` must not ask for metrics.  `metrics` may be NULL. */
void kiln_metrics_each(struct kiln_metrics *metrics,
                       void (*each)(void *context, const struct kiln_metric_shown *metric),
                       void *context);

/* Writes all of them in Prometheus' text format 0.0.4, sorted by name. */
void kiln_metrics_format(struct kiln_metrics *metrics, struct kiln_buf *out);

#endif /* KILN_BASE_METRIC_H */

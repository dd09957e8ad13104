/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/queue_int.h"

#include <stdio.h>

enum { SAY_S = 60, NAME_MAX_BYTES = 96 };

static const char *const drop_words[KILN_SENDQ_DROPS] = {
#define X(name, word) word,
    KILN_SENDQ_DROP_MAP(X)
#undef X
};

/* What the Collector counts of each signal, and what it calls it. */
static const char *const units[KILN_SIGNALS] = {
    [KILN_SIGNAL_PROFILES] = "profile_samples",
    [KILN_SIGNAL_TRACES] = "spans",
    [KILN_SIGNAL_METRICS] = "metric_points",
    [KILN_SIGNAL_LOGS] = "log_records",
};
static const char *const data_types[KILN_SIGNALS] = {
    [KILN_SIGNAL_PROFILES] = "profiles",
    [KILN_SIGNAL_TRACES] = "traces",
    [KILN_SIGNAL_METRICS] = "metrics",
    [KILN_SIGNAL_LOGS] = "logs",
};

static struct kiln_metric *of_exporter(struct kiln_metrics *metrics, enum kiln_signal signal,
                                       const char *exporter, const char *what, const char *help)
{
    char name[NAME_MAX_BYTES];

    snprintf(name, sizeof(name), "otelcol_exporter_%s_%s", what, units[signal]);
    return kiln_metric_get(metrics, KILN_COUNTER, name, help, KILN_LABELS("exporter", exporter));
}

struct kiln_metric *kiln_exporter_sent(struct kiln_metrics *metrics, enum kiln_signal signal,
                                       const char *exporter)
{
    return of_exporter(metrics, signal, exporter, "sent", "Successfully sent to the destination.");
}

struct kiln_metric *kiln_exporter_send_failed(struct kiln_metrics *metrics, enum kiln_signal signal,
                                              const char *exporter)
{
    return of_exporter(metrics, signal, exporter, "send_failed",
                       "In failed attempts to send to the destination.");
}

static struct kiln_metric *unit_metric(struct kiln_sendq *q, enum kiln_metric_kind kind,
                                       const char *whose, const char *what, const char *end,
                                       const char *help, const char *reason)
{
    char name[NAME_MAX_BYTES];

    snprintf(name, sizeof(name), "%s_exporter_%s_%s%s", whose, what, units[q->opts.signal], end);
    return kiln_metric_get(q->opts.metrics, kind, name, help,
                           reason ? KILN_LABELS("exporter", q->name, "reason", reason)
                                  : KILN_LABELS("exporter", q->name));
}

static struct kiln_metric *queue_metric(struct kiln_sendq *q, enum kiln_metric_kind kind,
                                        const char *name, const char *help)
{
    return kiln_metric_get(
        q->opts.metrics, kind, name, help,
        KILN_LABELS("data_type", data_types[q->opts.signal], "exporter", q->name));
}

static struct kiln_metric *detail(struct kiln_sendq *q, enum kiln_metric_kind kind,
                                  const char *name, const char *help)
{
    return kiln_metric_detail(q->opts.metrics, kind, name, help, KILN_LABELS("exporter", q->name));
}

static void open_details(struct kiln_sendq *q)
{
    struct kiln_sendq_counts *c = &q->count;

    c->enqueue_size = detail(q, KILN_HISTOGRAM_ITEMS, "otelcol_exporter_enqueue_size",
                             "Items of a delivery that came to the sending queue.");
    c->enqueue_bytes = detail(q, KILN_HISTOGRAM_BYTES, "otelcol_exporter_enqueue_size_bytes",
                              "Its bytes: of profiles uncompressed, of others as they came.");
    if (!q->opts.batching.on)
        return;
    c->send_size = detail(q, KILN_HISTOGRAM_ITEMS, "otelcol_exporter_queue_batch_send_size",
                          "Items of a request that deliveries were gathered for.");
    c->send_bytes = detail(q, KILN_HISTOGRAM_BYTES, "otelcol_exporter_queue_batch_send_size_bytes",
                           "Its bytes, compressed as they are sent.");
}

void kiln_sendq_open_counts(struct kiln_sendq *q)
{
    struct kiln_sendq_counts *c = &q->count;

    open_details(q);
    c->sent = kiln_exporter_sent(q->opts.metrics, q->opts.signal, q->name);
    c->send_failed = kiln_exporter_send_failed(q->opts.metrics, q->opts.signal, q->name);
    c->enqueue_failed = unit_metric(q, KILN_COUNTER, "otelcol", "enqueue_failed", "",
                                    "Not taken into the sending queue.", NULL);
    c->accepted = unit_metric(q, KILN_COUNTER, "kiln", "accepted", "_total",
                              "Taken by the exporter: sent, queued, or dropped.", NULL);
    c->queued =
        unit_metric(q, KILN_GAUGE, "kiln", "queued", "", "That wait or are being sent.", NULL);
    for (uint32_t i = 0; i < KILN_SENDQ_DROPS; i++)
        c->dropped[i] = unit_metric(q, KILN_COUNTER, "kiln", "dropped", "_total",
                                    "Given up, by reason.", drop_words[i]);
    c->size = queue_metric(q, KILN_GAUGE, "otelcol_exporter_queue_size",
                           "Current size of the sending queue, in units of its sizer.");
    c->capacity = queue_metric(q, KILN_GAUGE, "otelcol_exporter_queue_capacity",
                               "Fixed capacity of the sending queue, in units of its sizer.");
    c->in_flight = queue_metric(q, KILN_GAUGE, "otelcol_exporter_in_flight_requests",
                                "Requests that are being sent, or wait for another try.");
    c->waiting = queue_metric(q, KILN_GAUGE, "kiln_exporter_waiting_deliveries",
                              "Deliveries held back because the queue is full.");
    c->retries = queue_metric(q, KILN_COUNTER, "kiln_exporter_retries_total",
                              "Tries after one that did not succeed.");
    c->rejected = queue_metric(q, KILN_COUNTER, "kiln_exporter_rejected_profiles_total",
                               "Profiles that the receiver left out of requests it took.");
    c->seconds = queue_metric(q, KILN_HISTOGRAM, "kiln_exporter_seconds", "How long a try took.");
    c->damaged = queue_metric(q, KILN_COUNTER, "kiln_exporter_damaged_files_total",
                              "Files of the queue on disk that were set aside.");
    kiln_metric_set(c->capacity, (double)q->opts.size);
}

static void change(struct kiln_sendq *q, struct kiln_metric *counter, int64_t n, int64_t queued)
{
    kiln_metrics_change(
        q->opts.metrics,
        (struct kiln_metric_change[]){{.metric = counter, .n = n}, {q->count.queued, queued}}, 2);
}

void kiln_sendq_count_in(struct kiln_sendq *q, int64_t samples)
{
    change(q, q->count.accepted, samples, samples);
}

void kiln_sendq_count_sent(struct kiln_sendq *q, uint64_t samples)
{
    change(q, q->count.sent, (int64_t)samples, -(int64_t)samples);
}

void kiln_sendq_count_drop(struct kiln_sendq *q, enum kiln_sendq_drop why, uint64_t samples,
                           const char *reason)
{
    change(q, q->count.dropped[why], (int64_t)samples, -(int64_t)samples);
    kiln_metric_add(q->count.send_failed, (int64_t)samples);
    if (kiln_log_every(&q->said_drop, SAY_S))
        kiln_log(q->opts.log, KILN_LOG_ERROR, "exporting failed, data is dropped", "exporter", "%s",
                 q->name, "why", "%s", drop_words[why], "reason", "%s", reason, "dropped_items",
                 "%llu", (unsigned long long)samples, NULL);
}

void kiln_sendq_count_delivery(struct kiln_sendq *q, const struct kiln_delivery *delivery)
{
    if (!kiln_metric_is_kept(q->count.enqueue_size))
        return;
    kiln_metric_observe(q->count.enqueue_size, (double)kiln_delivery_items(delivery));
    kiln_metric_observe(q->count.enqueue_bytes, (double)kiln_delivery_bytes(delivery));
}

void kiln_sendq_count_batch(struct kiln_sendq *q, const struct kiln_export_item *item)
{
    kiln_metric_observe(q->count.send_size, (double)item->head.samples);
    kiln_metric_observe(q->count.send_bytes, (double)item->len);
}

void kiln_sendq_count_size(struct kiln_sendq *q, int64_t size)
{
    q->used += (uint64_t)size;
    kiln_metric_add(q->count.size, size);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delivery is encoded and compressed by whoever brings it, and queued; the thread (otlp_run.c)
 * does the rest.  The queue is bounded in bytes: the oldest goes first.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "pipeline/exporters/otlp_int.h"

#define REQUEST_MAX  ((size_t)4 << 20)
#define REQUEST_MIN  ((size_t)4 << 10)
#define SPOOL_MAX    ((uint64_t)512 << 20)
#define MEMORY_MAX   ((uint64_t)32 << 20)
#define RETRY_NS     (500 * KILN_NS_PER_MS)
#define RETRY_MAX_NS (30 * KILN_NS_PER_S)

static const char *const drop_words[KILN_EXPORT_DROPS] = {
#define X(name, word) word,
    KILN_EXPORT_DROP_MAP(X)
#undef X
};

/* ---- counting ---- */

static void make_counts(struct kiln_export_counts *c, struct kiln_metrics *m)
{
    c->sent = kiln_metric_counter(m, "kiln_export_sent_requests_total",
                                  "Requests that the receiver took.");
    c->sent_samples = kiln_metric_counter(m, "kiln_export_sent_samples_total", "Samples in them.");
    c->sent_bytes = kiln_metric_counter(m, "kiln_export_sent_bytes_total",
                                        "Bytes of their bodies on the wire.");
    c->failed =
        kiln_metric_counter(m, "kiln_export_failed_tries_total", "Tries that did not succeed.");
    c->retried = kiln_metric_counter(m, "kiln_export_retries_total",
                                     "Tries after one that did not succeed.");
    c->rejected = kiln_metric_counter(m, "kiln_export_rejected_profiles_total",
                                      "Profiles that the receiver left out of requests it took.");
    c->spooled =
        kiln_metric_counter(m, "kiln_export_spooled_requests_total", "Requests that went to disk.");
    c->spool_errors =
        kiln_metric_counter(m, "kiln_export_spool_errors_total",
                            "Requests that could not be written to disk and stayed in memory.");
    c->spool_bytes = kiln_metric_gauge(m, "kiln_export_spool_bytes", "Bytes that wait on disk.");
    c->spool_files = kiln_metric_gauge(m, "kiln_export_spool_files", "Requests that wait on disk.");
    c->queue_bytes = kiln_metric_gauge(m, "kiln_export_queue_bytes", "Bytes that wait in memory.");
    c->up = kiln_metric_gauge(m, "kiln_export_up", "1 while the receiver takes what is sent.");
    c->seconds =
        kiln_metric_get(m, KILN_HISTOGRAM, "kiln_export_seconds", "How long a try took.", NULL);
    for (uint32_t i = 0; i < KILN_EXPORT_DROPS; i++) {
        c->dropped[i] = kiln_metric_get(m, KILN_COUNTER, "kiln_export_dropped_requests_total",
                                        "Requests that were given up, by reason.",
                                        KILN_LABELS("reason", drop_words[i]));
        c->dropped_samples[i] =
            kiln_metric_get(m, KILN_COUNTER, "kiln_export_dropped_samples_total",
                            "Samples in them.", KILN_LABELS("reason", drop_words[i]));
    }
}

void kiln_export_dropped(struct kiln_exporter *x, enum kiln_export_drop why,
                         const struct kiln_spooled *head, const char *reason)
{
    kiln_metric_add(x->count.dropped[why], 1);
    kiln_metric_add(x->count.dropped_samples[why], (int64_t)head->samples);
    if (kiln_log_every(&x->said_drop, KILN_EXPORT_SAY_S))
        kiln_log(x->log, KILN_LOG_ERROR, "profiles were dropped", "why", "%s", drop_words[why],
                 "reason", "%s", reason, "samples", "%llu", (unsigned long long)head->samples,
                 NULL);
}

void kiln_otlp_exporter_losses(const struct kiln_consumer *exporter,
                               struct kiln_export_loss ret_losses[KILN_EXPORT_LOSSES])
{
    const struct kiln_export_counts *c = &((const struct kiln_exporter *)exporter)->count;

    _Static_assert((int)KILN_EXPORT_LOSSES == (int)KILN_EXPORT_DROPS, "each reason has its place");
    for (uint32_t i = 0; i < KILN_EXPORT_DROPS; i++)
        ret_losses[i] = (struct kiln_export_loss){
            .reason = drop_words[i],
            .requests = (uint64_t)kiln_metric_value(c->dropped[i]),
            .samples = (uint64_t)kiln_metric_value(c->dropped_samples[i])};
}

void kiln_export_queued(struct kiln_exporter *x, int64_t bytes)
{
    x->queued += (uint64_t)bytes;
    kiln_metric_add(x->count.queue_bytes, bytes);
}

/* ---- in ---- */

/* Appends a list; returns what had to leave for it, to be dropped without the lock. */
static struct kiln_export_item *enqueue(struct kiln_exporter *x, struct kiln_export_item *items)
{
    struct kiln_export_item *gone = NULL, **last_gone = &gone;

    pthread_mutex_lock(&x->lock);
    while (items) {
        struct kiln_export_item *item = items;

        items = item->next;
        item->next = NULL;
        *x->last = item;
        x->last = &item->next;
        kiln_export_queued(x, (int64_t)item->len);
    }
    while (x->queued > x->memory_max && x->first) {
        struct kiln_export_item *oldest = x->first;

        x->first = oldest->next;
        oldest->next = NULL;
        kiln_export_queued(x, -(int64_t)oldest->len);
        *last_gone = oldest;
        last_gone = &oldest->next;
    }
    if (!x->first)
        x->last = &x->first;
    pthread_cond_signal(&x->wake);
    pthread_mutex_unlock(&x->lock);
    return gone;
}

/* Every receiver of OTLP reads gzip; one that said so, and where nobody wants another, gets zstd.
 */
static struct kiln_export_shape shape_now(struct kiln_exporter *x)
{
    struct kiln_export_shape shape = x->shape;

    if (shape.dense && !x->target.is_compression_said && x->takes_zstd)
        shape.compression = KILN_ZSTD;
    shape.level = shape.dense ? KILN_DENSE : 0;
    return shape;
}

/*
 * Samples are counted as who took them does: equal ones are one in a batch.  Each request has its
 * part of them by what it has of the batch; returns those that are in none.
 */
static uint64_t share_out(struct kiln_export_item *items, const struct kiln_delivery *delivery)
{
    uint64_t all = delivery->batch->n_samples, taken = delivery->taken ? delivery->taken : all;
    uint64_t seen = 0, told = 0;

    for (struct kiln_export_item *i = items; i && all; i = i->next) {
        seen = seen + i->head.samples < all ? seen + i->head.samples : all;
        i->head.samples = taken * seen / all - told;
        told += i->head.samples;
    }
    return taken - told;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_exporter *x = (struct kiln_exporter *)consumer;
    const struct kiln_export_shape shape = shape_now(x);
    struct kiln_export_item *items, *gone;
    struct kiln_outcome outcome = {0};
    int r = kiln_export_encode(delivery->batch, &shape, &items, &outcome.err);
    struct kiln_spooled lost = {.samples = share_out(items, delivery)};

    if (r < 0) {
        kiln_export_dropped(x, r == -ENOMEM ? KILN_EXPORT_MEMORY : KILN_EXPORT_ENCODING, &lost,
                            outcome.err.text);
        outcome.code = r;
    }
    gone = items ? enqueue(x, items) : NULL;
    while (gone) {
        struct kiln_export_item *item = gone;

        gone = item->next;
        kiln_export_dropped(x, KILN_EXPORT_MEMORY, &item->head, "the queue in memory is full");
        kiln_export_item_free(item);
    }
    kiln_delivery_end(delivery, &outcome);
}

/* ---- made and ended ---- */

static void init(struct kiln_exporter *x, const struct kiln_otlp_export_opts *opts)
{

    x->consumer.consume = consume;
    x->log = opts->log;
    x->memory_max = opts->memory_max ? opts->memory_max : MEMORY_MAX;
    x->retry_ns = opts->retry_ns ? opts->retry_ns : RETRY_NS;
    x->retry_max_ns = opts->retry_max_ns ? opts->retry_max_ns : RETRY_MAX_NS;
    x->last = &x->first;
    x->noise = kiln_clock_unix_ns();
    pthread_mutex_init(&x->lock, NULL);
    kiln_cond_init(&x->wake);
    kiln_cond_init(&x->ended);
    kiln_answer_init(&x->answer);
    kiln_buf_init(&x->file, SIZE_MAX / 2);
    make_counts(&x->count, opts->metrics);
}

static void done(struct kiln_exporter *x)
{
    kiln_client_free(x->client);
    kiln_spool_close(x->spool);
    kiln_answer_done(&x->answer);
    kiln_buf_done(&x->file);
    kiln_otlp_target_done(&x->target);
    pthread_cond_destroy(&x->wake);
    pthread_cond_destroy(&x->ended);
    pthread_mutex_destroy(&x->lock);
    kiln_free(x);
}

static int start(struct kiln_exporter *x, const struct kiln_otlp_export_opts *opts,
                 struct kiln_err *err)
{
    size_t request_max = opts->request_max ? opts->request_max : REQUEST_MAX;
    int r = kiln_otlp_target_read(opts, getenv, &x->target, err);

    if (r < 0)
        return r;
    x->shape = (struct kiln_export_shape){
        .compression = x->target.compression,
        .dense = opts->dense,
        .json = x->target.protocol == KILN_OTLP_HTTP_JSON,
        .request_max = request_max > REQUEST_MIN ? request_max : REQUEST_MIN,
    };
    r = kiln_export_open(x, err);
    if (r == 0 && opts->spool_dir)
        r = kiln_spool_open(opts->spool_dir, opts->spool_max ? opts->spool_max : SPOOL_MAX,
                            &x->spool, err);
    if (r < 0)
        return r;
    r = kiln_thread_start("kiln-export", kiln_export_run, x, &x->thread);
    return r < 0 ? kiln_err_set(err, r, NULL, "no thread: %s", kiln_err_text(r)) : 0;
}

int kiln_otlp_exporter_new(const struct kiln_otlp_export_opts *opts,
                           struct kiln_consumer **ret_exporter, struct kiln_err *err)
{
    struct kiln_exporter *x = kiln_calloc(1, sizeof(*x));
    int r;

    if (!x)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    init(x, opts);
    r = start(x, opts, err);
    if (r < 0) {
        done(x);
        return r;
    }
    *ret_exporter = &x->consumer;
    return 0;
}

void kiln_otlp_exporter_free(struct kiln_consumer *exporter, uint64_t drain_ns)
{
    struct kiln_exporter *x = (struct kiln_exporter *)exporter;
    uint64_t until = kiln_clock_mono_ns() + drain_ns;
    struct timespec at = kiln_timespec_of(until);
    int r = 0;

    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    x->deadline_ns = until;
    x->stop = true;
    pthread_cond_signal(&x->wake);
    while (!x->is_over && r == 0)
        r = pthread_cond_timedwait(&x->ended, &x->lock, &at);
    pthread_mutex_unlock(&x->lock);
    atomic_store(&x->cancel, true);
    pthread_join(x->thread, NULL);
    done(x);
}

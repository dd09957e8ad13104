/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_kit - a queue before a sender that does as it is told.
 *
 *   struct fixture f = {.fake.hold = true, .opts.size = 3};
 *   start(&f);
 *   send(&f, "main;read 1\n");                 a delivery: f.ended counts those that have ended
 *   finish(&f.fake, take_held(&f.fake));       ends a try that is held
 *   stop(&f, PATIENCE_NS), finish_fixture(&f); checks that all adds up and nothing is left
 */
#ifndef KILN_TESTS_SUPPORT_QUEUE_KIT_H
#define KILN_TESTS_SUPPORT_QUEUE_KIT_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "drawn.h"
#include "pipeline/exporters/queue.h"
#include "test.h"

enum { REQUEST_MAX = 1 << 16 };
#define PATIENCE_NS (60 * KILN_NS_PER_S) /* which no working test needs */

/* A sender that ends what it is told to, when it is told to. */
struct fake {
    struct kiln_sender sender; /* first */
    pthread_mutex_t lock;
    struct kiln_send *held[64]; /* as many as there are consumers, at most */
    _Atomic uint32_t n_held, n_sends;
    bool hold, cancelled;
    enum kiln_export_fate fates[16]; /* of the n-th send; then SENT */
    uint32_t n_fates;
    uint64_t retry_after_ns, rejected;
    _Atomic uint64_t samples; /* that were sent */
    bool freed;
};

struct fixture {
    struct fake fake;
    struct kiln_sendq_opts opts;
    struct kiln_sendq *queue;
    struct kiln_metrics *metrics;
    _Atomic int ended;
    useconds_t end_us;           /* how long a delivery takes to end */
    struct kiln_outcome outcome; /* of the last one */
};

static inline int fake_pack(struct kiln_sender *sender, const struct kiln_delivery *delivery,
                            struct kiln_export_item **ret_items, struct kiln_err *err)
{
    const struct kiln_export_shape shape = {.compression = KILN_PLAIN, .request_max = REQUEST_MAX};

    (void)sender;
    return kiln_export_pack(delivery, &shape, ret_items, err);
}

static inline void finish(struct fake *fake, struct kiln_send *send)
{
    struct kiln_export_verdict verdict = {.retry_after_ns = fake->retry_after_ns,
                                          .result.rejected = fake->rejected,
                                          .reason = "because"};

    pthread_mutex_lock(&fake->lock);
    verdict.fate = fake->n_sends < fake->n_fates ? fake->fates[fake->n_sends] : KILN_EXPORT_SENT;
    if (fake->cancelled)
        verdict.fate = KILN_EXPORT_AGAIN;
    fake->n_sends++;
    if (verdict.fate == KILN_EXPORT_SENT)
        fake->samples += send->item->head.samples;
    pthread_mutex_unlock(&fake->lock);
    send->ended(send, &verdict);
}

static inline void fake_send(struct kiln_sender *sender, struct kiln_send *send)
{
    struct fake *fake = (struct fake *)sender;
    bool hold;

    pthread_mutex_lock(&fake->lock);
    hold = fake->hold && !fake->cancelled;
    if (hold)
        fake->held[fake->n_held++] = send;
    pthread_mutex_unlock(&fake->lock);
    if (!hold)
        finish(fake, send);
}

static inline struct kiln_send *take_held(struct fake *fake)
{
    struct kiln_send *send;

    pthread_mutex_lock(&fake->lock);
    send = fake->n_held ? fake->held[0] : NULL;
    if (send)
        memmove(fake->held, fake->held + 1, --fake->n_held * sizeof(send));
    pthread_mutex_unlock(&fake->lock);
    return send;
}

static inline void fake_cancel(struct kiln_sender *sender)
{
    struct fake *fake = (struct fake *)sender;
    struct kiln_send *send;

    pthread_mutex_lock(&fake->lock);
    fake->cancelled = true;
    pthread_mutex_unlock(&fake->lock);
    while ((send = take_held(fake)))
        finish(fake, send);
}

static inline void fake_free(struct kiln_sender *sender)
{
    ((struct fake *)sender)->freed = true;
}

static const struct kiln_sender_ops fake_ops = {
    .pack = fake_pack, .send = fake_send, .cancel = fake_cancel, .free = fake_free};

static inline void start(struct fixture *f)
{
    pthread_mutex_init(&f->fake.lock, NULL);
    f->fake.sender.ops = &fake_ops;
    CHECK_OK(kiln_metrics_new(&f->metrics));
    f->opts.name = "otlp/x";
    f->opts.metrics = f->metrics;
    if (!f->opts.consumers)
        f->opts.consumers = 2;
    if (!f->opts.size)
        f->opts.size = 3;
    if (!f->opts.retry.initial_ns)
        f->opts.retry = (struct kiln_retry_opts){.initial_ns = KILN_NS_PER_MS,
                                                 .max_ns = KILN_NS_PER_MS,
                                                 .multiplier = 1.5,
                                                 .randomization = 0.5};
    CHECK_OK(kiln_sendq_new(&f->opts, &f->fake.sender, &f->queue, NULL));
    CHECK_OK(kiln_sendq_start(f->queue, NULL));
}

static inline void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct fixture *f = delivery->context;

    if (f->end_us)
        usleep(f->end_us);
    pthread_mutex_lock(&f->fake.lock); /* deliveries end on many threads */
    f->outcome = *outcome;
    pthread_mutex_unlock(&f->fake.lock);
    atomic_fetch_add(&f->ended, 1);
    free(delivery);
}

/* Of who sent this header, which lives on; NULL: none. */
static inline void send_with(struct fixture *f, const struct kiln_header *header,
                             const char *stacks)
{
    struct kiln_delivery *delivery = calloc(1, sizeof(*delivery));
    struct kiln_consumer *consumer = kiln_sendq_consumer(f->queue);

    delivery->batch = kiln_test_stacks(stacks);
    delivery->remote = (struct kiln_remote){.headers = header, .n_headers = header != NULL};
    delivery->done = ended;
    delivery->context = f;
    consumer->consume(consumer, delivery);
}

static inline void send(struct fixture *f, const char *stacks)
{
    send_with(f, NULL, stacks);
}

static inline double value(struct fixture *f, enum kiln_metric_kind kind, const char *name,
                           const char *reason)
{
    return kiln_metric_value(
        kiln_metric_get(f->metrics, kind, name, "",
                        reason ? KILN_LABELS("exporter", "otlp/x", "reason", reason)
                               : KILN_LABELS("exporter", "otlp/x")));
}

static inline double sent(struct fixture *f)
{
    return value(f, KILN_COUNTER, "otelcol_exporter_sent_profile_samples", NULL);
}

static inline double queued(struct fixture *f)
{
    return value(f, KILN_GAUGE, "kiln_exporter_queued_profile_samples", NULL);
}

static inline double dropped(struct fixture *f, const char *reason)
{
    return value(f, KILN_COUNTER, "kiln_exporter_dropped_profile_samples_total", reason);
}

static inline double all_dropped(struct fixture *f)
{
    return dropped(f, "too_large") + dropped(f, "refused") + dropped(f, "retries") +
           dropped(f, "damaged") + dropped(f, "shutdown");
}

static inline double failed(struct fixture *f)
{
    return value(f, KILN_COUNTER, "otelcol_exporter_enqueue_failed_profile_samples", NULL);
}

static inline double queue_gauge(struct fixture *f, const char *name)
{
    return kiln_metric_value(
        kiln_metric_get(f->metrics, KILN_GAUGE, name, "",
                        KILN_LABELS("data_type", "profiles", "exporter", "otlp/x")));
}

static inline double queue_counter(struct fixture *f, const char *name)
{
    return kiln_metric_value(
        kiln_metric_get(f->metrics, KILN_COUNTER, name, "",
                        KILN_LABELS("data_type", "profiles", "exporter", "otlp/x")));
}

static inline void check_conservation(struct fixture *f)
{
    CHECK_EQ(value(f, KILN_COUNTER, "kiln_exporter_accepted_profile_samples_total", NULL),
             sent(f) + queued(f) + all_dropped(f));
    CHECK_EQ(value(f, KILN_COUNTER, "otelcol_exporter_send_failed_profile_samples", NULL),
             all_dropped(f));
}

static inline void stop(struct fixture *f, uint64_t wait_ns)
{
    kiln_sendq_stop(f->queue, kiln_clock_mono_ns() + wait_ns);
    check_conservation(f);
    CHECK_EQ(queued(f), 0);
    CHECK_EQ(queue_gauge(f, "otelcol_exporter_queue_size"), 0);
    CHECK_EQ(queue_gauge(f, "otelcol_exporter_in_flight_requests"), 0);
    kiln_sendq_free(f->queue);
    CHECK(f->fake.freed);
}

static inline void finish_fixture(struct fixture *f)
{
    kiln_metrics_free(f->metrics);
    pthread_mutex_destroy(&f->fake.lock);
    CHECK_EQ(kiln_mem_live(), 0);
}

static inline void wait_until_ended(struct fixture *f, int n)
{
    uint64_t patience = kiln_clock_mono_ns() + PATIENCE_NS;

    while (f->ended < n && kiln_clock_mono_ns() < patience)
        sched_yield();
    CHECK_EQ(f->ended, n);
}

/* ---- on disk ---- */

static inline void wait_until_sent(struct fixture *f, double n)
{
    uint64_t patience = kiln_clock_mono_ns() + PATIENCE_NS;

    while (sent(f) < n && kiln_clock_mono_ns() < patience)
        sched_yield();
    CHECK_EQ(sent(f), n);
}

/* Ends it with what is on disk left there. */
static inline void stop_on_disk(struct fixture *f, uint64_t wait_ns)
{
    kiln_sendq_stop(f->queue, kiln_clock_mono_ns() + wait_ns);
    check_conservation(f);
    kiln_sendq_free(f->queue);
    CHECK_EQ(queued(f), 0); /* who opens it next counts it */
    CHECK_EQ(queue_gauge(f, "otelcol_exporter_queue_size"), 0);
    check_conservation(f);
    finish_fixture(f);
}

#endif /* KILN_TESTS_SUPPORT_QUEUE_KIT_H */

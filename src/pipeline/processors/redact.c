/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redaction on the way from a receiver to an exporter, where there are rules.
 *
 * A batch in which the rules find nothing goes on as it is, with the bytes it came in.  Otherwise
 * the redacted batch takes its place, and the bytes, which still say everything, are left behind.
 */
#include <errno.h>
#include <pthread.h>

#include "base/mem.h"
#include "core/redact.h"
#include "pipeline/pipeline.h"

struct redactor {
    struct kiln_consumer consumer; /* first */
    struct kiln_redact *rules;     /* NULL: none */
    struct kiln_consumer *next;
    pthread_mutex_t lock; /* of the rules */
    struct kiln_metric *texts, *attributes, *payloads, *refused;
};

static void count(const struct redactor *p, const struct kiln_redact_info *info)
{
    kiln_metric_add(p->texts, (int64_t)info->texts);
    kiln_metric_add(p->attributes, (int64_t)(info->attributes_changed + info->attributes_dropped));
    kiln_metric_add(p->payloads, (int64_t)info->payloads);
}

static bool found_nothing(const struct kiln_redact_info *info)
{
    return !info->texts && !info->attributes_changed && !info->attributes_dropped &&
           !info->payloads;
}

static bool has_rules(struct redactor *p)
{
    bool has;

    pthread_mutex_lock(&p->lock);
    has = p->rules != NULL;
    pthread_mutex_unlock(&p->lock);
    return has;
}

/* Puts the redacted batch in the place of the other one, and charges the delivery for it. */
static void replace(struct kiln_delivery *delivery, struct kiln_batch *batch)
{
    size_t bytes = kiln_batch_bytes(batch), spare = delivery->charged;

    kiln_batch_unref(delivery->batch);
    delivery->batch = batch;
    delivery->body = KILN_STR_NONE;
    delivery->recipe = KILN_STR_NONE;
    delivery->body_compression = KILN_PLAIN;
    if (delivery->pool && spare > bytes) {
        kiln_pool_give(delivery->pool, spare - bytes);
        delivery->charged = bytes;
    }
}

/* Takes memory for a second batch, which is about as large as the first. */
static int reserve(struct kiln_delivery *delivery)
{
    size_t bytes = kiln_batch_bytes(delivery->batch);

    if (delivery->pool && kiln_pool_take(delivery->pool, bytes) < 0)
        return -EAGAIN;
    delivery->charged += delivery->pool ? bytes : 0;
    return 0;
}

static int redact(struct redactor *p, struct kiln_delivery *delivery, struct kiln_err *err)
{
    struct kiln_redact_info info = {0};
    size_t before = delivery->charged;
    struct kiln_batch *batch = NULL;
    int r = reserve(delivery);

    if (r < 0)
        return kiln_err_set(err, r, NULL, "there is no memory for this request just now");
    pthread_mutex_lock(&p->lock);
    if (p->rules)
        r = kiln_redact(p->rules, delivery->batch, &batch, &info, err);
    pthread_mutex_unlock(&p->lock);
    if (r < 0)
        return r;
    count(p, &info);
    if (!found_nothing(&info)) {
        replace(delivery, batch);
        return 0;
    }
    kiln_batch_unref(batch);
    if (delivery->pool)
        kiln_pool_give(delivery->pool, delivery->charged - before);
    delivery->charged = before;
    return 0;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct redactor *p = (struct redactor *)consumer;
    struct kiln_outcome outcome = {0};

    outcome.code = has_rules(p) ? redact(p, delivery, &outcome.err) : 0;
    if (outcome.code == 0) {
        p->next->consume(p->next, delivery);
        return;
    }
    kiln_metric_add(p->refused, 1);
    kiln_err_within(&outcome.err, "redaction");
    kiln_delivery_end(delivery, &outcome);
}

static struct kiln_metric *metric(struct kiln_metrics *metrics, const char *what)
{
    return kiln_metric_get(metrics, KILN_COUNTER, "kiln_redacted_total",
                           "What redaction rules took out, distinct in each request.",
                           KILN_LABELS("what", what));
}

int kiln_redact_processor_new(struct kiln_redact *rules, struct kiln_consumer *next,
                              struct kiln_metrics *metrics, struct kiln_consumer **ret_processor)
{
    struct redactor *p = kiln_calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->consumer.consume = consume;
    p->rules = rules;
    p->next = next;
    pthread_mutex_init(&p->lock, NULL);
    p->texts = metric(metrics, "text");
    p->attributes = metric(metrics, "attribute");
    p->payloads = metric(metrics, "payload");
    p->refused = kiln_metric_get(metrics, KILN_COUNTER, "kiln_redaction_refused_total",
                                 "Requests refused because their redaction failed.",
                                 KILN_LABELS("processor", "redact"));
    *ret_processor = &p->consumer;
    return 0;
}

struct kiln_redact *kiln_redact_processor_swap(struct kiln_consumer *processor,
                                               struct kiln_redact *rules)
{
    struct redactor *p = (struct redactor *)processor;
    struct kiln_redact *old;

    pthread_mutex_lock(&p->lock);
    old = p->rules;
    p->rules = rules;
    pthread_mutex_unlock(&p->lock);
    return old;
}

void kiln_redact_processor_free(struct kiln_consumer *processor)
{
    struct redactor *p = (struct redactor *)processor;

    if (!p)
        return;
    pthread_mutex_destroy(&p->lock);
    kiln_free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redaction on the way from a receiver to an exporter, where there are rules.
 *
 * The redacted batch takes the place of the one that came, also where the rules found nothing: the
 * bytes it came in may say more than samples refer to (a dictionary that was shared out over
 * several requests does), and nobody has looked at that.
 */
#include <errno.h>
#include <pthread.h>

#include "base/mem.h"
#include "core/redact.h"
#include "pipeline/processors/changer.h"

struct redactor {
    struct kiln_consumer consumer; /* first */
    struct kiln_consumer *changer; /* the way through the rules, */
    struct kiln_consumer *next;    /* and past them */
    struct kiln_redact *rules;     /* NULL: none */
    pthread_mutex_t lock;          /* of the rules */
    struct kiln_metric *texts, *attributes, *payloads, *refused;
};

static void count(const struct redactor *p, const struct kiln_redact_info *info)
{
    kiln_metric_add(p->texts, (int64_t)info->texts);
    kiln_metric_add(p->attributes, (int64_t)(info->attributes_changed + info->attributes_dropped));
    kiln_metric_add(p->payloads, (int64_t)info->payloads);
}

static bool has_rules(struct redactor *p)
{
    bool has;

    pthread_mutex_lock(&p->lock);
    has = p->rules != NULL;
    pthread_mutex_unlock(&p->lock);
    return has;
}

static int redact(void *context, struct kiln_batch **batch, struct kiln_err *err)
{
    struct redactor *p = context;
    struct kiln_redact_info info = {0};
    struct kiln_batch *redacted = NULL;
    int r = 0;

    pthread_mutex_lock(&p->lock);
    if (p->rules)
        r = kiln_redact(p->rules, *batch, &redacted, &info, err);
    pthread_mutex_unlock(&p->lock);
    if (r < 0) {
        kiln_metric_add(p->refused, 1);
        return r;
    }
    count(p, &info);
    if (!redacted) /* the rules went since */
        return 0;
    kiln_batch_unref(*batch);
    *batch = redacted;
    return 1;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct redactor *p = (struct redactor *)consumer;
    struct kiln_consumer *next = has_rules(p) ? p->changer : p->next;

    next->consume(next, delivery);
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
    int r =
        p ? kiln_changer_new(&(struct kiln_processor_opts){.id = "redaction", .next = next},
                             &(struct kiln_change){.context = p, .change = redact, .copies = true},
                             &p->changer)
          : -ENOMEM;

    if (r < 0) {
        kiln_free(p);
        return r;
    }
    p->consumer.consume = consume;
    p->next = next;
    p->rules = rules;
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
    kiln_changer_free(p->changer);
    pthread_mutex_destroy(&p->lock);
    kiln_free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a receiver handed on is counted when it has ended, by how it went: accepted or refused.  The
 * Collector's third count, of what failed in the receiver itself, is there and stays 0: such a
 * message is handed to nobody.
 *
 * Items are samples of profiles; of other signals nobody has looked into the message but the
 * receiver, which says how many there are.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "collector/graph_int.h"

enum fate { ACCEPTED, REFUSED, FAILED, FATES };

struct entry {
    struct kiln_consumer consumer; /* first */
    struct kiln_consumer *next;
    struct kiln_metric *counts[FATES], *requests[FATES];
};

struct passage {
    struct kiln_delivery delivery; /* first: goes on in the place of: */
    struct kiln_delivery *from;
    struct entry *entry;
    uint64_t items;
};

static void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct passage *passage = (struct passage *)delivery;
    enum fate fate = outcome->code ? REFUSED : ACCEPTED;

    kiln_metric_add(passage->entry->counts[fate], (int64_t)passage->items);
    kiln_metric_add(passage->entry->requests[fate], 1);
    kiln_delivery_end(passage->from, outcome);
    kiln_free(passage);
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct entry *entry = (struct entry *)consumer;
    struct passage *passage = kiln_malloc(sizeof(*passage));
    struct kiln_outcome outcome = {.code = -EAGAIN, .retry_after_s = 1};

    if (!passage) {
        kiln_err_set(&outcome.err, -EAGAIN, NULL, "there is no memory for this request just now");
        kiln_delivery_end(delivery, &outcome);
        return;
    }
    /* The batch and what is charged for it go on; the rest of the delivery waits for the end. */
    passage->delivery = *delivery;
    passage->delivery.done = ended;
    passage->from = delivery;
    passage->entry = entry;
    passage->items = kiln_delivery_items(delivery);
    delivery->batch = NULL;
    delivery->pool = NULL;
    delivery->charged = 0;
    kiln_hand_on(entry->next, &passage->delivery);
}

static bool is_light(struct kiln_consumer *consumer, const struct kiln_delivery *delivery)
{
    return kiln_is_light(((struct entry *)consumer)->next, delivery);
}

static struct kiln_metric *metric(struct kiln_metrics *metrics, const char *fate,
                                  enum kiln_signal signal, const char *receiver)
{
    static const char *const items[KILN_SIGNALS] = {"profile_samples", "spans", "metric_points",
                                                    "log_records"};
    char name[80];

    snprintf(name, sizeof(name), "otelcol_receiver_%s_%s", fate, items[signal]);
    return kiln_metric_get(metrics, KILN_COUNTER, name,
                           "What a receiver handed to its pipelines, by how it went.",
                           KILN_LABELS("receiver", receiver));
}

int kiln_way_in_new(const char *receiver, enum kiln_signal signal, struct kiln_consumer *next,
                    struct kiln_metrics *metrics, struct kiln_consumer **ret_entry)
{
    static const char *const fates[FATES] = {"accepted", "refused", "failed"};
    static const char *const outcomes[FATES] = {"success", "refused", "failure"};
    struct entry *entry = kiln_calloc(1, sizeof(*entry));

    if (!entry)
        return -ENOMEM;
    entry->consumer = (struct kiln_consumer){consume, next->takes_sealed, is_light,
                                             next->takes_json, next->takes_unchecked};
    entry->next = next;
    for (int fate = 0; fate < FATES; fate++) {
        entry->counts[fate] = metric(metrics, fates[fate], signal, receiver);
        entry->requests[fate] =
            kiln_metric_get(metrics, KILN_COUNTER, "otelcol_receiver_requests",
                            "Requests that a receiver handed to its pipelines, by how they went.",
                            KILN_LABELS("receiver", receiver, "outcome", outcomes[fate]));
    }
    *ret_entry = &entry->consumer;
    return 0;
}

void kiln_way_in_free(struct kiln_consumer *entry)
{
    kiln_free(entry);
}

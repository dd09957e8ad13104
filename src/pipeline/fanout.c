/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delivery stays with us, and each consumer gets one of its own that borrows from it; so does
 * its body, which must live until the last of them has ended.
 */
#include "pipeline/fanout.h"

#include <errno.h>
#include <pthread.h>

#include "base/mem.h"
#include "pipeline/outcome.h"

struct fanout {
    struct kiln_consumer consumer; /* first */
    uint32_t n;
    struct kiln_consumer *next[];
};

struct spread {
    struct kiln_delivery *whole;
    pthread_mutex_t lock; /* of all below */
    struct kiln_outcome worst;
    uint32_t left; /* that have not ended */
    struct kiln_delivery parts[];
};

static void part_ended(struct kiln_delivery *part, const struct kiln_outcome *outcome)
{
    struct spread *spread = part->context;
    uint32_t left;

    pthread_mutex_lock(&spread->lock);
    if (kiln_outcome_is_worse(outcome, &spread->worst))
        spread->worst = *outcome;
    left = --spread->left;
    pthread_mutex_unlock(&spread->lock);
    if (left)
        return;
    kiln_delivery_end(spread->whole, &spread->worst);
    pthread_mutex_destroy(&spread->lock);
    kiln_free(spread);
}

static struct spread *spread_new(struct kiln_delivery *whole, uint32_t n)
{
    struct spread *spread = kiln_calloc(1, sizeof(*spread) + n * sizeof(spread->parts[0]));

    if (!spread)
        return NULL;
    spread->whole = whole;
    spread->left = n;
    pthread_mutex_init(&spread->lock, NULL);
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_delivery *part = &spread->parts[i];

        *part = *whole;
        part->batch = whole->batch ? kiln_batch_ref(whole->batch) : NULL;
        part->charged = 0; /* the whole is; but for copies that are made of a part */
        part->done = part_ended;
        part->context = spread;
    }
    return spread;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    const struct fanout *fanout = (const struct fanout *)consumer;
    struct spread *spread = spread_new(delivery, fanout->n);
    struct kiln_outcome outcome = {.code = -EAGAIN, .retry_after_s = 1};

    if (!spread) {
        kiln_err_set(&outcome.err, -EAGAIN, NULL, "there is no memory for this request just now");
        kiln_delivery_end(delivery, &outcome);
        return;
    }
    /* The last part to end frees them all, and that may be any but the one that is handed over. */
    for (uint32_t i = 0; i < fanout->n; i++)
        kiln_hand_on(fanout->next[i], &spread->parts[i]);
}

static bool is_light(struct kiln_consumer *consumer, const struct kiln_delivery *delivery)
{
    const struct fanout *fanout = (const struct fanout *)consumer;

    for (uint32_t i = 0; i < fanout->n; i++) {
        if (!kiln_is_light(fanout->next[i], delivery))
            return false;
    }
    return true;
}

int kiln_fanout_new(struct kiln_consumer *const *next, uint32_t n,
                    struct kiln_consumer **ret_fanout)
{
    struct fanout *fanout = kiln_calloc(1, sizeof(*fanout) + n * sizeof(fanout->next[0]));

    if (!fanout)
        return -ENOMEM;
    fanout->consumer = (struct kiln_consumer){consume, true, is_light, .takes_json = true};
    fanout->n = n;
    for (uint32_t i = 0; i < n; i++) {
        fanout->next[i] = next[i];
        fanout->consumer.takes_sealed &= next[i]->takes_sealed; /* else it is opened once, before */
        fanout->consumer.takes_json &= next[i]->takes_json;     /* else nobody shall have it */
    }
    *ret_fanout = &fanout->consumer;
    return 0;
}

void kiln_fanout_free(struct kiln_consumer *fanout)
{
    kiln_free(fanout);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "relay.h"

#include <assert.h>

void relay_keep(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct relay_sink *sink = (struct relay_sink *)consumer;

    pthread_mutex_lock(&sink->lock);
    assert(sink->n < RELAY_MAX);
    sink->kept[sink->n++] = delivery;
    pthread_cond_broadcast(&sink->came);
    pthread_mutex_unlock(&sink->lock);
}

void relay_wait(struct relay_sink *sink, uint32_t n)
{
    pthread_mutex_lock(&sink->lock);
    while (sink->n < n)
        pthread_cond_wait(&sink->came, &sink->lock);
    pthread_mutex_unlock(&sink->lock);
}

void relay_end(struct relay_sink *sink, int code)
{
    uint32_t n = sink->n;

    sink->n = 0;
    for (uint32_t i = 0; i < n; i++)
        kiln_delivery_end(sink->kept[i], &(struct kiln_outcome){.code = code});
}

static void ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct relay_post *post = delivery->context;

    post->outcome = *outcome;
    post->ended++;
}

void relay_post(struct relay_post *post, struct kiln_consumer *to)
{
    post->delivery.done = ended;
    post->delivery.context = post;
    kiln_hand_on(to, &post->delivery);
}

void relay_send(struct relay_post *post, struct kiln_consumer *to, struct kiln_batch *batch,
                const char *tenant)
{
    post->delivery = (struct kiln_delivery){
        .signal = batch ? KILN_SIGNAL_PROFILES : KILN_SIGNAL_TRACES,
        .batch = batch,
        .body = KILN_STR("bytes"),
        .tenant = tenant,
    };
    relay_post(post, to);
}

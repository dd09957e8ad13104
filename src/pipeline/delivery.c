/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pipeline.h"

#include <assert.h>

#include "core/otlp_size.h"

void kiln_delivery_end(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    kiln_batch_unref(delivery->batch);
    delivery->batch = NULL;
    if (delivery->pool)
        kiln_pool_give(delivery->pool, delivery->charged);
    delivery->charged = 0;
    delivery->done(delivery, outcome);
}

uint64_t kiln_delivery_items(const struct kiln_delivery *delivery)
{
    return delivery->batch ? delivery->batch->n_samples : delivery->items;
}

uint32_t kiln_delivery_profiles(const struct kiln_delivery *delivery)
{
    return delivery->batch ? delivery->batch->n_profiles : delivery->profiles;
}

uint64_t kiln_delivery_bytes(const struct kiln_delivery *delivery)
{
    if (delivery->seal)
        return delivery->seal->content_bytes;
    if (delivery->batch &&
        (!delivery->body.len || delivery->recipe.len || delivery->body_compression != KILN_PLAIN))
        return kiln_otlp_size_max(delivery->batch);
    return delivery->body.len;
}

bool kiln_delivery_check(struct kiln_delivery *delivery)
{
    struct kiln_outcome outcome = {0};

    if (!kiln_delivery_is_unchecked(delivery))
        return true;
    outcome.code = delivery->seal->check(delivery->seal, delivery, &outcome.err);
    if (outcome.code == 0 && kiln_delivery_items(delivery))
        return true;
    kiln_delivery_end(delivery, &outcome);
    return false;
}

int kiln_delivery_open(struct kiln_delivery *delivery, struct kiln_err *err)
{
    const struct kiln_seal *seal = delivery->seal;
    size_t bytes;
    int r;

    assert(!kiln_delivery_is_unchecked(delivery));
    if (!seal)
        return 0;
    r = seal->open(seal, &delivery->batch, &bytes, err);
    if (r < 0)
        return r;
    delivery->seal = NULL;
    delivery->pool = seal->pool;
    delivery->charged += bytes;
    return 0;
}

void kiln_hand_on(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_outcome outcome = {.retry_after_s = 1};

    if (!consumer->takes_sealed)
        outcome.code = kiln_delivery_open(delivery, &outcome.err);
    if (outcome.code < 0)
        kiln_delivery_end(delivery, &outcome);
    else
        consumer->consume(consumer, delivery);
}

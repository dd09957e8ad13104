/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/changer.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/reopen.h"

struct changer {
    struct kiln_consumer consumer; /* first */
    struct kiln_processor_opts opts;
    struct kiln_change change;
    struct kiln_processor_counts counts;
    struct kiln_metric *duration;
    pthread_mutex_t lock; /* of what `change` uses */
};

/* Takes memory for a second batch, which is about as large as the first. */
static int reserve(struct kiln_delivery *delivery)
{
    size_t bytes = kiln_batch_bytes(delivery->batch);

    if (!delivery->pool)
        return 0;
    if (kiln_pool_take(delivery->pool, bytes) < 0)
        return -EAGAIN;
    delivery->charged += bytes;
    return 0;
}

/* Gives back what is charged beyond `bytes`. */
static void settle(struct kiln_delivery *delivery, size_t bytes)
{
    if (!delivery->pool || delivery->charged <= bytes)
        return;
    kiln_pool_give(delivery->pool, delivery->charged - bytes);
    delivery->charged = bytes;
}

/* What came is no longer what goes on. */
static void leave_body(struct kiln_delivery *delivery)
{
    delivery->body = KILN_STR_NONE;
    delivery->recipe = KILN_STR_NONE;
    delivery->body_compression = KILN_PLAIN;
}

static int change(struct changer *changer, struct kiln_delivery *delivery, struct kiln_err *err)
{
    /* What others hold too is copied before it is changed (core/reopen.h). */
    bool copies = changer->change.copies || !kiln_batch_is_sole(delivery->batch);
    size_t before = delivery->charged;
    int r;

    if (copies && reserve(delivery) < 0)
        return kiln_err_set(err, -EAGAIN, NULL, "there is no memory for this request just now");
    pthread_mutex_lock(&changer->lock);
    if (changer->change.meet)
        changer->change.meet(changer->change.context, &delivery->remote);
    r = changer->change.change(changer->change.context, &delivery->batch, err);
    pthread_mutex_unlock(&changer->lock);
    if (r == 0)
        settle(delivery, before);
    if (r <= 0)
        return r;
    leave_body(delivery);
    if (copies)
        settle(delivery, kiln_batch_bytes(delivery->batch));
    return 0;
}

static void end(const struct changer *changer, struct kiln_delivery *delivery,
                struct kiln_outcome *outcome)
{
    if (outcome->code < 0)
        kiln_err_within(&outcome->err, "%s", changer->opts.id);
    if (outcome->code == -ENOMEM || outcome->code == -EAGAIN)
        outcome->retry_after_s = 1;
    kiln_delivery_end(delivery, outcome);
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct changer *changer = (struct changer *)consumer;
    struct kiln_consumer *next = changer->opts.next;
    struct kiln_outcome outcome = {0};
    uint64_t since_ns = kiln_clock_mono_ns();
    bool had;

    if (delivery->signal != KILN_SIGNAL_PROFILES) {
        next->consume(next, delivery);
        return;
    }
    kiln_processor_count(changer->counts.incoming, delivery);
    had = delivery->batch->n_profiles > 0;
    outcome.code = change(changer, delivery, &outcome.err);
    kiln_processor_took(changer->duration, since_ns);
    if (outcome.code < 0 || (had && delivery->batch->n_profiles == 0)) {
        end(changer, delivery, &outcome);
        return;
    }
    kiln_processor_count(changer->counts.outgoing, delivery);
    next->consume(next, delivery);
}

int kiln_changer_new(const struct kiln_processor_opts *opts, const struct kiln_change *change,
                     struct kiln_consumer **ret_changer)
{
    struct changer *changer = kiln_calloc(1, sizeof(*changer));

    if (!changer)
        return -ENOMEM;
    changer->consumer.consume = consume;
    changer->opts = *opts;
    changer->change = *change;
    changer->counts = kiln_processor_counts(opts);
    changer->duration = kiln_processor_duration(opts);
    pthread_mutex_init(&changer->lock, NULL);
    *ret_changer = &changer->consumer;
    return 0;
}

void kiln_changer_free(struct kiln_consumer *consumer)
{
    struct changer *changer = (struct changer *)consumer;

    if (!changer)
        return;
    pthread_mutex_destroy(&changer->lock);
    kiln_free(changer);
}

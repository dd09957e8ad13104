/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How deliveries that waited go on.  Their batches are given back as soon as there is the one of
 * all of them; the deliveries stay until that has ended.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/split.h"
#include "pipeline/outcome.h"
#include "pipeline/processors/batcher_int.h"

#define WARY_NS (10 * KILN_NS_PER_S)

/* ---- the end ---- */

static void go(struct kiln_batcher *batcher, uint32_t n)
{
    pthread_mutex_lock(&batcher->lock);
    kiln_turnout_go(&batcher->turnout, n);
    pthread_mutex_unlock(&batcher->lock);
}

/* Profiles that were not taken are told to as many as had that many. */
static void end_all(struct kiln_crowd *crowd)
{
    struct kiln_outcome outcome = crowd->worst;
    uint32_t rejected = crowd->worst.rejected;

    go(crowd->batcher, crowd->n);
    for (uint32_t i = 0; i < crowd->n; i++) {
        uint32_t had = crowd->n_profiles[i];

        outcome.rejected = rejected < had ? rejected : had;
        rejected -= outcome.rejected;
        kiln_delivery_end(crowd->all[i], &outcome);
    }
    kiln_crowd_free(crowd);
}

static void part_ended(struct kiln_delivery *part, const struct kiln_outcome *outcome)
{
    struct kiln_crowd *crowd = part->context;
    uint32_t left, rejected;

    pthread_mutex_lock(&crowd->lock);
    rejected = crowd->worst.rejected + (outcome->code == 0 ? outcome->rejected : 0);
    if (kiln_outcome_is_worse(outcome, &crowd->worst))
        crowd->worst = *outcome;
    crowd->worst.rejected = rejected;
    left = --crowd->left;
    pthread_mutex_unlock(&crowd->lock);
    if (left == 0)
        end_all(crowd);
}

/* ---- the one of all of them ---- */

static uint64_t first_received(const struct kiln_crowd *crowd)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < crowd->n; i++) {
        if (crowd->all[i]->received_ns < first)
            first = crowd->all[i]->received_ns;
    }
    return first;
}

/* Charges the parts to the pool, all or none. */
static int charge(struct kiln_crowd *crowd, struct kiln_pool *pool)
{
    for (uint32_t i = 0; pool && i < crowd->n_parts; i++) {
        struct kiln_delivery *part = &crowd->parts[i];
        size_t bytes = kiln_batch_bytes(part->batch);
        int r = kiln_pool_take(pool, bytes);

        if (r < 0)
            return r;
        part->pool = pool;
        part->charged = bytes;
    }
    return 0;
}

static void drop_parts(struct kiln_crowd *crowd)
{
    for (uint32_t i = 0; crowd->parts && i < crowd->n_parts; i++) {
        struct kiln_delivery *part = &crowd->parts[i];

        if (part->pool)
            kiln_pool_give(part->pool, part->charged);
        kiln_batch_unref(part->batch);
    }
    kiln_free(crowd->parts);
    crowd->parts = NULL;
}

/* Makes deliveries of batches, which they take over also on failure. */
static int make_parts(const struct kiln_batcher *batcher, struct kiln_crowd *crowd,
                      struct kiln_batch *const *batches, uint32_t n)
{
    uint64_t received_ns = first_received(crowd);
    struct kiln_remote remote = kiln_metadata_common(&batcher->opts.keys, &crowd->all[0]->remote,
                                                     crowd->headers, KILN_CROWD_HEADERS);

    crowd->parts = kiln_calloc(n, sizeof(*crowd->parts));
    crowd->n_parts = crowd->left = n;
    for (uint32_t i = 0; i < n; i++) {
        if (!crowd->parts)
            kiln_batch_unref(batches[i]);
        else
            crowd->parts[i] = (struct kiln_delivery){
                .batch = batches[i],
                .tenant = crowd->tenant,
                .remote = remote,
                .received_ns = received_ns,
                .done = part_ended,
                .context = crowd,
            };
    }
    if (crowd->parts && charge(crowd, batcher->opts.pool) == 0)
        return 0;
    drop_parts(crowd);
    return -ENOMEM;
}

static int split_up(const struct kiln_batcher *batcher, struct kiln_crowd *crowd,
                    struct kiln_batch *whole)
{
    const struct kiln_split_opts opts = {.samples_max = batcher->opts.samples_max};
    struct kiln_batch **batches;
    uint32_t n;
    int r;

    if (opts.samples_max == 0 || whole->n_samples <= opts.samples_max)
        return make_parts(batcher, crowd, &whole, 1);
    r = kiln_split(whole, &opts, &batches, &n, NULL);
    kiln_batch_unref(whole);
    if (r < 0)
        return r;
    r = make_parts(batcher, crowd, batches, n);
    kiln_free(batches);
    return r;
}

static int count_profiles(struct kiln_crowd *crowd)
{
    kiln_free(crowd->n_profiles);
    crowd->n_profiles = kiln_malloc(crowd->n * sizeof(*crowd->n_profiles));
    if (!crowd->n_profiles)
        return -ENOMEM;
    for (uint32_t i = 0; i < crowd->n; i++)
        crowd->n_profiles[i] = kiln_delivery_profiles(crowd->all[i]);
    return 0;
}

static void give_back_batches(struct kiln_crowd *crowd)
{
    for (uint32_t i = 0; i < crowd->n; i++) {
        struct kiln_delivery *delivery = crowd->all[i];

        kiln_batch_unref(delivery->batch);
        delivery->batch = NULL;
        delivery->seal = NULL;
        if (delivery->pool)
            kiln_pool_give(delivery->pool, delivery->charged);
        delivery->charged = 0;
    }
}

/* ---- going on ---- */

void kiln_batcher_hand_on(struct kiln_batcher *batcher, struct kiln_delivery *delivery)
{
    struct kiln_consumer *next = batcher->opts.processor.next;

    if (!kiln_delivery_check(delivery))
        return;
    kiln_processor_count(batcher->counts.outgoing, delivery);
    kiln_metric_observe(batcher->send_size, (double)kiln_delivery_items(delivery));
    if (kiln_metric_is_kept(batcher->send_size_bytes))
        kiln_metric_observe(batcher->send_size_bytes, (double)kiln_delivery_bytes(delivery));
    kiln_hand_on(next, delivery);
}

static void lone_ended(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct kiln_crowd *crowd = delivery->context;

    go(crowd->batcher, 1);
    delivery->done = crowd->done;
    delivery->context = crowd->context;
    kiln_crowd_free(crowd);
    delivery->done(delivery, outcome);
}

/* As it came, but that its end is noticed. */
static void hand_on_alone(struct kiln_batcher *batcher, struct kiln_crowd *crowd)
{
    struct kiln_delivery *delivery = crowd->all[0];

    crowd->done = delivery->done;
    crowd->context = delivery->context;
    delivery->done = lone_ended;
    delivery->context = crowd;
    kiln_batcher_hand_on(batcher, delivery);
}

static void hand_on_one_by_one(struct kiln_batcher *batcher, struct kiln_crowd *crowd)
{
    go(batcher, crowd->n);
    for (uint32_t i = 0; i < crowd->n; i++)
        kiln_batcher_hand_on(batcher, crowd->all[i]);
    kiln_crowd_free(crowd);
}

/* Checks all of them; those that are refused are no more among them. */
static void sift(struct kiln_batcher *batcher, struct kiln_crowd *crowd)
{
    uint32_t n = 0;
    bool odd = false;

    crowd->samples = 0;
    for (uint32_t i = 0; i < crowd->n; i++) {
        struct kiln_delivery *delivery = crowd->all[i];
        bool unchecked = kiln_delivery_is_unchecked(delivery);
        bool goes_on = kiln_delivery_check(delivery);

        odd |= unchecked && !(goes_on && delivery->seal);
        if (!goes_on)
            continue;
        crowd->samples += kiln_delivery_items(delivery);
        crowd->all[n++] = delivery;
    }
    go(batcher, crowd->n - n);
    crowd->n = n;
    if (odd)
        atomic_store(&batcher->wary_until_ns, kiln_clock_mono_ns() + WARY_NS);
}

/* Makes the parts of what goes on together. */
static int put_together(struct kiln_batcher *batcher, struct kiln_crowd *crowd)
{
    struct kiln_batch *whole;
    int r = count_profiles(crowd);

    if (r == 0)
        r = kiln_crowd_join(crowd, &whole);
    return r < 0 ? r : split_up(batcher, crowd, whole);
}

static bool goes_alone(const struct kiln_batcher *batcher, const struct kiln_crowd *crowd)
{
    uint32_t most = batcher->opts.samples_max;

    return crowd->n == 1 && (most == 0 || crowd->samples <= most);
}

void kiln_crowd_send(struct kiln_batcher *batcher, struct kiln_crowd *crowd)
{
    if (crowd->n == 0) {
        kiln_crowd_free(crowd);
        return;
    }
    if (goes_alone(batcher, crowd)) {
        hand_on_alone(batcher, crowd);
        return;
    }
    if (put_together(batcher, crowd) < 0) {
        if (kiln_crowd_is_checked(crowd)) {
            hand_on_one_by_one(batcher, crowd);
        } else { /* one of them may be bad: once more without it */
            sift(batcher, crowd);
            kiln_crowd_send(batcher, crowd);
        }
        return;
    }
    give_back_batches(crowd);
    /* The last part to end frees them all, and that is none before the last is handed on. */
    for (uint32_t i = 0, n = crowd->n_parts; i < n; i++)
        kiln_batcher_hand_on(batcher, &crowd->parts[i]);
}

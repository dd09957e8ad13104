/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread kiln-publish, and deliveries.  A few gatherings wait at most, a few batches are with
 * the consumer at most; beyond, the oldest gathering is dropped and its samples are counted: a
 * receiver that is slow costs data, never memory and never the reader's time.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/host_int.h"

/* ---- the queue ---- */

void host_queue(struct kiln_host *host, struct kiln_gathering *gathering)
{
    struct kiln_gathering *dropped = NULL;

    pthread_mutex_lock(&host->lock);
    if (host->n_queue == QUEUE_MAX) {
        dropped = host->queue[0];
        host->dropped += dropped->n_counted;
        memmove(host->queue, host->queue + 1, (QUEUE_MAX - 1) * sizeof(host->queue[0]));
        host->n_queue--;
    }
    host->queue[host->n_queue++] = gathering;
    pthread_cond_broadcast(&host->turn);
    pthread_mutex_unlock(&host->lock);
    kiln_gathering_free(dropped);
}

void host_queue_close(struct kiln_host *host)
{
    pthread_mutex_lock(&host->lock);
    host->closed = true;
    pthread_cond_broadcast(&host->turn);
    pthread_mutex_unlock(&host->lock);
}

/* The oldest, once the consumer can take one more.  NULL: there will be no more. */
static struct kiln_gathering *next(struct kiln_host *host)
{
    struct kiln_gathering *gathering = NULL;

    pthread_mutex_lock(&host->lock);
    while (host->n_queue ? host->in_flight >= FLIGHT_MAX : !host->closed)
        pthread_cond_wait(&host->turn, &host->lock);
    if (host->n_queue) {
        gathering = host->queue[0];
        memmove(host->queue, host->queue + 1, (QUEUE_MAX - 1) * sizeof(host->queue[0]));
        host->n_queue--;
    }
    pthread_mutex_unlock(&host->lock);
    return gathering;
}

static void wait_for_consumer(struct kiln_host *host)
{
    pthread_mutex_lock(&host->lock);
    while (host->in_flight)
        pthread_cond_wait(&host->turn, &host->lock);
    pthread_mutex_unlock(&host->lock);
}

/* ---- deliveries ---- */

static void count_batch(struct kiln_host *host, bool failed)
{
    host->status.batches += !failed;
    host->status.batches_failed += failed;
}

static void done(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct kiln_host *host = delivery->context;

    if ((outcome->code < 0 || outcome->rejected) && kiln_log_every(&host->complained, 60))
        kiln_log(host->opts.log, KILN_LOG_WARN, "a batch of the host profiler was not taken",
                 "reason", "%s",
                 outcome->err.text[0] ? outcome->err.text : kiln_err_text(outcome->code), NULL);
    kiln_free(delivery);
    pthread_mutex_lock(&host->lock);
    count_batch(host, outcome->code < 0);
    host->in_flight--;
    pthread_cond_broadcast(&host->turn);
    pthread_mutex_unlock(&host->lock);
}

static void deliver(struct kiln_host *host, struct kiln_batch *batch, uint64_t taken)
{
    struct kiln_delivery *delivery = kiln_calloc(1, sizeof(*delivery));

    pthread_mutex_lock(&host->lock);
    if (delivery)
        host->in_flight++;
    else
        count_batch(host, true);
    pthread_mutex_unlock(&host->lock);
    if (!delivery) {
        kiln_batch_unref(batch);
        return;
    }
    delivery->batch = batch;
    delivery->taken = taken;
    delivery->tenant = host->opts.tenant;
    delivery->received_ns = kiln_clock_unix_ns();
    delivery->done = done;
    delivery->context = host;
    host->opts.consumer->consume(host->opts.consumer, delivery);
}

/* ---- the thread ---- */

static void tell_cost(struct kiln_host *host)
{
    struct kiln_resolver_cost cost;

    if (!host->resolver)
        return;
    kiln_resolver_cost(host->resolver, &cost);
    atomic_store(&host->names_cpu_ns, cost.cpu_ns);
    atomic_store(&host->child_bytes, cost.child_bytes);
    atomic_store(&host->names_bytes, cost.kept_bytes);
}

static void publish_one(struct kiln_host *host, struct kiln_gathering *gathering)
{
    uint64_t began = kiln_clock_mono_ns();
    struct kiln_batch *batch = NULL;
    struct kiln_err err = {0};
    int r = kiln_publish(host->publisher, gathering, &batch, &err);

    tell_cost(host);
    host_metrics_batch(host->metrics,
                       (double)(kiln_clock_mono_ns() - began) / (double)KILN_NS_PER_S);
    if (r == 0) {
        deliver(host, batch, gathering->n_counted);
        return;
    }
    kiln_log(host->opts.log, KILN_LOG_WARN, "samples of the host were dropped", "reason", "%s",
             err.text[0] ? err.text : kiln_err_text(r), NULL);
    pthread_mutex_lock(&host->lock);
    count_batch(host, true);
    host->dropped += gathering->n_counted;
    pthread_mutex_unlock(&host->lock);
}

void *host_publish(void *arg)
{
    struct kiln_host *host = arg;
    struct kiln_gathering *gathering;

    while ((gathering = next(host))) {
        publish_one(host, gathering);
        kiln_gathering_free(gathering);
        if (host->opts.alone)
            malloc_trim(0); /* a batch leaves holes, and the next one is a minute away */
    }
    wait_for_consumer(host);
    return NULL;
}

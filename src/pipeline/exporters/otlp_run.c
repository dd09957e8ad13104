/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that sends.  Two places have something to send: the queue in memory, and the spool.
 *
 *   the receiver is there   one of the queue, one of the spool, in turn
 *   it is away              the queue goes into the spool (where there is one); when the time has
 *                           come, one request is tried
 *   the end                 the queue is sent, for as long as there is time and the receiver is
 *                           there; what is left goes into the spool, and is for the next start.
 *                           Without one a receiver that was away is asked at once: it may be back
 *
 * A file that somebody answered, but did not take, is not tried again before the others: one
 * request that a receiver cannot digest does not stop the rest.
 *
 * A disk that is full is asked again after a while; what waits stays in memory.
 */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/exporters/otlp_int.h"

#define SPOOL_RETRY_NS (5 * KILN_NS_PER_S)

/* ---- the queue ---- */

static struct kiln_export_item *take_first(struct kiln_exporter *x)
{
    struct kiln_export_item *item;

    pthread_mutex_lock(&x->lock);
    item = x->first;
    if (item) {
        x->first = item->next;
        if (!x->first)
            x->last = &x->first;
        kiln_export_queued(x, -(int64_t)item->len);
    }
    pthread_mutex_unlock(&x->lock);
    return item;
}

static void put_first(struct kiln_exporter *x, struct kiln_export_item *item)
{
    pthread_mutex_lock(&x->lock);
    item->next = x->first;
    if (!x->first)
        x->last = &item->next;
    x->first = item;
    kiln_export_queued(x, (int64_t)item->len);
    pthread_mutex_unlock(&x->lock);
}

/* ---- the spool ---- */

static void on_drop(void *context, const struct kiln_spooled *head)
{
    kiln_export_dropped(context, KILN_EXPORT_SPOOL_FULL, head, "the spool is full");
}

/* True: it is on disk, or gone. */
static bool spool_item(struct kiln_exporter *x, struct kiln_export_item *item)
{
    const struct kiln_spool_drops drops = {on_drop, x};
    int r = kiln_spool_put(x->spool, &item->head, (struct kiln_str){item->body, item->len}, &drops);

    if (r == KILN_E_LIMIT) {
        kiln_export_dropped(x, KILN_EXPORT_SPOOL_FULL, &item->head, "larger than the spool");
        return true;
    }
    if (r == 0) {
        kiln_metric_add(x->count.spooled, 1);
        return true;
    }
    kiln_metric_add(x->count.spool_errors, 1);
    x->spool_next_ns = kiln_clock_mono_ns() + SPOOL_RETRY_NS;
    if (kiln_log_every(&x->said_spool, KILN_EXPORT_SAY_S))
        kiln_log(x->log, KILN_LOG_ERROR, "the spool cannot be written: profiles wait in memory",
                 "reason", "%s", kiln_err_text(r), NULL);
    return false;
}

static void spool_queue(struct kiln_exporter *x)
{
    struct kiln_export_item *item;

    while (x->spool && kiln_clock_mono_ns() >= x->spool_next_ns && (item = take_first(x))) {
        if (!spool_item(x, item)) {
            put_first(x, item);
            return;
        }
        kiln_export_item_free(item);
    }
}

/* Or gone: somebody has emptied the folder. */
static bool is_torn(int code)
{
    return code == -ENOENT || code == -EIO || code == KILN_E_TRUNCATED || code == KILN_E_CORRUPT ||
           code == KILN_E_UNKNOWN;
}

static void send_spooled(struct kiln_exporter *x)
{
    struct kiln_spooled head = {0};
    struct kiln_str body;
    uint32_t at = x->at < kiln_spool_files(x->spool) ? x->at : 0;
    int r = kiln_spool_get(x->spool, at, &x->file, &head, &body);

    if (is_torn(r)) {
        head = (struct kiln_spooled){0};
        kiln_export_dropped(x, KILN_EXPORT_TORN, &head, kiln_err_text(r));
    } else if (r < 0) {
        kiln_export_back_off(x, 0, kiln_err_text(r)); /* no memory, no descriptor */
        return;
    }
    if (r < 0 || kiln_export_try(x, &head, body) != KILN_EXPORT_AGAIN)
        kiln_spool_remove(x->spool, at);
    else
        x->at = x->answered ? at + 1 : at;
}

/* ---- sending ---- */

static void send_queued(struct kiln_exporter *x)
{
    struct kiln_export_item *item = take_first(x);

    if (!item)
        return;
    if (kiln_export_try(x, &item->head, (struct kiln_str){item->body, item->len}) ==
        KILN_EXPORT_AGAIN)
        put_first(x, item); /* from where it goes into the spool, or waits */
    else
        kiln_export_item_free(item);
}

static bool has_spooled(const struct kiln_exporter *x)
{
    return x->spool && kiln_spool_files(x->spool);
}

static bool has_queued(struct kiln_exporter *x)
{
    bool has;

    pthread_mutex_lock(&x->lock);
    has = x->first != NULL;
    pthread_mutex_unlock(&x->lock);
    return has;
}

static void send_one(struct kiln_exporter *x)
{
    x->from_spool = has_spooled(x) && (!x->from_spool || !has_queued(x));
    if (x->from_spool)
        send_spooled(x);
    else
        send_queued(x);
}

static void measure(struct kiln_exporter *x)
{
    kiln_metric_set(x->count.spool_bytes, x->spool ? (double)kiln_spool_bytes(x->spool) : 0);
    kiln_metric_set(x->count.spool_files, x->spool ? kiln_spool_files(x->spool) : 0);
}

/* When there is something to do: 0 now, UINT64_MAX when somebody says so. */
static uint64_t next_ns(const struct kiln_exporter *x)
{
    uint64_t next = UINT64_MAX;

    if (x->first || has_spooled(x))
        next = x->away ? x->next_ns : 0;
    if (x->first && x->away && x->spool && x->spool_next_ns < next)
        next = x->spool_next_ns;
    return next;
}

/* False: the end has come. */
static bool wait_for_work(struct kiln_exporter *x)
{
    bool stop;

    pthread_mutex_lock(&x->lock);
    while (!x->stop && next_ns(x) > kiln_clock_mono_ns()) {
        uint64_t until = next_ns(x);
        struct timespec at = kiln_timespec_of(until);

        if (until == UINT64_MAX)
            pthread_cond_wait(&x->wake, &x->lock);
        else
            pthread_cond_timedwait(&x->wake, &x->lock, &at);
    }
    stop = x->stop;
    pthread_mutex_unlock(&x->lock);
    return !stop;
}

/* Until `deadline_ns`, or somebody who has more to say: nobody has, the exporter is ending. */
static void wait_a_bit(struct kiln_exporter *x)
{
    uint64_t until = x->next_ns < x->deadline_ns ? x->next_ns : x->deadline_ns;
    struct timespec at = kiln_timespec_of(until);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

static void spool_now(struct kiln_exporter *x)
{
    x->spool_next_ns = 0;
    spool_queue(x);
}

/* What waits in memory: sent, spooled, or lost and counted. */
static void end(struct kiln_exporter *x)
{
    struct kiln_export_item *item;
    bool spooled = false;

    x->next_ns = 0;
    while (has_queued(x) && kiln_clock_mono_ns() < x->deadline_ns) {
        if (x->away && x->spool && !spooled) {
            spool_now(x);
            spooled = true; /* or the disk is full, and the receiver may come back in time */
        } else if (x->away && x->next_ns > kiln_clock_mono_ns()) {
            wait_a_bit(x);
        } else {
            send_queued(x);
        }
    }
    spool_now(x);
    while ((item = take_first(x))) {
        kiln_export_dropped(x, KILN_EXPORT_SHUTDOWN, &item->head, "it still waited at the end");
        kiln_export_item_free(item);
    }
    measure(x);
}

void *kiln_export_run(void *exporter)
{
    struct kiln_exporter *x = exporter;

    while (wait_for_work(x)) {
        if (x->away)
            spool_queue(x);
        if (!x->away || kiln_clock_mono_ns() >= x->next_ns)
            send_one(x);
        measure(x);
    }
    end(x);
    pthread_mutex_lock(&x->lock);
    x->is_over = true;
    pthread_cond_signal(&x->ended);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end has two parts.  Whoever hands deliveries over waits for them before he stops, so that the
 * queue lets go of them first, at a time of its own; when all have stopped it sends what it holds.
 */
#include <errno.h>

#include "base/clock.h"
#include "pipeline/exporters/queue_int.h"

void kiln_sendq_drop_ready(struct kiln_sendq *q)
{
    while (q->ready.first) {
        struct kiln_sendq_entry *entry = q->ready.first;

        q->ready.first = entry->next;
        if (entry->place.id)
            kiln_sendq_leave(q, entry);
        else
            kiln_sendq_drop(q, entry, KILN_SENDQ_SHUTDOWN, "it still waited at the end");
    }
    q->ready.last = &q->ready.first;
}

static void refuse_waiting(struct kiln_sendq *q)
{
    while (q->waiting.first) {
        struct kiln_parcel *parcel = q->waiting.first;

        q->waiting.first = parcel->next;
        kiln_metric_add(q->count.waiting, -(int64_t)parcel->n_deliveries);
        pthread_mutex_unlock(&q->lock);
        kiln_sendq_refuse(q, parcel, -ESHUTDOWN, "the exporter is stopping");
        pthread_mutex_lock(&q->lock);
    }
    q->waiting.last = &q->waiting.first;
}

/* ---- released ---- */

void kiln_sendq_release(struct kiln_sendq *q, uint64_t when_ns)
{
    pthread_mutex_lock(&q->lock);
    q->release_ns = when_ns;
    kiln_sendq_wake(q);
    pthread_mutex_unlock(&q->lock);
}

uint64_t kiln_sendq_release_due(struct kiln_sendq *q, uint64_t now_ns)
{
    if (q->release_ns > now_ns)
        return q->release_ns;
    q->release_ns = UINT64_MAX;
    q->letting_go = true;
    refuse_waiting(q);
    if (q->opts.wait_for_result) { /* all that is here is somebody's, who may try again */
        q->stopping = true;
        pthread_mutex_unlock(&q->lock);
        q->sender->ops->cancel(q->sender);
        pthread_mutex_lock(&q->lock);
    }
    pthread_cond_broadcast(&q->idle);
    return UINT64_MAX;
}

void kiln_sendq_let_go(struct kiln_sendq *q)
{
    pthread_mutex_lock(&q->lock);
    q->letting_go = true;
    kiln_sendq_wake(q);
    refuse_waiting(q);
    while (q->has_thread && (q->gathered || q->n_unsettled))
        pthread_cond_wait(&q->idle, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

void kiln_sendq_go_on(struct kiln_sendq *q)
{
    pthread_mutex_lock(&q->lock);
    q->letting_go = false;
    pthread_mutex_unlock(&q->lock);
}

/* ---- stopped ---- */

static bool is_idle(const struct kiln_sendq *q)
{
    return !q->n_entries && !q->n_unsettled && !q->waiting.first && !q->gathered;
}

void kiln_sendq_stop(struct kiln_sendq *q, uint64_t deadline_ns)
{
    struct timespec at = kiln_timespec_of(deadline_ns);
    int r = 0;

    if (!q->has_thread)
        return;
    pthread_mutex_lock(&q->lock);
    if (!q->stopping)
        q->stopping_ns = kiln_clock_mono_ns();
    q->stopping = true;
    kiln_sendq_wake(q);
    while (!is_idle(q) && r == 0)
        r = pthread_cond_timedwait(&q->idle, &q->lock, &at);
    q->over = true;
    kiln_sendq_wake(q);
    refuse_waiting(q);
    pthread_mutex_unlock(&q->lock);
    q->sender->ops->cancel(q->sender);
    pthread_mutex_lock(&q->lock);
    while (q->in_flight || q->n_unsettled || q->gathered)
        pthread_cond_wait(&q->idle, &q->lock);
    kiln_sendq_drop_ready(q);
    q->end_thread = true;
    kiln_sendq_wake(q);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    q->has_thread = false;
}

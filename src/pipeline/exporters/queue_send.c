/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whoever puts something into the queue, or makes room among those that are being sent, sends what
 * is next: no other thread need wake up for it.  One at a time does so, and does it for all.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pipeline/exporters/queue_int.h"

enum { SAY_S = 60 };
#define RETRY_AFTER_MOST (10 * 60 * KILN_NS_PER_S) /* longer, nobody means */

void kiln_sendq_entry_free(struct kiln_sendq_entry *entry)
{
    if (entry->charged)
        kiln_pool_give(entry->queue->opts.pool, entry->charged);
    kiln_export_item_free(entry->item);
    kiln_free(entry);
}

void kiln_sendq_leave(struct kiln_sendq *q, struct kiln_sendq_entry *entry)
{
    q->left_samples += entry->item->head.samples;
    q->n_entries--;
    kiln_sendq_entry_free(entry);
}

void kiln_sendq_append(struct kiln_sendq *q, struct kiln_sendq_entry *entry)
{
    entry->next = NULL;
    *q->ready.last = entry;
    q->ready.last = &entry->next;
    q->n_entries++;
}

/* ---- back-off ---- */

/* Within randomization of `ns`, so that many exporters do not come back together. */
static uint64_t about(struct kiln_sendq *q, uint64_t ns)
{
    double part;

    q->noise = (q->noise + kiln_clock_mono_ns()) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    part = (double)(q->noise >> 40) / (1 << 24) * 2 - 1;
    return (uint64_t)((double)ns * (1 + part * q->opts.retry.randomization));
}

static uint64_t next_delay(struct kiln_sendq *q, struct kiln_sendq_entry *entry, uint64_t throttle)
{
    const struct kiln_retry_opts *retry = &q->opts.retry;
    uint64_t delay;

    if (!entry->interval_ns)
        entry->interval_ns = retry->initial_ns;
    else
        entry->interval_ns = (uint64_t)((double)entry->interval_ns * retry->multiplier);
    if (entry->interval_ns > retry->max_ns)
        entry->interval_ns = retry->max_ns;
    delay = about(q, entry->interval_ns);
    if (throttle > RETRY_AFTER_MOST)
        throttle = RETRY_AFTER_MOST;
    return delay > throttle ? delay : throttle;
}

/* The end gives everything one more try; one that was under way when it came is not it. */
static bool is_last_try(const struct kiln_sendq *q, const struct kiln_sendq_entry *entry)
{
    return q->over || entry->tried_ns >= q->stopping_ns;
}

/* Under the lock.  False: no more tries. */
static bool try_again(struct kiln_sendq *q, struct kiln_sendq_entry *entry,
                      const struct kiln_export_verdict *verdict)
{
    const struct kiln_retry_opts *retry = &q->opts.retry;
    uint64_t now = kiln_clock_mono_ns(), delay = 0;

    if (retry->off || (q->stopping && is_last_try(q, entry)))
        return false;
    if (!q->stopping)
        delay = next_delay(q, entry, verdict->retry_after_ns);
    if (retry->elapsed_max_ns && now + delay - entry->began_ns > retry->elapsed_max_ns)
        return false;
    entry->due_ns = now + delay;
    entry->next = NULL;
    *q->retries.last = entry;
    q->retries.last = &entry->next;
    kiln_sendq_wake(q);
    return true;
}

/* ---- the end of an entry ---- */

static void note_outcome(struct kiln_parcel *parcel, int code,
                         const struct kiln_export_verdict *verdict)
{
    struct kiln_outcome *outcome = &parcel->outcome;

    if (code == 0) {
        outcome->rejected += (uint32_t)verdict->result.rejected;
        if (verdict->result.message[0])
            (void)!kiln_err_set(&outcome->err, -EINVAL, NULL, "%s", verdict->result.message);
        return;
    }
    if (outcome->code != -EAGAIN)
        outcome->code = code;
    outcome->retry_after_s = (uint32_t)(verdict->retry_after_ns / KILN_NS_PER_S) + 1;
    (void)!kiln_err_set(&outcome->err, code, NULL, "%s", verdict->reason);
}

/* Under the lock: it is out of the queue.  Returns the parcel that has ended with it, or NULL. */
static struct kiln_parcel *leave(struct kiln_sendq *q, struct kiln_sendq_entry *entry)
{
    struct kiln_parcel *parcel = entry->parcel;

    kiln_sendq_count_size(q, -(int64_t)entry->size);
    q->n_entries--;
    if (entry->place.id)
        kiln_journal_done(q->journal, &entry->place);
    kiln_sendq_entry_free(entry);
    return parcel && --parcel->left == 0 ? parcel : NULL;
}

void kiln_sendq_drop(struct kiln_sendq *q, struct kiln_sendq_entry *entry, enum kiln_sendq_drop why,
                     const char *reason)
{
    struct kiln_parcel *parcel;

    kiln_sendq_count_drop(q, why, entry->item->head.samples, reason);
    if (entry->parcel && !entry->parcel->outcome.code) {
        entry->parcel->outcome.code = -ESHUTDOWN;
        (void)!kiln_err_set(&entry->parcel->outcome.err, -ESHUTDOWN, NULL, "%s", reason);
    }
    parcel = leave(q, entry);
    if (!parcel)
        return;
    pthread_mutex_unlock(&q->lock);
    kiln_sendq_end_parcel(parcel);
    pthread_mutex_lock(&q->lock);
}

/* Under the lock: how it went, in counters and in what its delivery is told. */
static void tally(struct kiln_sendq *q, struct kiln_sendq_entry *entry,
                  const struct kiln_export_verdict *verdict)
{
    uint64_t samples = entry->item->head.samples;
    int code = 0;

    if (verdict->fate == KILN_EXPORT_SENT) {
        kiln_sendq_count_sent(q, samples);
        kiln_metric_add(q->count.rejected, (int64_t)verdict->result.rejected);
    } else if (verdict->fate == KILN_EXPORT_UNWANTED) {
        kiln_sendq_count_drop(q, entry->item->body ? KILN_SENDQ_REFUSED : KILN_SENDQ_DAMAGED,
                              samples, verdict->reason);
        code = -EINVAL;
    } else {
        kiln_sendq_count_drop(q, q->stopping ? KILN_SENDQ_SHUTDOWN : KILN_SENDQ_RETRIES, samples,
                              verdict->reason);
        code = -EAGAIN;
    }
    if (entry->parcel)
        note_outcome(entry->parcel, code, verdict);
}

static void say(struct kiln_sendq *q, const struct kiln_export_verdict *verdict)
{
    const struct kiln_export_result *result = &verdict->result;

    if (verdict->fate == KILN_EXPORT_AGAIN && !q->opts.retry.off &&
        kiln_log_every(&q->said_retry, SAY_S))
        kiln_log(q->opts.log, KILN_LOG_WARN, "exporting failed, will try again", "exporter", "%s",
                 q->name, "reason", "%s", verdict->reason, NULL);
    if (verdict->fate == KILN_EXPORT_SENT && (result->rejected || result->message[0]) &&
        kiln_log_every(&q->said_partial, SAY_S))
        kiln_log(q->opts.log, KILN_LOG_WARN,
                 result->rejected ? "the receiver did not take everything"
                                  : "the receiver took it with a remark",
                 "exporter", "%s", q->name, "rejected", "%llu",
                 (unsigned long long)result->rejected, "reason", "%s", result->message, NULL);
}

/* No more of it is under way, the end of its delivery included: who stops the queue may know. */
static void landed(struct kiln_sendq *q)
{
    pthread_mutex_lock(&q->lock);
    q->in_flight--;
    kiln_metric_add(q->count.in_flight, -1);
    if (q->stopping)
        pthread_cond_broadcast(&q->idle);
    pthread_mutex_unlock(&q->lock);
}

static void on_ended(struct kiln_send *send, const struct kiln_export_verdict *verdict)
{
    struct kiln_sendq_entry *entry = (struct kiln_sendq_entry *)send;
    struct kiln_sendq *q = entry->queue;
    struct kiln_parcel *ended, *admitted;

    kiln_metric_observe(q->count.seconds,
                        (double)(kiln_clock_mono_ns() - entry->tried_ns) / KILN_NS_PER_S);
    say(q, verdict);
    pthread_mutex_lock(&q->lock);
    if (verdict->fate == KILN_EXPORT_AGAIN && try_again(q, entry, verdict)) {
        pthread_mutex_unlock(&q->lock);
        return;
    }
    if (verdict->fate == KILN_EXPORT_AGAIN && q->stopping && entry->place.id) {
        kiln_sendq_leave(q, entry);
        ended = NULL;
    } else {
        tally(q, entry, verdict);
        ended = leave(q, entry);
    }
    admitted = kiln_sendq_admit(q);
    pthread_mutex_unlock(&q->lock);
    if (ended)
        kiln_sendq_end_parcel(ended);
    landed(q);
    kiln_sendq_settle(q, admitted);
}

/* ---- sending ---- */

/* What is on disk and cannot be read is as good as lost; what cannot be read now may be later. */
static void cannot_load(struct kiln_sendq_entry *entry, int code)
{
    struct kiln_export_verdict verdict = {
        .fate = code == -ENOMEM || code == -EMFILE ? KILN_EXPORT_AGAIN : KILN_EXPORT_UNWANTED};

    snprintf(verdict.reason, sizeof(verdict.reason), "the queue on disk: %s", kiln_err_text(code));
    on_ended(&entry->send, &verdict);
}

/* Called without the lock. */
static void send(struct kiln_sendq *q, struct kiln_sendq_entry *entry)
{
    int r = entry->place.id ? kiln_sendq_load(q, entry) : 0;

    entry->tried_ns = kiln_clock_mono_ns();
    if (!entry->began_ns) {
        entry->began_ns = entry->tried_ns;
        kiln_sendq_count_batch(q, entry->item);
    }
    entry->send = (struct kiln_send){.item = entry->item, .ended = on_ended};
    if (r < 0)
        cannot_load(entry, r);
    else
        q->sender->ops->send(q->sender, &entry->send);
}

static struct kiln_sendq_entry *next_ready(struct kiln_sendq *q)
{
    struct kiln_sendq_entry *entry = q->ready.first;

    if (!entry || !q->started || q->over || q->in_flight >= q->opts.consumers)
        return NULL;
    q->ready.first = entry->next;
    if (!q->ready.first)
        q->ready.last = &q->ready.first;
    q->in_flight++;
    kiln_metric_add(q->count.in_flight, 1);
    return entry;
}

void kiln_sendq_pump(struct kiln_sendq *q)
{
    struct kiln_sendq_entry *entry;

    pthread_mutex_lock(&q->lock);
    if (!q->pumping) {
        q->pumping = true;
        while ((entry = next_ready(q))) {
            pthread_mutex_unlock(&q->lock);
            send(q, entry);
            pthread_mutex_lock(&q->lock);
        }
        q->pumping = false;
    }
    pthread_mutex_unlock(&q->lock);
}

/* Takes one that is due; tells when the next one is. */
static struct kiln_sendq_entry *take_due(struct kiln_sendq *q, uint64_t now_ns, uint64_t *ret_next)
{
    struct kiln_sendq_entry **at = &q->retries.first, *found = NULL;

    *ret_next = UINT64_MAX;
    while (*at) {
        struct kiln_sendq_entry *entry = *at;

        if (!found && (entry->due_ns <= now_ns || q->stopping)) {
            found = entry;
            *at = entry->next;
            continue;
        }
        if (entry->due_ns < *ret_next)
            *ret_next = entry->due_ns;
        at = &entry->next;
    }
    q->retries.last = at;
    return found;
}

uint64_t kiln_sendq_retry_due(struct kiln_sendq *q, uint64_t now_ns)
{
    static const struct kiln_export_verdict given_up = {
        .fate = KILN_EXPORT_AGAIN,
        .reason = "it still waited for another try at the end",
    };
    struct kiln_sendq_entry *entry;
    uint64_t next;

    while ((entry = take_due(q, now_ns, &next))) {
        bool over = q->over;

        pthread_mutex_unlock(&q->lock);
        if (over) {
            on_ended(&entry->send, &given_up);
        } else {
            kiln_metric_add(q->count.retries, 1);
            send(q, entry);
        }
        pthread_mutex_lock(&q->lock);
    }
    return next;
}

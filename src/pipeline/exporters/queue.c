/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delivery is packed (encoded, compressed) by whoever brings it, and finds room or waits for it;
 * one that waits is let in by whoever makes room.  The thread looks after time: other tries, and
 * deliveries that are gathered.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/otlp_size.h"
#include "pipeline/exporters/queue_int.h"

enum { RETRY_AFTER_S = 1, SAY_S = 60 };

/* ---- ends ---- */

static void end_deliveries(struct kiln_delivery *const *deliveries, uint32_t n,
                           const struct kiln_outcome *outcome)
{
    for (uint32_t i = 0; i < n; i++)
        kiln_delivery_end(deliveries[i], outcome);
}

static void parcel_free(struct kiln_parcel *parcel)
{
    if (parcel) {
        kiln_free((void *)(uintptr_t)parcel->put.items);
        kiln_free(parcel->put.places);
    }
    kiln_free(parcel);
}

void kiln_sendq_end_parcel(struct kiln_parcel *parcel)
{
    end_deliveries(parcel->deliveries, parcel->n_deliveries, &parcel->outcome);
    parcel_free(parcel);
}

static void free_entries(struct kiln_parcel *parcel)
{
    while (parcel->first) {
        struct kiln_sendq_entry *entry = parcel->first;

        parcel->first = entry->next;
        kiln_sendq_entry_free(entry);
    }
}

void kiln_sendq_refuse(struct kiln_sendq *q, struct kiln_parcel *parcel, int code, const char *why)
{
    struct kiln_outcome outcome = {.code = code, .retry_after_s = RETRY_AFTER_S};

    (void)!kiln_err_set(&outcome.err, code, NULL, "%s", why);
    kiln_metric_add(q->count.enqueue_failed, (int64_t)parcel->samples);
    end_deliveries(parcel->deliveries, parcel->n_deliveries, &outcome);
    free_entries(parcel);
    parcel_free(parcel);
}

/* ---- parcels ---- */

uint64_t kiln_sendq_size_of(const struct kiln_sendq *q, const struct kiln_export_item *item)
{
    return q->opts.sizer == KILN_SIZE_BYTES   ? item->len
           : q->opts.sizer == KILN_SIZE_ITEMS ? item->head.samples
                                              : 1;
}

static int add_entry(struct kiln_sendq *q, struct kiln_parcel *parcel,
                     struct kiln_export_item *item)
{
    struct kiln_sendq_entry *entry = kiln_calloc(1, sizeof(*entry));

    if (!entry)
        return -ENOMEM;
    entry->queue = q;
    entry->parcel = parcel;
    entry->item = item;
    entry->size = kiln_sendq_size_of(q, item);
    entry->next = parcel->first;
    parcel->first = entry;
    parcel->left++;
    parcel->size += entry->size;
    parcel->samples += item->head.samples;
    parcel->bytes += item->len;
    return 0;
}

static void reverse(struct kiln_parcel *parcel)
{
    struct kiln_sendq_entry *entry = parcel->first, *behind = NULL;

    while (entry) {
        struct kiln_sendq_entry *next = entry->next;

        entry->next = behind;
        behind = entry;
        entry = next;
    }
    parcel->first = behind;
}

/* Takes the items, also where it fails. */
static struct kiln_parcel *parcel_of(struct kiln_sendq *q, struct kiln_delivery *const *deliveries,
                                     uint32_t n, struct kiln_export_item *items)
{
    struct kiln_parcel *parcel =
        kiln_calloc(1, sizeof(*parcel) + n * sizeof(parcel->deliveries[0]));
    int r = parcel ? 0 : -ENOMEM;

    while (items && r == 0) {
        struct kiln_export_item *item = items;

        r = add_entry(q, parcel, item);
        if (r == 0) {
            items = item->next;
            item->next = NULL;
        }
    }
    if (r < 0) {
        kiln_export_items_free(items);
        if (parcel)
            free_entries(parcel);
        parcel_free(parcel);
        return NULL;
    }
    reverse(parcel);
    parcel->queue = q;
    parcel->n_deliveries = n;
    memcpy(parcel->deliveries, deliveries, n * sizeof(deliveries[0]));
    return parcel;
}

/* ---- room ---- */

/* Under the lock: bytes that will be the queue's own.  Those of a disk, or of a delivery that stays
 * open, are not. */
static bool take_memory(struct kiln_sendq *q, struct kiln_parcel *parcel)
{
    if (!q->opts.pool || q->storage || q->opts.wait_for_result)
        return true;
    if (kiln_pool_take(q->opts.pool, parcel->bytes) < 0)
        return false;
    for (struct kiln_sendq_entry *entry = parcel->first; entry; entry = entry->next)
        entry->charged = entry->item->len;
    return true;
}

/* Under the lock.  What is too large for the queue may be in it alone. */
static bool take_room(struct kiln_sendq *q, struct kiln_parcel *parcel)
{
    if (q->used && q->used + parcel->size > q->opts.size)
        return false;
    if (!take_memory(q, parcel) && q->used)
        return false;
    kiln_sendq_count_size(q, (int64_t)parcel->size);
    q->n_unsettled++;
    return true;
}

struct kiln_parcel *kiln_sendq_admit(struct kiln_sendq *q)
{
    struct kiln_parcel *first = NULL, **last = &first;

    while (!q->over && q->waiting.first && take_room(q, q->waiting.first)) {
        struct kiln_parcel *parcel = q->waiting.first;

        q->waiting.first = parcel->next;
        parcel->next = NULL;
        *last = parcel;
        last = &parcel->next;
        kiln_metric_add(q->count.waiting, -(int64_t)parcel->n_deliveries);
    }
    if (!q->waiting.first)
        q->waiting.last = &q->waiting.first;
    return first;
}

void kiln_sendq_settled(struct kiln_sendq *q)
{
    pthread_mutex_lock(&q->lock);
    q->n_unsettled--;
    pthread_cond_broadcast(&q->idle);
    pthread_mutex_unlock(&q->lock);
}

struct kiln_parcel *kiln_sendq_turn_away(struct kiln_sendq *q, struct kiln_parcel *parcel, int code,
                                         const char *why)
{
    struct kiln_parcel *admitted;

    pthread_mutex_lock(&q->lock);
    kiln_sendq_count_size(q, -(int64_t)parcel->size);
    admitted = kiln_sendq_admit(q);
    pthread_mutex_unlock(&q->lock);
    kiln_sendq_refuse(q, parcel, code, why);
    kiln_sendq_settled(q);
    return admitted;
}

static int own(struct kiln_parcel *parcel)
{
    int r = 0;

    for (struct kiln_sendq_entry *entry = parcel->first; entry && r == 0; entry = entry->next)
        r = kiln_export_item_own(entry->item);
    return r;
}

void kiln_sendq_publish(struct kiln_sendq *q, struct kiln_parcel *parcel)
{
    bool keep = q->opts.wait_for_result;
    struct kiln_sendq_entry *entry = parcel->first, *next;

    parcel->first = NULL;
    pthread_mutex_lock(&q->lock);
    kiln_sendq_count_in(q, (int64_t)parcel->samples);
    for (; entry; entry = next) {
        next = entry->next;
        entry->parcel = keep ? parcel : NULL;
        kiln_sendq_append(q, entry);
    }
    pthread_mutex_unlock(&q->lock);
    if (!keep)
        kiln_sendq_end_parcel(parcel);
    kiln_sendq_settled(q);
}

/* Returns those for which it made room by not coming in. */
static struct kiln_parcel *settle_one(struct kiln_sendq *q, struct kiln_parcel *parcel)
{
    int r;

    if (q->journal)
        return kiln_sendq_store(q, parcel);
    r = q->opts.wait_for_result ? 0 : own(parcel);
    if (r < 0)
        return kiln_sendq_turn_away(q, parcel, -EAGAIN, kiln_err_text(r));
    kiln_sendq_publish(q, parcel);
    return NULL;
}

void kiln_sendq_settle(struct kiln_sendq *q, struct kiln_parcel *parcels)
{
    while (parcels) {
        struct kiln_parcel *parcel = parcels, *more, **last = &parcels;

        parcels = parcel->next;
        parcel->next = NULL;
        more = settle_one(q, parcel);
        while (more && *last)
            last = &(*last)->next;
        if (more)
            *last = more;
    }
    kiln_sendq_pump(q);
}

enum entrance { ENTERED, WAITS, FULL, CLOSED };

static enum entrance enter(struct kiln_sendq *q, struct kiln_parcel *parcel)
{
    enum entrance way = WAITS;

    pthread_mutex_lock(&q->lock);
    if (q->over) {
        way = CLOSED;
    } else if (!q->waiting.first && take_room(q, parcel)) {
        way = ENTERED;
    } else if (q->letting_go) {
        way = CLOSED;
    } else if (q->opts.refuse_when_full) {
        way = FULL;
    } else {
        *q->waiting.last = parcel;
        q->waiting.last = &parcel->next;
        kiln_metric_add(q->count.waiting, parcel->n_deliveries);
    }
    pthread_mutex_unlock(&q->lock);
    return way;
}

/* ---- in ---- */

/* Samples that are in no request, because one of them is too large for any. */
static void note_lost(struct kiln_sendq *q, const struct kiln_delivery *content,
                      struct kiln_parcel *parcel, const struct kiln_err *err)
{
    uint64_t all = kiln_delivery_items(content);
    uint64_t lost = all > parcel->samples ? all - parcel->samples : 0;

    kiln_sendq_count_in(q, (int64_t)lost);
    kiln_sendq_count_drop(q, KILN_SENDQ_TOO_LARGE, lost, err->text);
    parcel->outcome.rejected = 1;
    parcel->outcome.err = *err;
}

static void end_all(struct kiln_sendq *q, struct kiln_delivery *const *deliveries, uint32_t n,
                    const struct kiln_delivery *content, struct kiln_outcome *outcome)
{
    if (outcome->code < 0)
        kiln_metric_add(q->count.enqueue_failed, (int64_t)kiln_delivery_items(content));
    end_deliveries(deliveries, n, outcome);
}

static int pack_part(void *queue, struct kiln_batch *part, struct kiln_export_item **ret_items,
                     struct kiln_err *err)
{
    struct kiln_sendq *q = queue;
    const struct kiln_delivery delivery = {.signal = q->opts.signal, .batch = part};

    return q->sender->ops->pack(q->sender, &delivery, ret_items, err);
}

/* Each part of at most batch::max_size by itself. */
static int pack_parts(struct kiln_sendq *q, const struct kiln_delivery *content,
                      struct kiln_export_item **ret_items, struct kiln_err *err)
{
    const struct kiln_batching_opts *batching = &q->opts.batching;
    struct kiln_split_opts limits = {0};

    if (batching->sizer == KILN_SIZE_BYTES)
        limits.bytes_max = batching->max;
    else
        limits.samples_max = batching->max > UINT32_MAX ? UINT32_MAX : (uint32_t)batching->max;
    return kiln_export_parts(content->batch, &limits, pack_part, q, ret_items, err);
}

static bool is_above_max(const struct kiln_sendq *q, const struct kiln_batch *batch)
{
    const struct kiln_batching_opts *batching = &q->opts.batching;

    if (!batching->on || !batching->max || !batch)
        return false;
    return batching->max <
           (batching->sizer == KILN_SIZE_BYTES ? kiln_otlp_size_max(batch) : batch->n_observations);
}

static int pack(struct kiln_sendq *q, const struct kiln_delivery *content,
                struct kiln_export_item **ret_items, struct kiln_err *err)
{
    return is_above_max(q, content->batch)
               ? pack_parts(q, content, ret_items, err)
               : q->sender->ops->pack(q->sender, content, ret_items, err);
}

void kiln_sendq_take(struct kiln_sendq *q, struct kiln_delivery *const *deliveries, uint32_t n,
                     const struct kiln_delivery *content)
{
    struct kiln_outcome outcome = {0};
    struct kiln_export_item *items = NULL;
    struct kiln_parcel *parcel = NULL;
    enum entrance way;
    int r = pack(q, content, &items, &outcome.err);

    if (r == -ENOMEM) {
        kiln_export_items_free(items);
        items = NULL;
    }
    if (items) {
        parcel = parcel_of(q, deliveries, n, items);
        r = parcel ? r : -ENOMEM;
    }
    if (!parcel) {
        outcome.code = r == -ENOMEM ? -EAGAIN : r;
        outcome.retry_after_s = RETRY_AFTER_S;
        end_all(q, deliveries, n, content, &outcome);
        return;
    }
    if (r < 0)
        note_lost(q, content, parcel, &outcome.err);
    way = enter(q, parcel);
    if (way == ENTERED)
        kiln_sendq_settle(q, parcel);
    else if (way == FULL)
        kiln_sendq_refuse(q, parcel, -EAGAIN, "the sending queue is full");
    else if (way == CLOSED)
        kiln_sendq_refuse(q, parcel, -ESHUTDOWN, "the exporter is stopping");
    else if (kiln_log_every(&q->said_full, SAY_S))
        kiln_log(q->opts.log, KILN_LOG_WARN, "the sending queue is full: deliveries wait",
                 "exporter", "%s", q->name, NULL);
}

/* What cannot go on as it came is encoded anew, from its batch. */
static int open_if_needed(const struct kiln_sendq *q, struct kiln_delivery *delivery,
                          struct kiln_err *err)
{
    return delivery->seal && !q->sender->ops->passes(q->sender, delivery)
               ? kiln_delivery_open(delivery, err)
               : 0;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_sendq *q = (struct kiln_sendq *)consumer;
    struct kiln_outcome outcome = {.retry_after_s = RETRY_AFTER_S};

    kiln_sendq_count_delivery(q, delivery);
    outcome.code = open_if_needed(q, delivery, &outcome.err);
    if (outcome.code < 0)
        end_all(q, &delivery, 1, delivery, &outcome);
    else if (q->opts.batching.on && delivery->batch)
        kiln_sendq_gather(q, delivery);
    else
        kiln_sendq_take(q, &delivery, 1, delivery);
}

static bool is_light(struct kiln_consumer *consumer, const struct kiln_delivery *delivery)
{
    const struct kiln_sendq *q = (const struct kiln_sendq *)consumer;

    (void)delivery;
    return q->consumer.takes_sealed && q->sender->light && !q->storage;
}

struct kiln_consumer *kiln_sendq_consumer(struct kiln_sendq *queue)
{
    return &queue->consumer;
}

/* ---- the thread ---- */

void kiln_sendq_wake(struct kiln_sendq *q)
{
    q->woken++;
    pthread_cond_signal(&q->wake);
}

static void *run(void *queue)
{
    struct kiln_sendq *q = queue;

    pthread_mutex_lock(&q->lock);
    while (!q->end_thread) {
        uint64_t now = kiln_clock_mono_ns(), seen = q->woken;
        uint64_t release = kiln_sendq_release_due(q, now);
        uint64_t retry = kiln_sendq_retry_due(q, now), flush = kiln_sendq_flush(q, now);
        uint64_t next = retry < flush ? retry : flush;
        struct timespec at;

        if (seen != q->woken) /* while it had let go of the lock */
            continue;
        next = release < next ? release : next;
        at = kiln_timespec_of(next);
        if (next == UINT64_MAX)
            pthread_cond_wait(&q->wake, &q->lock);
        else if (next > now)
            pthread_cond_timedwait(&q->wake, &q->lock, &at);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- made and ended ---- */

static char *copy_of(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = kiln_malloc(n);

    return copy ? memcpy(copy, text, n) : NULL;
}

static void init(struct kiln_sendq *q)
{

    q->consumer.consume = consume;
    q->consumer.takes_sealed = q->sender->ops->passes && !q->opts.batching.on;
    q->consumer.is_light = is_light;
    q->consumer.takes_json = q->sender->takes_json;
    q->ready.last = &q->ready.first;
    q->retries.last = &q->retries.first;
    q->waiting.last = &q->waiting.first;
    q->noise = kiln_clock_unix_ns();
    q->release_ns = UINT64_MAX;
    pthread_mutex_init(&q->lock, NULL);
    kiln_cond_init(&q->wake);
    kiln_cond_init(&q->idle);
    kiln_sendq_open_counts(q);
}

int kiln_sendq_new(const struct kiln_sendq_opts *opts, struct kiln_sender *sender,
                   struct kiln_sendq **ret_queue, struct kiln_err *err)
{
    struct kiln_sendq *q = kiln_calloc(1, sizeof(*q));

    if (q) {
        q->name = copy_of(opts->name);
        q->storage = opts->storage ? copy_of(opts->storage) : NULL;
    }
    if (!q || !q->name || (opts->storage && !q->storage)) {
        if (q)
            kiln_free(q->name);
        kiln_free(q);
        sender->ops->free(sender);
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    }
    q->opts = *opts;
    q->sender = sender;
    init(q);
    *ret_queue = q;
    return 0;
}

int kiln_sendq_start(struct kiln_sendq *q, struct kiln_err *err)
{
    int r = q->storage ? kiln_sendq_open_disk(q, err) : 0;

    if (r < 0)
        return r;
    r = kiln_thread_start("kiln-queue", run, q, &q->thread);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "no thread: %s", kiln_err_text(r));
    q->has_thread = true;
    pthread_mutex_lock(&q->lock);
    q->started = true;
    pthread_mutex_unlock(&q->lock);
    kiln_sendq_pump(q);
    return 0;
}

void kiln_sendq_free(struct kiln_sendq *q)
{
    if (!q)
        return;
    kiln_journal_close(q->journal); /* whose thread may be sending */
    q->sender->ops->free(q->sender);
    kiln_sendq_drop_ready(q);
    /* What is on disk is counted anew by who opens it, perhaps under the same names. */
    kiln_sendq_count_in(q, -(int64_t)q->left_samples);
    kiln_sendq_count_size(q, -(int64_t)q->used);
    pthread_cond_destroy(&q->wake);
    pthread_cond_destroy(&q->idle);
    pthread_mutex_destroy(&q->lock);
    kiln_free(q->name);
    kiln_free(q->storage);
    kiln_free(q);
}

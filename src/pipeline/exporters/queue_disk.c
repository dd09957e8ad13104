/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parcel is written as one piece, and its deliveries end when that is durable.  What will be sent
 * soon keeps its bytes in memory; all else is read again when its turn comes.
 */
#include <errno.h>

#include "base/mem.h"
#include "pipeline/exporters/queue_int.h"

enum { BODIES_BESIDE = 16 }; /* so many, beyond those that are being sent, stay in memory */

/* ---- out ---- */

static void forget_body(struct kiln_export_item *item)
{
    if (!item->borrowed)
        kiln_free(item->body);
    item->body = NULL;
    item->borrowed = false;
}

static void keep_some(struct kiln_sendq *q, struct kiln_parcel *parcel)
{
    uint64_t room = (uint64_t)q->opts.consumers + BODIES_BESIDE, held;
    uint32_t i = 0;

    pthread_mutex_lock(&q->lock);
    held = q->n_entries;
    pthread_mutex_unlock(&q->lock);
    for (struct kiln_sendq_entry *entry = parcel->first; entry; entry = entry->next, i++) {
        entry->place = parcel->put.places[i];
        if (held + i >= room || kiln_export_item_own(entry->item) < 0)
            forget_body(entry->item);
    }
}

static void on_stored(struct kiln_journal_put *put, int code)
{
    struct kiln_parcel *parcel = (struct kiln_parcel *)put;
    struct kiln_sendq *q = parcel->queue;
    struct kiln_parcel *admitted = NULL;

    if (code < 0) {
        admitted = kiln_sendq_turn_away(q, parcel,
                                        code == -ENOMEM   ? -EAGAIN
                                        : code == -ENOSPC ? -ENOSPC
                                                          : -EIO,
                                        kiln_err_text(code));
    } else {
        keep_some(q, parcel);
        kiln_sendq_publish(q, parcel);
    }
    kiln_sendq_settle(q, admitted);
}

struct kiln_parcel *kiln_sendq_store(struct kiln_sendq *q, struct kiln_parcel *parcel)
{
    struct kiln_export_item **items = kiln_malloc(parcel->left * sizeof(items[0]));
    struct kiln_sendq_entry *entry = parcel->first;

    parcel->put = (struct kiln_journal_put){
        .items = items,
        .places = kiln_calloc(parcel->left, sizeof(parcel->put.places[0])),
        .n = parcel->left,
        .stored = on_stored,
    };
    if (!items || !parcel->put.places)
        return kiln_sendq_turn_away(q, parcel, -EAGAIN, kiln_err_text(-ENOMEM));
    for (uint32_t i = 0; entry; entry = entry->next) {
        if (!kiln_journal_takes(entry->item))
            return kiln_sendq_turn_away(q, parcel, KILN_E_LIMIT,
                                        "the request is larger than a queue on disk takes");
        items[i++] = entry->item;
    }
    kiln_journal_put(q->journal, &parcel->put);
    return NULL;
}

/* ---- in ---- */

int kiln_sendq_load(struct kiln_sendq *q, struct kiln_sendq_entry *entry)
{
    struct kiln_buf body;
    int r;

    if (entry->item->body)
        return 0;
    kiln_buf_init(&body, SIZE_MAX / 2);
    r = kiln_journal_read(q->journal, &entry->place, &body);
    if (r == 0)
        kiln_buf_take(&body, &entry->item->body, &entry->item->len);
    kiln_buf_done(&body);
    return r;
}

/* One that an earlier process has left. */
static int on_found(void *context, const struct kiln_spooled *head, size_t body_bytes,
                    const struct kiln_journal_place *place)
{
    struct kiln_sendq *q = context;
    struct kiln_sendq_entry *entry = kiln_calloc(1, sizeof(*entry));
    struct kiln_export_item *item = kiln_calloc(1, sizeof(*item));

    if (!entry || !item) {
        kiln_free(entry);
        kiln_free(item);
        return -ENOMEM;
    }
    q->has_foreign |=
        head->json && !q->sender->takes_json && q->opts.signal != KILN_SIGNAL_PROFILES;
    *item = (struct kiln_export_item){.head = *head, .len = body_bytes};
    *entry = (struct kiln_sendq_entry){
        .queue = q, .item = item, .place = *place, .size = kiln_sendq_size_of(q, item)};
    kiln_sendq_count_in(q, (int64_t)head->samples);
    kiln_sendq_count_size(q, (int64_t)entry->size);
    kiln_sendq_append(q, entry);
    return 0;
}

int kiln_sendq_open_disk(struct kiln_sendq *q, struct kiln_err *err)
{
    const struct kiln_journal_opts opts = {.dir = q->storage,
                                           .room = q->opts.room,
                                           .no_sync = q->opts.no_sync,
                                           .found = on_found,
                                           .context = q};
    int r = kiln_journal_open(&opts, &q->journal, err);
    uint32_t damaged = r == 0 ? kiln_journal_damaged(q->journal) : 0;

    kiln_metric_add(q->count.damaged, damaged);
    if (damaged)
        kiln_log(q->opts.log, KILN_LOG_ERROR,
                 "files of the queue on disk are damaged and set aside", "exporter", "%s", q->name,
                 "files", "%u", damaged, "folder", "%s", q->storage, NULL);
    if (r == 0 && q->has_foreign) /* nobody can make protobuf of them: they stay */
        return kiln_err_set(err, KILN_E_UNSUPPORTED, q->storage,
                            "requests wait here as JSON, which gRPC does not carry: have an "
                            "otlp_http exporter send them first, or delete the folder");
    if (r == 0 && q->n_entries)
        kiln_log(q->opts.log, KILN_LOG_INFO, "requests were left on disk", "exporter", "%s",
                 q->name, "requests", "%llu", (unsigned long long)q->n_entries, NULL);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_int - what the files of the queue share:
 *
 *   queue.c        made, started, freed; deliveries in
 *   queue_send.c   entries out: the order of sending, tries, ends
 *   queue_gather.c deliveries that become one request
 *   queue_count.c  metrics, lines of the log
 *   queue_disk.c   between the queue and its journal
 *   queue_stop.c   deliveries released, the queue stopped
 *
 * An entry is a request in the queue; a parcel is the entries of one delivery (or of those that
 * became one), and knows the deliveries for as long as they are open.
 *
 * Threads: everything below `lock` is under it, and nobody calls out while he holds it.
 */
#ifndef KILN_PIPELINE_EXPORTERS_QUEUE_INT_H
#define KILN_PIPELINE_EXPORTERS_QUEUE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "pipeline/exporters/journal.h"
#include "pipeline/exporters/queue.h"

/* Why something was dropped: a label of the metrics. */
#define KILN_SENDQ_DROP_MAP(X)                                                                     \
    X(TOO_LARGE, "too_large") /* one sample is more than a request may hold */                     \
    X(REFUSED, "refused")     /* the receiver does not want it */                                  \
    X(RETRIES, "retries")     /* tried for as long as retry_on_failure says */                     \
    X(DAMAGED, "damaged")     /* the disk does not give it back */                                 \
    X(SHUTDOWN, "shutdown")   /* it still waited, and there is no disk */

enum kiln_sendq_drop {
#define X(name, word) KILN_SENDQ_##name,
    KILN_SENDQ_DROP_MAP(X)
#undef X
        KILN_SENDQ_DROPS
};

struct kiln_sendq_counts {
    struct kiln_metric *accepted, *queued, *dropped[KILN_SENDQ_DROPS];
    struct kiln_metric *sent, *send_failed, *enqueue_failed;
    struct kiln_metric *size, *capacity, *in_flight, *waiting, *rejected, *retries, *seconds,
        *damaged;
    struct kiln_metric *enqueue_size, *enqueue_bytes, *send_size, *send_bytes;
};

struct kiln_parcel;

struct kiln_sendq_entry {
    struct kiln_send send; /* first */
    struct kiln_sendq *queue;
    struct kiln_sendq_entry *next;
    struct kiln_parcel *parcel; /* NULL: no delivery waits for it */
    struct kiln_export_item *item;
    struct kiln_journal_place place; /* of a queue on disk; then the item may lack its body */
    uint64_t size;                   /* by the queue's sizer */
    size_t charged;                  /* of opts.pool */
    uint64_t began_ns;               /* the first try; 0: none yet */
    uint64_t tried_ns;               /* the last one */
    uint64_t interval_ns;            /* of the back-off */
    uint64_t due_ns;                 /* of the next try */
};

struct kiln_parcel {
    struct kiln_journal_put put; /* first: on its way to the disk */
    struct kiln_sendq *queue;
    struct kiln_parcel *next;
    struct kiln_sendq_entry *first;
    uint32_t left; /* entries that have not ended */
    uint64_t size, samples, bytes;
    struct kiln_outcome outcome;
    uint32_t n_deliveries;
    struct kiln_delivery *deliveries[];
};

struct kiln_entry_list {
    struct kiln_sendq_entry *first, **last;
};
struct kiln_parcel_list {
    struct kiln_parcel *first, **last;
};

/* Deliveries that wait to become one request: those whose senders are alike. */
struct kiln_gathered {
    struct kiln_gathered *next;
    struct kiln_buf kind; /* by opts.batching.apart */
    struct kiln_delivery **list;
    uint32_t n, cap;
    uint64_t size;   /* by the sizer of batching */
    uint64_t due_ns; /* when it goes, whatever there is */
};

struct kiln_sendq {
    struct kiln_consumer consumer; /* first */
    struct kiln_sendq_opts opts;
    char *name;
    char *storage;
    struct kiln_sender *sender;
    struct kiln_journal *journal; /* NULL: in memory, or not started */
    struct kiln_sendq_counts count;
    _Atomic uint64_t said_retry, said_drop, said_partial, said_full;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;
    pthread_cond_t wake, idle; /* of the thread; of who stops it */
    struct kiln_entry_list ready, retries;
    struct kiln_parcel_list waiting; /* for room */
    struct kiln_gathered *gathered;  /* none is empty */
    uint64_t used;                   /* of opts.size */
    uint64_t n_entries;              /* in the queue */
    uint64_t n_unsettled; /* parcels that are on their way into it, until their deliveries ended */
    uint32_t in_flight;   /* being sent, or in back-off; until their deliveries ended */
    bool pumping, started, stopping, over, end_thread;
    bool has_foreign;      /* entries of an earlier process that the sender cannot send */
    bool letting_go;       /* no delivery waits for room or for company */
    uint64_t release_ns;   /* when it lets go */
    uint64_t stopping_ns;  /* tries that begin from here on are the last */
    uint64_t left_samples; /* that stay on disk */
    uint64_t woken;        /* how often the thread was told to look */
    uint64_t noise;
};

/* ---- queue.c ---- */

/*
 * Deliveries into the queue, as what `content` packs to: the one delivery, or what they have
 * merged into.
 */
void kiln_sendq_take(struct kiln_sendq *q, struct kiln_delivery *const *deliveries, uint32_t n,
                     const struct kiln_delivery *content);
/* Not into the queue: the deliveries end, and may be tried again by whoever sent them. */
void kiln_sendq_refuse(struct kiln_sendq *q, struct kiln_parcel *parcel, int code, const char *why);
/* Its deliveries end, as its outcome says. */
void kiln_sendq_end_parcel(struct kiln_parcel *parcel);
/*
 * A parcel for which room was taken does not come in, and its deliveries end.  Returns those that
 * have its room now, which the caller settles.
 */
KILN_CHECK struct kiln_parcel *
kiln_sendq_turn_away(struct kiln_sendq *q, struct kiln_parcel *parcel, int code, const char *why);
void kiln_sendq_settled(struct kiln_sendq *q); /* one of n_unsettled */
void kiln_sendq_wake(struct kiln_sendq *q);    /* under the lock */
/* Its entries are the queue's now; its deliveries end, unless they wait for the result. */
void kiln_sendq_publish(struct kiln_sendq *q, struct kiln_parcel *parcel);
/* By the sizer of the queue. */
uint64_t kiln_sendq_size_of(const struct kiln_sendq *q, const struct kiln_export_item *item);
/* Those that have room now, taken off; the caller settles them without the lock. */
struct kiln_parcel *kiln_sendq_admit(struct kiln_sendq *q);
void kiln_sendq_settle(struct kiln_sendq *q, struct kiln_parcel *parcels);

/* ---- queue_send.c ---- */

void kiln_sendq_pump(struct kiln_sendq *q);
/* Of the thread: sends what is due; returns when the next is (UINT64_MAX: nothing waits). */
uint64_t kiln_sendq_retry_due(struct kiln_sendq *q, uint64_t now_ns);
void kiln_sendq_append(struct kiln_sendq *q, struct kiln_sendq_entry *entry);
void kiln_sendq_entry_free(struct kiln_sendq_entry *entry);
/* One that is in no list stays on disk, for who opens the queue next; under the lock. */
void kiln_sendq_leave(struct kiln_sendq *q, struct kiln_sendq_entry *entry);
/* One that is in no list leaves the queue; under the lock. */
void kiln_sendq_drop(struct kiln_sendq *q, struct kiln_sendq_entry *entry, enum kiln_sendq_drop why,
                     const char *reason);

/* ---- queue_disk.c ---- */

KILN_CHECK int kiln_sendq_open_disk(struct kiln_sendq *q, struct kiln_err *err);
/* Has the parcel, for which there is room, written; settles it then.  As turn_away(). */
KILN_CHECK struct kiln_parcel *kiln_sendq_store(struct kiln_sendq *q, struct kiln_parcel *parcel);
/* Reads the body of an entry again, where it is not there. */
KILN_CHECK int kiln_sendq_load(struct kiln_sendq *q, struct kiln_sendq_entry *entry);

/* ---- queue_gather.c ---- */

void kiln_sendq_gather(struct kiln_sendq *q, struct kiln_delivery *delivery);
/* Sends on what was gathered, where it is due (or stopping); returns when it will be. */
uint64_t kiln_sendq_flush(struct kiln_sendq *q, uint64_t now_ns);

/* ---- queue_stop.c ---- */

/* Of the thread: lets go of deliveries where that is due; returns when it will be. */
uint64_t kiln_sendq_release_due(struct kiln_sendq *q, uint64_t now_ns);
/* Under the lock: what still waits is given up, or left to the next process. */
void kiln_sendq_drop_ready(struct kiln_sendq *q);

/* ---- queue_count.c ---- */

void kiln_sendq_open_counts(struct kiln_sendq *q);
/* Samples that are the queue's now; and those that are no more, because they were sent or dropped.
 * Each is one step: who looks at the metrics finds that they add up. */
void kiln_sendq_count_in(struct kiln_sendq *q, int64_t samples);
void kiln_sendq_count_sent(struct kiln_sendq *q, uint64_t samples);
void kiln_sendq_count_drop(struct kiln_sendq *q, enum kiln_sendq_drop why, uint64_t samples,
                           const char *reason);
/* Measures a delivery that comes, and a request that deliveries were gathered for. */
void kiln_sendq_count_delivery(struct kiln_sendq *q, const struct kiln_delivery *delivery);
void kiln_sendq_count_batch(struct kiln_sendq *q, const struct kiln_export_item *item);
/* Room that is taken, or given back. */
void kiln_sendq_count_size(struct kiln_sendq *q, int64_t size);

#endif /* KILN_PIPELINE_EXPORTERS_QUEUE_INT_H */

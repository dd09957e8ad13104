/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue - requests that wait for their turn and for another try, before any sender (sender.h).
 *
 *   delivery ─▶ batch ─▶ pack ─▶ room? ─▶ queue ─▶ sender, `consumers` at once ─▶ sent, or dropped
 *      ▲       (merge)             │        ▲                    │
 *      │                        waits       └──── back-off ◀─────┘
 *      └─ ends when it is in memory; when it is on disk (`storage`, journal.h); or, with
 *         `wait_for_result`, when it was sent
 *
 * A delivery that finds no room stays open until there is some: whoever sent it waits, and nothing
 * is refused, unless `refuse_when_full`.  What does not fit at all is let in when nothing else is.
 *
 * A request that is being tried, or waits for another try, keeps its place among the `consumers`
 * and in the queue: a receiver that is away is asked by so many requests and no more.
 *
 * Counted under the Collector's names, with the label exporter: otelcol_exporter_sent_x,
 * _send_failed_x, _enqueue_failed_x (x: profile_samples, spans...), _queue_size, _queue_capacity,
 * _in_flight_requests; and kiln_exporter_{accepted,queued,dropped}_x, so that at any time
 *
 *   accepted = sent + queued + dropped (by reason)
 *
 * Threads: consume() from anywhere; sends end on any thread.
 */
#ifndef KILN_PIPELINE_EXPORTERS_QUEUE_H
#define KILN_PIPELINE_EXPORTERS_QUEUE_H

#include "base/log.h"
#include "base/metric.h"
#include "pipeline/exporters/sender.h"
#include "pipeline/metadata.h"

enum kiln_sizer { KILN_SIZE_REQUESTS, KILN_SIZE_ITEMS, KILN_SIZE_BYTES };

/* Waits initial, initial * multiplier, ... each somewhat shorter or longer; no more than `max`. */
struct kiln_retry_opts {
    bool off;
    uint64_t initial_ns, max_ns;
    uint64_t elapsed_max_ns; /* since the first try; 0: for ever */
    double randomization, multiplier;
};

/* Deliveries become one request of at least `min`, or what there is after flush_ns. */
struct kiln_batching_opts {
    bool on;
    enum kiln_sizer sizer; /* ITEMS or BYTES */
    uint64_t flush_ns, min, max;
    struct kiln_metadata_keys apart; /* what differs in one of these does not become one */
};

struct kiln_journal_room;

struct kiln_sendq_opts {
    const char *name; /* of the exporter: a label */
    enum kiln_signal signal;
    uint32_t consumers;
    enum kiln_sizer sizer;
    uint64_t size;
    bool wait_for_result, refuse_when_full;
    struct kiln_retry_opts retry;
    struct kiln_batching_opts batching;
    const char *storage;            /* the folder of a queue on disk; NULL: in memory */
    struct kiln_journal_room *room; /* what it and others may take of the disk; NULL: no limit */
    bool no_sync;                   /* acknowledged before the disk has it for good */
    struct kiln_pool *pool;         /* of what waits in memory; NULL: only `size` bounds it */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

/*
 * otelcol_exporter_sent_x and otelcol_exporter_send_failed_x, also of exporters without a queue.
 */
struct kiln_metric *kiln_exporter_sent(struct kiln_metrics *metrics, enum kiln_signal signal,
                                       const char *exporter);
struct kiln_metric *kiln_exporter_send_failed(struct kiln_metrics *metrics, enum kiln_signal signal,
                                              const char *exporter);

struct kiln_sendq;

/* Takes the sender, also where it fails. */
KILN_CHECK int kiln_sendq_new(const struct kiln_sendq_opts *opts, struct kiln_sender *sender,
                              struct kiln_sendq **ret_queue, struct kiln_err *err);
/* What an earlier process left on disk is sent first. */
KILN_CHECK int kiln_sendq_start(struct kiln_sendq *queue, struct kiln_err *err);
/*
 * From `when_ns` (monotonic) on no delivery waits for room, for company or for a result: those that
 * do end, and may be tried again by whoever sent them.  For whoever waits for his deliveries before
 * he stops.
 */
void kiln_sendq_release(struct kiln_sendq *queue, uint64_t when_ns);
/*
 * Everything is tried once more until `deadline_ns` (monotonic).  What is left then stays on disk;
 * without a disk it is dropped and counted.
 */
void kiln_sendq_stop(struct kiln_sendq *queue, uint64_t deadline_ns);
/*
 * Whoever hands deliveries to it will be another: no delivery is left open.  Until go_on, one that
 * finds no room is refused, to be tried again.  Not with `wait_for_result`.
 */
void kiln_sendq_let_go(struct kiln_sendq *queue);
void kiln_sendq_go_on(struct kiln_sendq *queue);
void kiln_sendq_free(struct kiln_sendq *queue); /* stopped, or never started */
struct kiln_consumer *kiln_sendq_consumer(struct kiln_sendq *queue);

#endif /* KILN_PIPELINE_EXPORTERS_QUEUE_H */

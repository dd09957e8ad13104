/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline - receivers, processors, exporters, and what goes between them: deliveries.
 *
 *   receiver ──▶ processor ──▶ ... ──▶ exporter (the store, OTLP, a file)
 *      ▲                                   │
 *      └────────────── done ───────────────┘
 *
 * A delivery is a batch on its way, with whom it is for and whom to tell how it went.  It is
 * consumed once: whoever gets it hands it on, or ends it with kiln_delivery_end().  Nothing is
 * dropped without an outcome, and every outcome is counted by reason.
 *
 * A delivery may come sealed: with its body, which decodes without loss, and without a batch.  It
 * is opened before it is handed to a consumer that does not take sealed ones.  To one that will
 * decode it anyway it may come unchecked: its body was only counted, and may be bad.
 *
 * Threads: a delivery has one owner at a time; consume() may be called from many threads.
 */
#ifndef KILN_PIPELINE_PIPELINE_H
#define KILN_PIPELINE_PIPELINE_H

#include "base/compress.h"
#include "base/err.h"
#include "base/http1.h"
#include "base/metric.h"
#include "base/pool.h"
#include "codec/otlp.h"
#include "core/batch.h"

/* How a delivery went.  The codes that exporters give, and what receivers make of them:
 *   0                 accepted, perhaps without some profiles (rejected > 0: partial success)
 *   -EAGAIN           too much at once: 429 or UNAVAILABLE, try again after retry_after_s
 *   -ENOSPC, -EIO     no room, or the disk failed: 503, try again after retry_after_s
 *   -ESHUTDOWN        going down: 503, try again
 *   KILN_E_LIMIT      larger than may ever be taken: 413, do not try again
 *   any other         the data is at fault: 400, do not try again
 */
struct kiln_outcome {
    int code;
    uint32_t rejected; /* profiles not taken though the code is 0 */
    uint32_t retry_after_s;
    struct kiln_err err; /* why; with code 0, why the first rejected one was */
};

/* What OTLP carries.  Kiln looks into profiles; the others it passes on as they came. */
enum kiln_signal {
    KILN_SIGNAL_PROFILES,
    KILN_SIGNAL_TRACES,
    KILN_SIGNAL_METRICS,
    KILN_SIGNAL_LOGS,
    KILN_SIGNALS
};

struct kiln_delivery;

/* How to decode a sealed delivery: the receiver's, and lives until done. */
struct kiln_seal {
    /* *ret_bytes were taken from the pool for the batch.  Codes as those of outcomes. */
    int (*open)(const struct kiln_seal *seal, struct kiln_batch **ret_batch, size_t *ret_bytes,
                struct kiln_err *err);
    /*
     * Of one that is unchecked, else NULL: looks at all of it.  Then `delivery`, which has this
     * seal, is sealed and checked, or open, as it would have been at first; or it is refused, with
     * a code as those of outcomes.
     */
    int (*check)(const struct kiln_seal *seal, struct kiln_delivery *delivery,
                 struct kiln_err *err);
    struct kiln_pool *pool;
    size_t content_bytes; /* of the body, uncompressed */
    struct kiln_otlp_counts counts;
};

/* Who sent it, as far as processors may know; all of it lives until done. */
struct kiln_remote {
    const struct kiln_header *headers; /* where the receiver includes them */
    uint32_t n_headers;
    const char *address; /* "127.0.0.1:5555", "unix"; NULL: none */
    struct kiln_str
        authorization; /* what an authenticator has found good; ptr NULL: nobody asked */
};

struct kiln_delivery {
    enum kiln_signal signal;
    struct kiln_batch *batch; /* a reference; NULL: sealed, or of a signal that is not profiles */
    const struct kiln_seal *seal; /* NULL: not sealed */
    uint64_t items;               /* without a batch: samples, spans, data points, log records */
    uint32_t profiles;            /* of a sealed one */
    uint64_t taken;     /* samples that a profiler took for it, equal ones too; 0: nobody says */
    const char *tenant; /* lives until done */
    struct kiln_remote remote;
    uint64_t received_ns; /* Unix time */
    /*
     * Bytes that decode to this very batch, as received; they live until done.  OTLP protobuf, or,
     * with a recipe (receivers/recipe.h), what that is for.  Empty where there are none, or once a
     * processor changed the batch.
     */
    struct kiln_str body;
    struct kiln_str recipe;
    enum kiln_compression body_compression;
    bool body_is_json;      /* of a signal that is not profiles; else it is protobuf */
    bool body_is_current;   /* it is the newest revision of OTLP, and may go on as it came */
    uint32_t rejected;      /* by the receiver already: of the profiles of the request */
    struct kiln_err why;    /* the first of them */
    struct kiln_pool *pool; /* where `charged` bytes were taken from; given back at the end */
    size_t charged;
    void (*done)(struct kiln_delivery *delivery, const struct kiln_outcome *outcome);
    void *context; /* the receiver's */
};

/* Unrefs the batch, gives the bytes back, and calls done (which may free the delivery). */
void kiln_delivery_end(struct kiln_delivery *delivery, const struct kiln_outcome *outcome);

/* What is in it, sealed or not: items of its signal, of profiles samples. */
uint64_t kiln_delivery_items(const struct kiln_delivery *delivery);
uint32_t kiln_delivery_profiles(const struct kiln_delivery *delivery);
/* How large it is as OTLP, at most: for who measures.  Of other signals, as it came. */
uint64_t kiln_delivery_bytes(const struct kiln_delivery *delivery);

/* Breaks the seal, if there is one.  Codes as those of outcomes. */
KILN_CHECK int kiln_delivery_open(struct kiln_delivery *delivery, struct kiln_err *err);

static inline bool kiln_delivery_is_unchecked(const struct kiln_delivery *delivery)
{
    return delivery->seal && delivery->seal->check;
}
/* Checks one that is not; false where that was its end. */
bool kiln_delivery_check(struct kiln_delivery *delivery);

/* Whatever takes deliveries. */
struct kiln_consumer {
    void (*consume)(struct kiln_consumer *consumer, struct kiln_delivery *delivery);
    bool takes_sealed;
    /*
     * Whether consume() would neither wait nor work for long with this delivery, which is sealed,
     * plain and short, so that a loop may call it.  NULL: it would.
     */
    bool (*is_light)(struct kiln_consumer *consumer, const struct kiln_delivery *delivery);
    bool takes_json;      /* of signals that are not profiles */
    bool takes_unchecked; /* and checks them */
};

static inline bool kiln_is_light(struct kiln_consumer *consumer,
                                 const struct kiln_delivery *delivery)
{
    return consumer->is_light && consumer->is_light(consumer, delivery);
}

/* Gives a delivery to a consumer; one that cannot be opened for it ends here. */
void kiln_hand_on(struct kiln_consumer *consumer, struct kiln_delivery *delivery);

/*
 * The redaction processor (core/redact.h): before anything is stored or sent.  Rules are shared by
 * threads under a lock of the processor's own.  A delivery that cannot be redacted is refused.
 */
struct kiln_redact;
KILN_CHECK int kiln_redact_processor_new(struct kiln_redact *rules, struct kiln_consumer *next,
                                         struct kiln_metrics *metrics,
                                         struct kiln_consumer **ret_processor);
/* Goes on with other rules (borrowed as well) and returns the old ones, which nobody uses now. */
struct kiln_redact *kiln_redact_processor_swap(struct kiln_consumer *processor,
                                               struct kiln_redact *rules);
void kiln_redact_processor_free(struct kiln_consumer *processor);

#endif /* KILN_PIPELINE_PIPELINE_H */

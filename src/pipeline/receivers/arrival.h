/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrival - one profile, or one request of them, between the network and the pipeline: what all
 * receivers share.
 *
 *   kiln_arrival_init(a, receivers, kind, request);
 *   r = kiln_arrival_take(a, &source, &err);       memory, content, batch
 *   r < 0 ? kiln_arrival_refuse(a, r, &err) : kiln_arrival_send(a);
 *   ... a->finish(a, outcome)                      answers and frees
 *
 * Where requests wait for memory, the handler sets a->waits to its request.  Then finish may get no
 * outcome (NULL): the request waits and will be handled again, and finish only frees.
 *
 * Memory is taken from the pool before anything is uncompressed or decoded: first what the data
 * claims and usually needs, and more where that was not enough, up to what the pool has at all.
 * What a compressed body says about its size is a first guess only.
 *
 * Threads: one owner at a time; finish is called on whatever thread the delivery ends.
 */
#ifndef KILN_PIPELINE_RECEIVERS_ARRIVAL_H
#define KILN_PIPELINE_RECEIVERS_ARRIVAL_H

#include "core/builder.h"
#include "pipeline/outcome.h"
#include "pipeline/receivers.h"
#include "pipeline/receivers/admission.h"
#include "pipeline/receivers/recipe.h"

enum kiln_receiver_kind {
    KILN_RECEIVER_OTLP,
    KILN_RECEIVER_PYROSCOPE,
    KILN_RECEIVER_PPROF,
    KILN_RECEIVER_SCRAPE,
    KILN_N_RECEIVERS
};

/* kiln_receiver_<name>_total */
enum kiln_receiver_count {
    KILN_COUNT_REQUESTS,
    KILN_COUNT_PROFILES,
    KILN_COUNT_SAMPLES,
    KILN_COUNT_BYTES,
    KILN_N_RECEIVER_COUNTS
};

struct kiln_receivers {
    struct kiln_receivers_opts opts;
    size_t memory_max; /* of one batch while it is made */
    struct kiln_admission admission;
    struct kiln_metric *counts[KILN_N_RECEIVERS][KILN_N_OUTCOMES][KILN_N_RECEIVER_COUNTS];
    struct kiln_metric *silent;      /* samples that said nothing */
    _Atomic bool said[KILN_SIGNALS]; /* that they are not taken */
};

void kiln_receivers_count(struct kiln_receivers *receivers, enum kiln_receiver_kind kind, int code,
                          enum kiln_receiver_count what, uint64_t n);

/* Counts a request that is about to be answered, and its bytes. */
void kiln_receivers_answered(struct kiln_receivers *receivers, enum kiln_receiver_kind kind,
                             int code, const struct kiln_request *request);

/*
 * What every handler does first: -EAGAIN where others wait for memory already; else the gate's
 * account of bytes.
 */
KILN_CHECK int kiln_receivers_enter(struct kiln_receivers *receivers, struct kiln_request *request,
                                    struct kiln_err *err);
/* Instead of an answer -EAGAIN: true where the request waits, as kiln_admission_wait(). */
bool kiln_receivers_wait(struct kiln_receivers *receivers, struct kiln_request *request,
                         struct kiln_lack lack);

/* Decodes content into a builder; may be called again with another builder.  `keeps`: the batch
 * points into the content. */
struct kiln_source {
    struct kiln_str data;
    enum kiln_compression compression;
    bool keeps;
    int (*decode)(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err);
    void *context;
};

struct kiln_arrival {
    struct kiln_delivery delivery; /* first: an arrival is what its delivery is part of */
    struct kiln_receivers *owner;
    struct kiln_consumer *next; /* who gets it */
    enum kiln_receiver_kind kind;
    size_t granted;    /* bytes taken from the pool; the delivery's once it is sent */
    size_t held;       /* of them, for content that is uncompressed already */
    size_t body_bytes; /* what the body it came in may take of the pool */
    uint64_t *spent;   /* bytes that all arrivals of a request were uncompressed to; or NULL */
    struct kiln_request *waits; /* the request, where it may wait; else NULL */
    struct kiln_lack needs;     /* for an attempt as far as it came */
    uint64_t n_profiles, n_samples;
    struct kiln_buf recipe; /* the delivery's */
    void (*finish)(struct kiln_arrival *arrival, const struct kiln_outcome *outcome);
};

/* The request outlives the arrival. */
void kiln_arrival_init(struct kiln_arrival *arrival, struct kiln_receivers *receivers,
                       enum kiln_receiver_kind kind, const struct kiln_request *request);

/* Fills delivery.batch.  Codes as those of outcomes: -EAGAIN where the pool has no more just now.
 */
KILN_CHECK int kiln_arrival_take(struct kiln_arrival *arrival, const struct kiln_source *source,
                                 struct kiln_err *err);

/*
 * Has a pprof logged as received: `body`, which lives until the arrival ends, was taken by this
 * recipe.  A recipe that is too long leaves it to the store to encode the batch.
 */
void kiln_arrival_keep(struct kiln_arrival *arrival, const struct kiln_recipe *recipe,
                       struct kiln_str body, enum kiln_compression compression);

/* Takes memory until `total` bytes are held; what is held is given back when the arrival ends. */
KILN_CHECK int kiln_arrival_grant(struct kiln_arrival *arrival, size_t total, struct kiln_err *err);

/*
 * Uncompresses into `out`, which is initialised first and is the caller's to free, soon after
 * kiln_arrival_take(): a request whose parts are compressed again.  Its memory is granted too.
 */
KILN_CHECK int kiln_arrival_content(struct kiln_arrival *arrival, enum kiln_compression compression,
                                    struct kiln_str data, struct kiln_buf *out,
                                    struct kiln_err *err);

/* Gives all of it back; the content is freed. */
void kiln_arrival_release(struct kiln_arrival *arrival);

/* Hands the delivery on; finish is called some time. */
void kiln_arrival_send(struct kiln_arrival *arrival);
/* Ends it here; finish is called at once.  Code 0: there was nothing to hand on. */
void kiln_arrival_refuse(struct kiln_arrival *arrival, int code, const struct kiln_err *err);

/* ---- answers of handlers that are no method of a service ---- */

/* 200 and nothing, or a status with Pyroscope's {"code":"...","message":"..."}. */
void kiln_receivers_reply(struct kiln_request *request, const struct kiln_outcome *outcome);

#endif /* KILN_PIPELINE_RECEIVERS_ARRIVAL_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_int - what the files of the OTLP exporter share.
 *
 * Threads: as each part says.
 */
#ifndef KILN_PIPELINE_EXPORTERS_OTLP_INT_H
#define KILN_PIPELINE_EXPORTERS_OTLP_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/metric.h"
#include "net/client.h"
#include "pipeline/exporters/sender.h"

enum { KILN_EXPORT_SAY_S = 60 }; /* of one kind of line in the log, between two */

/* Why something was dropped: a label of the metrics. */
#define KILN_EXPORT_DROP_MAP(X)                                                                    \
    X(ENCODING, "encoding")     /* it could not be encoded or split */                             \
    X(MEMORY, "memory")         /* the queue was full, or there was no memory for it */            \
    X(SPOOL_FULL, "spool_full") /* the oldest, to make room */                                     \
    X(TORN, "torn")             /* a file of the spool is damaged */                               \
    X(REFUSED, "refused")       /* the receiver does not want it */                                \
    X(SHUTDOWN, "shutdown")     /* it still waited, and there is no spool */

enum kiln_export_drop {
#define X(name, word) KILN_EXPORT_##name,
    KILN_EXPORT_DROP_MAP(X)
#undef X
        KILN_EXPORT_DROPS
};

struct kiln_export_counts {
    struct kiln_metric *sent, *sent_samples, *sent_bytes;
    struct kiln_metric *failed, *retried, *rejected, *seconds, *up;
    struct kiln_metric *dropped[KILN_EXPORT_DROPS], *dropped_samples[KILN_EXPORT_DROPS];
    struct kiln_metric *spooled, *spool_errors, *spool_bytes, *spool_files, *queue_bytes;
};

struct kiln_exporter {
    struct kiln_consumer consumer; /* first */
    struct kiln_otlp_target target;
    struct kiln_export_shape shape;
    struct kiln_log *log;
    struct kiln_export_counts count;
    uint64_t memory_max, retry_ns, retry_max_ns;

    pthread_mutex_t lock;
    pthread_cond_t wake, ended; /* of the thread, and of who waits for its end */
    struct kiln_export_item *first, **last;
    uint64_t queued;                                      /* bytes */
    bool stop, is_over;                                   /* is_over: the thread has ended */
    uint64_t deadline_ns;                                 /* of the stop (monotonic) */
    _Atomic bool cancel;                                  /* the call under way is given up */
    _Atomic bool takes_zstd;                              /* the receiver said so */
    _Atomic uint64_t said_drop, said_partial, said_spool; /* when a line was written last */
    pthread_t thread;

    /* of the thread alone */
    struct kiln_client *client;
    struct kiln_answer answer;
    struct kiln_spool *spool; /* NULL: none */
    struct kiln_buf file;
    bool away;       /* the last try went wrong */
    bool answered;   /* but somebody answered */
    bool from_spool; /* the last one sent was */
    uint32_t at;     /* which file of the spool is next */
    uint64_t away_since_ns, wait_ns, next_ns, spool_next_ns;
    uint64_t noise;
};

void kiln_export_dropped(struct kiln_exporter *x, enum kiln_export_drop why,
                         const struct kiln_spooled *head, const char *reason);

/* So many bytes more, or less, in the queue; under its lock. */
void kiln_export_queued(struct kiln_exporter *x, int64_t bytes);

/* ---- otlp_send.c ---- */

KILN_CHECK int kiln_export_open(struct kiln_exporter *x, struct kiln_err *err);
/* One try; then the exporter knows whether the receiver is away, and until when to wait. */
enum kiln_export_fate kiln_export_try(struct kiln_exporter *x, const struct kiln_spooled *head,
                                      struct kiln_str body);

/* Nothing can be sent just now: the next try comes later, and each time later still. */
void kiln_export_back_off(struct kiln_exporter *x, uint64_t at_least_ns, const char *reason);

/* ---- otlp_run.c ---- */

void *kiln_export_run(void *exporter);

#endif /* KILN_PIPELINE_EXPORTERS_OTLP_INT_H */

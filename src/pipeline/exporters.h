/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporters - where deliveries leave this process: OTLP over gRPC or HTTP, and a spool on disk
 * behind which a receiver may be away.
 *
 * Threads: consume() from anywhere; the exporter sends from a thread of its own.
 */
#ifndef KILN_PIPELINE_EXPORTERS_H
#define KILN_PIPELINE_EXPORTERS_H

#include "pipeline/pipeline.h"

struct kiln_log;

/* Zero, NULL: the default, or what OTEL_EXPORTER_OTLP_[PROFILES_]* say. */
struct kiln_otlp_export_opts {
    const char *endpoint;    /* "http://127.0.0.1:4317"; no scheme: http */
    const char *protocol;    /* "grpc", "http/protobuf", "http/json"; NULL: grpc for port 4317, else
                                http/protobuf */
    const char *compression; /* "gzip", "zstd", "none"; NULL: gzip */
    bool dense;              /* few bytes, whatever it takes: for who sends little, and seldom */
    const char *headers;     /* "name=value,name=value", values percent-encoded */
    const char *ca_file, *cert_file, *key_file;
    bool insecure;
    bool checks_peer;      /* of "unix:/path": only to a listener that is trusted (base/peer.h) */
    uint64_t timeout_ns;   /* of one request: 10 s */
    size_t request_max;    /* bytes before compression; larger batches are split: 4 MiB */
    const char *spool_dir; /* NULL: none, then what cannot be sent waits in memory */
    uint64_t spool_max;    /* bytes on disk: 512 MiB; the oldest go first, counted */
    uint64_t memory_max;   /* bytes that wait in memory: 32 MiB */
    uint64_t retry_ns;     /* before the first other try, then twice as long each time: 500 ms */
    uint64_t retry_max_ns; /* but no longer than: 30 s */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

/*
 * Takes every delivery at once: it is acknowledged when it is encoded and waits in memory, from
 * where it is sent, or goes to the spool while the receiver is away.  Where there is no more room
 * the oldest is dropped and counted (kiln_export_*).
 */
KILN_CHECK int kiln_otlp_exporter_new(const struct kiln_otlp_export_opts *opts,
                                      struct kiln_consumer **ret_exporter, struct kiln_err *err);
/* What it has dropped so far, by reason; samples are 0 where nobody knows how many there were. */
enum { KILN_EXPORT_LOSSES = 6 };
struct kiln_export_loss {
    const char *reason; /* as in the metrics; constant */
    uint64_t requests, samples;
};
void kiln_otlp_exporter_losses(const struct kiln_consumer *exporter,
                               struct kiln_export_loss ret_losses[KILN_EXPORT_LOSSES]);
/* Tries for at most so long to send what waits; what is spooled stays for the next start. */
void kiln_otlp_exporter_free(struct kiln_consumer *exporter, uint64_t drain_ns);

#endif /* KILN_PIPELINE_EXPORTERS_H */

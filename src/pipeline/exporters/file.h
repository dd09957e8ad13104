/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file - deliveries into a file, each whole before it is acknowledged.
 *
 *   json    a line each: OTLP JSON
 *   proto   4 bytes of length, big-endian, and OTLP protobuf
 *   pprof   not one file but a folder of them (pprof_folder.h)
 *
 * With zstd each record of the first two is compressed by itself and has its length before it, as
 * the OpenTelemetry Collector writes and reads them.
 *
 * With rotation, a file that has grown too large becomes NAME-TIME.EXT, and the oldest of these go;
 * of a folder the oldest files, where there are too many or all are too large.
 *
 * Threads: consume() from anywhere; one write at a time.
 */
#ifndef KILN_PIPELINE_EXPORTERS_FILE_H
#define KILN_PIPELINE_EXPORTERS_FILE_H

#include "base/log.h"
#include "pipeline/pipeline.h"

enum kiln_file_format { KILN_FILE_JSON, KILN_FILE_PROTO, KILN_FILE_PPROF };

struct kiln_file_export_opts {
    const char *name; /* of the exporter: a label */
    const char *path;
    const char *group_by; /* an attribute of resources, for the "*" of the path (file_groups.h) */
    uint32_t open_max;    /* of those files, 1 at least */
    enum kiln_file_format format;
    bool zstd;
    int level;             /* of that; 0: its default */
    bool append;           /* goes on with the file that is there; else it begins anew */
    bool create_directory; /* the one the file is in, with those it is in */
    uint32_t folder_mode;  /* of those that are made; 0: 0755 */
    uint64_t rotate_bytes; /* 0: it grows */
    uint32_t backups_max;  /* 0: all are kept */
    uint64_t age_max_ns;   /* of those; 0: any */
    bool local_time;       /* in their names */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

/* The texts live as long as the exporter.  The file is opened by start. */
KILN_CHECK int kiln_file_exporter_new(const struct kiln_file_export_opts *opts,
                                      struct kiln_consumer **ret_exporter, struct kiln_err *err);
KILN_CHECK int kiln_file_exporter_start(struct kiln_consumer *exporter, struct kiln_err *err);
void kiln_file_exporter_free(struct kiln_consumer *exporter);
/* What consume() does with the batch of a delivery, of one without groups; nothing is counted. */
KILN_CHECK int kiln_file_exporter_write(struct kiln_consumer *exporter,
                                        const struct kiln_batch *batch, struct kiln_err *err);

#endif /* KILN_PIPELINE_EXPORTERS_FILE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_folder - profiles as pprof files in a folder, each with what is known of it as JSON beside
 * it (codec/sidecar.h), in the form that libkiln's have:
 *
 *   kiln-<service>-<kind>-<time>-<pid>-<n>.pb.gz      one for each scope of each resource
 *   kiln-<service>-<kind>-<time>-<pid>-<n>.json
 *
 * A file appears under its name when it is complete, and after its JSON.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_EXPORTERS_PPROF_FOLDER_H
#define KILN_PIPELINE_EXPORTERS_PPROF_FOLDER_H

#include "base/buf.h"
#include "base/err.h"
#include "core/batch.h"

struct kiln_pprof_folder {
    const char *path;
    bool zstd; /* .pb.zst */
    int level; /* of that; 0: its default */
    /* What is kept: the newest.  0: all. */
    uint32_t files_max;
    uint64_t bytes_max, age_max_ns;
    uint64_t n;              /* of the names */
    struct kiln_buf written; /* names without their ends, each with a NUL: of the batch at hand */
};

/* All or nothing: where something fails, what was written of the batch goes again. */
KILN_CHECK int kiln_pprof_folder_write(struct kiln_pprof_folder *folder,
                                       const struct kiln_batch *batch, struct kiln_err *err);

#endif /* KILN_PIPELINE_EXPORTERS_PPROF_FOLDER_H */

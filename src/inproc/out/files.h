/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files - profiles into a folder, for those without a receiver: one pprof file for each kind of
 * profile and export, and beside it what is known of it as JSON, as `kiln push` reads it
 * (cli/sidecar.h).
 *
 *   kiln-<service>-<kind>-<time>-<pid>-<n>.pb.gz     kind: process_cpu, memory, mutex...
 *   kiln-<service>-<kind>-<time>-<pid>-<n>.json      {"service": ..., "window_start": ..., ...}
 *
 * A file appears under its name when it is complete.  The oldest go first,
 * where there are too many or they are too large, and where the disk is full.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_INPROC_OUT_FILES_H
#define KILN_INPROC_OUT_FILES_H

#include "base/err.h"
#include "codec/sidecar.h"

enum { KILN_IN_FILES_MAX = 1000 };
#define KILN_IN_FILES_BYTES ((uint64_t)256 << 20)

struct kiln_in_files {
    const char *folder; /* made if it is not there, with all that it is in */
    uint32_t files_max; /* profiles; 0: KILN_IN_FILES_MAX */
    uint64_t bytes_max; /* 0: KILN_IN_FILES_BYTES */
    uint64_t windows;   /* since the start: n of the names */
    uint64_t written;   /* files */
    uint64_t lost;      /* that could not be written */
    uint64_t removed;   /* to make room */
};

/* A batch as it leaves: named and redacted.  The first error; what can be written is. */
KILN_CHECK int kiln_in_files_write(struct kiln_in_files *files, const struct kiln_batch *batch,
                                   const struct kiln_sidecar_loss *losses, uint32_t n_losses,
                                   struct kiln_err *err);

#endif /* KILN_INPROC_OUT_FILES_H */

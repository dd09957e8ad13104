/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool - encoded requests that wait on disk, oldest first, within a bound.
 *
 * One file a request, made whole by renaming it: what a killed process leaves behind is all there,
 * or is not there.  Nothing is synced: after a loss of power the newest files may be torn or gone,
 * and a torn one is found by its checksum.  The folder belongs to one process at a time.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_EXPORTERS_SPOOL_H
#define KILN_PIPELINE_EXPORTERS_SPOOL_H

#include "base/buf.h"
#include "base/compress.h"
#include "base/err.h"

#define KILN_SPOOLED_MAGIC "KILNSPL1" /* how a file begins */

/* What is known of a request beside its body. */
struct kiln_spooled {
    enum kiln_compression compression;
    bool json; /* else protobuf */
    uint32_t profiles;
    uint64_t samples;
    uint64_t made_ns; /* Unix time */
};

/*
 * The body of a file, inside of `file`.  KILN_E_TRUNCATED or KILN_E_CORRUPT: torn;
 * KILN_E_UNKNOWN: no file of a spool.
 */
KILN_CHECK int kiln_spooled_decode(struct kiln_str file, struct kiln_spooled *ret_head,
                                   struct kiln_str *ret_body);
/* Appends a whole file. */
void kiln_spooled_encode(const struct kiln_spooled *head, struct kiln_str body,
                         struct kiln_buf *out);

struct kiln_spool;

/* Makes the folder (only for its owner); -EBUSY where another process has it. */
KILN_CHECK int kiln_spool_open(const char *dir, uint64_t bytes_max, struct kiln_spool **ret_spool,
                               struct kiln_err *err);
void kiln_spool_close(struct kiln_spool *spool);

uint64_t kiln_spool_bytes(const struct kiln_spool *spool);
uint32_t kiln_spool_files(const struct kiln_spool *spool);

/*
 * Adds the newest, having let the oldest go until there is room; each of these is shown to
 * `dropped` (which may be NULL) with what is known of it.  Returns 0, KILN_E_LIMIT for a request
 * that is larger than all of the spool, or what the disk said, and then nothing was added.
 */
struct kiln_spool_drops {
    void (*visit)(void *context, const struct kiln_spooled *head);
    void *context;
};
KILN_CHECK int kiln_spool_put(struct kiln_spool *spool, const struct kiln_spooled *head,
                              struct kiln_str body, const struct kiln_spool_drops *dropped);

/*
 * Reads the `at`-th oldest; *ret_body points into `file`.  -ENOENT: somebody took it away; else as
 * kiln_spooled_decode(), or what the disk said.
 */
KILN_CHECK int kiln_spool_get(struct kiln_spool *spool, uint32_t at, struct kiln_buf *file,
                              struct kiln_spooled *ret_head, struct kiln_str *ret_body);
/* Removes it. */
void kiln_spool_remove(struct kiln_spool *spool, uint32_t at);

#endif /* KILN_PIPELINE_EXPORTERS_SPOOL_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch - debug files from debuginfod servers, for whoever has profiles of them.
 *
 *   GET URL/buildid/HEX/debuginfo, then /executable
 *
 * Each file is fetched by a process of its own (`kiln --debuginfod-child`): without privileges,
 * with limits on memory, time and size, which may connect and read, and write into the one
 * descriptor that it is given.  What comes is checked and kept by the depot, for all tenants.  What
 * a server does not have is not asked for again for a day; one that fails, for ten minutes.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_NAMING_FETCH_H
#define KILN_NAMING_FETCH_H

#include "naming/depot.h"

struct kiln_fetch;

struct kiln_fetch_opts {
    struct kiln_depot *depot; /* borrowed, as all */
    const char *const *urls;
    uint32_t n_urls;
    const char *program;      /* started as `program --debuginfod-child`; NULL: this very one */
    uint64_t file_bytes;      /* of one file; 0: 2 GiB */
    uint32_t timeout_s;       /* for one file; 0: 300 */
    const _Atomic bool *stop; /* gives up when it turns true; NULL: never */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

/* An address is http:// or https://. */
KILN_CHECK int kiln_fetch_new(const struct kiln_fetch_opts *opts, struct kiln_fetch **ret_fetch,
                              struct kiln_err *err);
void kiln_fetch_free(struct kiln_fetch *fetch);

/*
 * Brings a file into the depot (KILN_DEPOT_SHARED).  -ENOENT: no server has it; others: `err` says
 * what went wrong with which server.
 */
KILN_CHECK int kiln_fetch_get(struct kiln_fetch *fetch, struct kiln_str build_id,
                              enum kiln_debug_kind kind, struct kiln_err *err);

/* What the child does: argv has the address and the limits.  Returns an exit code. */
int kiln_fetch_child(int argc, char **argv);

#endif /* KILN_NAMING_FETCH_H */

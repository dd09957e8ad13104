/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job - a thread that names what arrived without names.
 *
 *   engine: build ids with addresses that want a name
 *        │
 *        ▼
 *   who has the file?  depot (uploaded) ─ who sent it, on this host (naming/local.h) ─ the server's
 *                      own files ─ debuginfod (naming/fetch.h)
 *        │
 *        ▼
 *   symbol/resolver.h (a confined child) ──▶ frames ──▶ engine: put_symbols
 *
 * One build id at a time, and so many addresses of it in a round; what waits is taken up again in
 * the next.  It wakes when a file comes, and where profiles have come, at most every ten seconds;
 * within a second or two where they came from a process of this host that has not sent any before.
 * A file that names are made of once is believed: an address that it has no name for has none. When
 * a better one comes (a debug file for what only its executable named), everything is asked again.
 *
 * Threads: everything may be called from anywhere.
 */
#ifndef KILN_NAMING_JOB_H
#define KILN_NAMING_JOB_H

#include "base/log.h"
#include "base/metric.h"
#include "naming/depot.h"
#include "store/engine.h"

struct kiln_local_files;
struct kiln_naming;

struct kiln_naming_opts {
    struct kiln_engine *engine; /* all borrowed */
    struct kiln_depot *depot;
    struct kiln_local_files *local; /* naming/local.h; NULL: none */
    const char *const *paths;       /* folders with .build-id/AB/CDEF.debug, or with debug files */
    uint32_t n_paths;
    const char *const *debuginfod; /* addresses of servers; none: nobody is asked */
    uint32_t n_debuginfod;
    const char *program; /* of the children; NULL: this very program */
    uint64_t age_ns;     /* debug files that were not used for so long go; 0: 14 days */
    uint32_t tick_ms;    /* 0: 10,000 */
    struct kiln_metrics *metrics;
    struct kiln_log *log;
};

KILN_CHECK int kiln_naming_start(const struct kiln_naming_opts *opts,
                                 struct kiln_naming **ret_naming, struct kiln_err *err);
/* Before the depot and the engine are closed. */
void kiln_naming_stop(struct kiln_naming *naming);

/* Looks now; `wait` until all that could be done was. */
void kiln_naming_wake(struct kiln_naming *naming);
void kiln_naming_settle(struct kiln_naming *naming);

/* What lacks names, or lines. */
struct kiln_naming_missing {
    struct kiln_str build_id, file;
    uint64_t addresses, samples, newest_ns;
    bool more; /* addresses than these */
    /* Where it was looked for, and how that ended; empty: not yet. */
    struct kiln_str why;
};
/* In no order; texts live until `each` returns. */
KILN_CHECK int kiln_naming_missing(struct kiln_naming *naming, struct kiln_str tenant,
                                   int (*each)(void *context,
                                               const struct kiln_naming_missing *missing),
                                   void *context, struct kiln_err *err);

#endif /* KILN_NAMING_JOB_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_int - the inside of naming/job.h.
 *
 *   job.c         the thread: when it looks, at which tenants; what is missing
 *   job_notes.c   what is remembered of a build id: why it has no names, when to look again
 *   job_find.c    who has the file of a build id
 *   job_name.c    from addresses to symbols
 *
 * Threads: `lock` protects notes and the queue of uploads; the rest is the thread's own.
 */
#ifndef KILN_NAMING_JOB_INT_H
#define KILN_NAMING_JOB_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "naming/fetch.h"
#include "naming/job.h"
#include "symbol/resolver.h"

/* ---- notes ---- */

enum { KILN_NOTES = 4096, KILN_NOTE_WHY = 320 };

struct kiln_note {
    uint64_t key;                          /* of tenant and build id; 0: nobody */
    uint64_t again_ns;                     /* not to be looked for before (monotonic) */
    uint32_t shallow;                      /* rounds that ended before all lines were there */
    char lacks[2 * KILN_BUILD_ID_MAX + 1]; /* a file that it would need besides; "": none */
    char tenant[KILN_TENANT_MAX + 1], build_id[KILN_DEBUG_ID_MAX + 1];
    char why[KILN_NOTE_WHY];
};

struct kiln_notes {
    struct kiln_note *items; /* KILN_NOTES of them */
};
/* The note of a build id: a new one, which may be in the place of another's; with the lock. */
struct kiln_note *kiln_note_get(struct kiln_notes *notes, const char *tenant,
                                struct kiln_str build_id);
/* NULL: there is none. */
struct kiln_note *kiln_note_find(struct kiln_notes *notes, const char *tenant,
                                 struct kiln_str build_id);

/* ---- the job ---- */

enum { KILN_UPLOADS_QUEUED = 16384 };

struct kiln_naming_metrics {
    struct kiln_metric *named, *nothing, *files, *failed, *rounds;
};

struct kiln_naming {
    struct kiln_naming_opts opts;
    struct kiln_resolver *resolver;
    struct kiln_fetch *fetch; /* NULL: no debuginfod */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    bool stop, woken;
    _Atomic bool stopping;
    uint64_t rounds_begun, rounds_ended;
    struct kiln_notes notes;
    struct kiln_depot_file *uploads; /* to be asked again */
    uint32_t n_uploads, cap_uploads;
    struct kiln_budget budget;
    uint64_t generation; /* of all that may be read: what was found out before an upload is old */
    struct kiln_engine_stats seen;
    uint64_t seen_local;           /* files of processes on this host */
    uint64_t retired_ns, began_ns; /* the last round, of keeping house and of names */
    bool unfinished;               /* the last round left something to do */
    struct kiln_naming_metrics metrics;
};

/* ---- job_find.c ---- */

/* What there is of a build id. */
struct kiln_found_files {
    int executable, info; /* -1: none */
    bool has_lines, has_names;
    char why[KILN_NOTE_WHY]; /* where it was looked for, and how that ended */
};
void kiln_naming_find(struct kiln_naming *naming, const char *tenant,
                      const struct kiln_unnamed *unnamed, struct kiln_found_files *ret_files);
void kiln_found_files_close(struct kiln_found_files *files);
/* A debug file by its build id alone, for what another one refers to. */
KILN_CHECK int kiln_naming_find_info(struct kiln_naming *naming, const char *tenant,
                                     struct kiln_str build_id, int *ret_fd);

/* ---- job_name.c ---- */

/* Names what it can of it, and notes why not the rest. */
KILN_CHECK int kiln_naming_name(struct kiln_naming *naming, const char *tenant,
                                const struct kiln_unnamed *unnamed, struct kiln_err *err);

#endif /* KILN_NAMING_JOB_INT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal - the requests of a queue on disk, which outlive the process and a loss of power.
 *
 * Requests are appended to files and synced before anybody is told; one sync serves all that came
 * meanwhile.  A request that is done with is noted behind the next ones, or within a fifth of a
 * second where none come, without a sync of its own: every request is sent at least once, and after
 * a crash those of the last moment (without power: since the last sync) once more.  A file goes
 * when all its requests are done with.  A file that is damaged is set aside (NAME.damaged), having
 * given what is whole.
 *
 * The folder belongs to one process at a time.
 *
 * Threads: put, done and read from anywhere; `stored` is called by the journal's own thread.
 */
#ifndef KILN_PIPELINE_EXPORTERS_JOURNAL_H
#define KILN_PIPELINE_EXPORTERS_JOURNAL_H

#include <stdatomic.h>

#include "base/buf.h"
#include "pipeline/exporters/encode.h"

/* What several journals may take together; `max` 0: no limit. */
struct kiln_journal_room {
    uint64_t max;
    _Atomic uint64_t used;
};

/* Where a request is. */
struct kiln_journal_place {
    uint64_t id; /* 0: not on disk */
    struct kiln_journal_file *file;
    uint64_t offset;
    uint32_t bytes;
};

struct kiln_journal_opts {
    const char *dir;                /* made where it is not there, only for its owner */
    struct kiln_journal_room *room; /* NULL: no limit */
    bool no_sync;
    uint64_t file_bytes; /* 0: 8 MiB */
    /* Each request that is not done with, in the order of coming; called by open. */
    int (*found)(void *context, const struct kiln_spooled *head, size_t body_bytes,
                 const struct kiln_journal_place *place);
    void *context;
};

struct kiln_journal;

/* -EBUSY where another process has the folder. */
KILN_CHECK int kiln_journal_open(const struct kiln_journal_opts *opts,
                                 struct kiln_journal **ret_journal, struct kiln_err *err);
void kiln_journal_close(struct kiln_journal *journal);
uint32_t kiln_journal_damaged(const struct kiln_journal *journal); /* files set aside by open */

/* Requests that become durable together, or not at all. */
struct kiln_journal_put {
    struct kiln_journal_put *next; /* the journal's */
    struct kiln_export_item *const *items;
    struct kiln_journal_place *places;
    uint32_t n;
    void (*stored)(struct kiln_journal_put *put, int code); /* 0, -ENOSPC, -EIO... */
    int code;
};
bool kiln_journal_takes(const struct kiln_export_item *item); /* it has some 256 MiB at most */
void kiln_journal_put(struct kiln_journal *journal, struct kiln_journal_put *put); /* such only */
void kiln_journal_done(struct kiln_journal *journal, const struct kiln_journal_place *place);
/* Appends the body to `out`; KILN_E_CORRUPT and the like where it is not what was put. */
KILN_CHECK int kiln_journal_read(struct kiln_journal *journal,
                                 const struct kiln_journal_place *place, struct kiln_buf *out);

#endif /* KILN_PIPELINE_EXPORTERS_JOURNAL_H */

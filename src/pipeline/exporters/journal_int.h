/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_int - what the files of the journal share:
 *
 *   journal.c       writing: the thread, one sync for many
 *   journal_load.c  what an earlier process left
 *
 * A folder:
 *
 *   lock                        held (flock) while it is open
 *   0000000000000001.log        8 bytes "KILNQUE1", then records
 *   0000000000000001.damaged    one that could not be read to its end
 *
 * A record, numbers little-endian:
 *
 *    0  4  bytes of all of it
 *    4  4  CRC-32C of bytes 0 to 4 and 8 to 16
 *    8  8  the number of the request
 *   16     a request, as a file of a spool has it (spool.c), with its checksum; or "DONEDONE": that
 *          request is done with
 *
 * Threads: as each part says.
 */
#ifndef KILN_PIPELINE_EXPORTERS_JOURNAL_INT_H
#define KILN_PIPELINE_EXPORTERS_JOURNAL_INT_H

#include <errno.h>
#include <pthread.h>

#include "pipeline/exporters/journal.h"

#define KILN_JOURNAL_MAGIC   "KILNQUE1"
#define KILN_JOURNAL_IS_DONE "DONEDONE"

enum {
    KILN_JOURNAL_HEAD = 16, /* of a record */
    KILN_JOURNAL_DONE = 24, /* all of one that is done with */
    KILN_JOURNAL_NAME = 32,
    KILN_JOURNAL_AROUND = 4096, /* more than a record has beside a body */
};
#define KILN_JOURNAL_RECORD_MAX ((size_t)256 << 20)

struct kiln_journal_file {
    struct kiln_journal_file *next;
    uint64_t number, bytes;
    uint32_t live; /* requests that are not done with */
    int fd;
};

struct kiln_journal {
    struct kiln_journal_opts opts;
    int dir, lock_fd;
    uint32_t damaged;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wake;
    bool end;
    struct kiln_journal_put *first, **last;
    struct kiln_journal_file *files;   /* oldest first; the last one grows */
    struct kiln_journal_file *current; /* NULL: there was no room for one */
    struct kiln_buf dones;             /* records that go with the next write */
    uint64_t dones_ns;                 /* CLOCK_MONOTONIC: or then, without one */
    uint64_t next_id, next_file;
};

uint32_t kiln_journal_head_crc(const char *record);
void kiln_journal_add_done(struct kiln_buf *out, uint64_t id);
void kiln_journal_add_request(struct kiln_buf *out, uint64_t id, const struct kiln_spooled *head,
                              struct kiln_str body);
void kiln_journal_name(uint64_t number, const char *ending, char name[KILN_JOURNAL_NAME]);
/* A new, empty file, to which all is written from now on. */
KILN_CHECK int kiln_journal_roll(struct kiln_journal *j);
/* Counts bytes that are on disk, whether or not there is room for them. */
void kiln_journal_use(struct kiln_journal *j, uint64_t bytes);
/* Appends to it, and syncs unless told otherwise; on failure it is as it was. */
KILN_CHECK int kiln_journal_append(struct kiln_journal *j, struct kiln_str bytes, bool sync);
/* Frees what nobody needs any more; under the lock. */
void kiln_journal_sweep(struct kiln_journal *j);

static inline bool kiln_journal_is_full(int code)
{
    return code == -ENOSPC || code == -EDQUOT;
}

KILN_CHECK int kiln_journal_load(struct kiln_journal *j, struct kiln_err *err);

#endif /* KILN_PIPELINE_EXPORTERS_JOURNAL_INT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wal - the write-ahead log: what was acknowledged is here, or in a block (docs/formats/wal.md).
 *
 * Records are numbered upwards for ever; the numbers of appends that failed are not given again.
 * They are appended to segments (`wal/<first>.log`); a
 * committer thread writes all that is waiting, syncs once, and tells everybody (group commit).
 * A record is acknowledged only after its bytes, its segment's name and the folder are synced.
 *
 * A failed sync poisons its segment: it is never synced or appended to again, the records that
 * waited for it fail, and the next ones go to a new segment.  A failed write (no space) fails its
 * records; what it left is overwritten or cut off.  A torn tail is found by its checksum.
 *
 * Damage is told from what a power cut leaves: every record says which number was durable when it
 * was written.  What is whole after a damaged place is still replayed; a damaged segment is moved
 * to aside/ when blocks cover it, instead of being removed.
 *
 * Threads: append from anywhere; the rest by the owner.
 */
#ifndef KILN_STORE_WAL_H
#define KILN_STORE_WAL_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/compress.h"
#include "base/err.h"
#include "base/metric.h"
#include "store/io.h"

enum {
    KILN_WAL_VERSION = 2,
    KILN_WAL_TENANT_MAX = 256,     /* bytes of a tenant's name */
    KILN_WAL_BODY_MAX = 256 << 20, /* with the recipe; more is refused with KILN_E_LIMIT */
};

struct kiln_wal;

/* A place where records that had been acknowledged cannot be read any more. */
struct kiln_wal_damage {
    const char *path; /* of the segment */
    uint64_t offset;
    uint64_t after, up_to; /* records above `after` and up to `up_to`; equal: none is known lost */
    const char *text;      /* what is wrong with it */
};

struct kiln_wal_opts {
    uint64_t segment_bytes; /* 0: 64 MiB */
    bool read_only;         /* only replay: no thread, nothing is written or synced */
    struct kiln_metrics *metrics;
    /* Called while replaying, with the context of `replay`; may be NULL. */
    void (*damaged)(void *context, const struct kiln_wal_damage *damage);
    struct kiln_wal_progress *progress; /* of replaying; may be NULL */
};

/* How far a replay is: bytes of all segments, and bytes read so far.  Other threads read it. */
struct kiln_wal_progress {
    _Atomic uint64_t all, done;
};

/* What is kept of one append. */
struct kiln_wal_record {
    uint64_t number; /* given by the log */
    struct kiln_str tenant;
    uint64_t received_ns; /* Unix time */
    uint64_t oldest_ns;   /* profiles before this were refused, and are again at replay */
    enum kiln_compression compression; /* of the body */
    struct kiln_str recipe;            /* what makes a batch of the body; empty: it is OTLP */
    struct kiln_str body;              /* OTLP protobuf, or what the recipe is for */
};

/*
 * Opens the log and gives every record that is whole, in order, to `replay` (a negative answer
 * stops and is returned).  What was given is durable.  The number of the next record is above all
 * of them and above `floor` (what blocks cover already).
 */
KILN_CHECK int kiln_wal_open(struct kiln_io *io, const struct kiln_wal_opts *opts, uint64_t floor,
                             int (*replay)(void *context, const struct kiln_wal_record *record),
                             void *context, struct kiln_wal **ret_wal, struct kiln_err *err);

/*
 * Gives every whole record of one file, which need not be in the log any more.  *ret_damaged:
 * something in it is no whole record.
 */
KILN_CHECK int kiln_wal_read_file(struct kiln_io *io, const char *path,
                                  int (*each)(void *context, const struct kiln_wal_record *record),
                                  void *context, bool *ret_damaged, struct kiln_err *err);

/*
 * One append under way.  The caller keeps it, and all the record points to, until done.  `done` is
 * called once, on the committer's thread, in the order of numbers: 0 (durable, record.number is
 * set), -ENOSPC, -EIO or another errno.  It must be quick.
 */
struct kiln_wal_append {
    struct kiln_wal_record record;
    void (*done)(struct kiln_wal_append *append, int code);
    struct kiln_wal_append *next; /* the log's */
};
/* Queues it.  Never blocks; after kiln_wal_close() has begun: done with -ESHUTDOWN, here. */
void kiln_wal_submit(struct kiln_wal *wal, struct kiln_wal_append *append);

/* The last number that is durable, and the bytes of segments. */
uint64_t kiln_wal_durable(const struct kiln_wal *wal);
uint64_t kiln_wal_bytes(const struct kiln_wal *wal);

/* Blocks hold everything up to `number` durably: removes segments that have nothing newer.  A
 * segment that is being written is closed first if all of it is covered. */
KILN_CHECK int kiln_wal_trim(struct kiln_wal *wal, uint64_t number);

/* What is appended from now on goes to a new segment, so that what is in the log already can be
 * trimmed while others append without a pause. */
void kiln_wal_turn(struct kiln_wal *wal);

/* Commits what waits, then stops. */
void kiln_wal_close(struct kiln_wal *wal);

#endif /* KILN_STORE_WAL_H */

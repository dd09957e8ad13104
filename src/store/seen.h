/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen - which profiles a tenant has already, beyond its heads: re-delivery is harmless
 * (docs/adr/0042).
 *
 * The newest profiles that were applied are remembered by a fingerprint of 128 bits.  That answers
 * for every block cut since then.  Of an older block that covers the time of a profile, an index is
 * made as it is needed (store/seen_block.h): which profiles have this series and this time?  Nearly
 * always none has, and no dictionary is read.  Where one has, its content is compared.
 *
 * The cost of a profile does not depend on the number of series, blocks or windows.  Memory is
 * bounded: what does not fit is read again, or, where the pool has nothing left, the profile counts
 * as new (and as unchecked).
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_SEEN_H
#define KILN_STORE_SEEN_H

#include "base/pool.h"
#include "base/str.h"
#include "store/content.h"
#include "store/spans.h"

struct kiln_seen_reader;

/* A table of fingerprints: series, time and hash folded into one. */
struct kiln_seen_half {
    struct kiln_content_hash *slots; /* all zero: free */
    uint32_t n, n_slots;
    uint64_t from; /* log records from here on are in it, or in the younger half */
};

/* A member of a list in the order of use. */
struct kiln_seen_use {
    struct kiln_seen_use *newer, *older;
};

enum { KILN_SEEN_READERS = 2 };

/* What was read of blocks since the start. */
struct kiln_seen_work {
    uint64_t blocks; /* whose series were indexed */
    uint64_t pages;  /* of rows, for the times of their profiles */
    uint64_t contents, dicts;
};

struct kiln_seen {
    struct kiln_pool *pool;
    uint64_t seed;
    uint32_t slots_max; /* of a half */
    struct kiln_seen_half young, old;
    struct kiln_spans spans;
    bool has_spans;
    struct kiln_seen_use blocks, pages; /* heads of the lists of what is indexed */
    size_t block_bytes, bytes, bytes_max;
    struct kiln_seen_reader *readers[KILN_SEEN_READERS]; /* the one used last is the first */
    struct kiln_seen_work work;
};

/* Records up to `number` are in blocks that it will not remember. */
void kiln_seen_init(struct kiln_seen *seen, struct kiln_pool *pool, uint64_t seed, uint64_t number);
/* The blocks that it was given last must still be there. */
void kiln_seen_done(struct kiln_seen *seen);
/* Forgets everything: after profiles were deleted. */
void kiln_seen_clear(struct kiln_seen *seen, uint64_t number);

/* The blocks of the tenant are others from now on; `gone` must still be there. */
void kiln_seen_change(struct kiln_seen *seen, struct kiln_block *const *gone, uint32_t n_gone);
/* Frees the dictionaries that were not used since the last call. */
void kiln_seen_rest(struct kiln_seen *seen);

/* Remembers a profile of a log record. */
void kiln_seen_add(struct kiln_seen *seen, uint64_t number, struct kiln_str key, uint64_t time_ns,
                   struct kiln_content_hash hash);

/* Whether the profile is in one of the blocks, which are those of the last call unless
 * kiln_seen_change() was called.  1, 0, or an error where that could not be found out. */
KILN_CHECK int kiln_seen_find(struct kiln_seen *seen, struct kiln_block *const *blocks, uint32_t n,
                              struct kiln_str key, uint64_t time_ns, struct kiln_content_hash hash);

#endif /* KILN_STORE_SEEN_H */

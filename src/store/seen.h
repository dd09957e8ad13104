/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen - which profiles a tenant has already, beyond its heads: re-delivery is harmless.
 *
 * Two ways to know.  The newest profiles that were applied are remembered by hash: that answers
 * for every block cut since then.  For older blocks, only where a series has profiles on both sides
 * of the wanted time (rare: newest data comes after all of them), the hashes of that series are
 * made from the block itself, once, and kept.
 *
 * Both are bounded; what does not fit is read again, or, where memory lacks, not recognised (and
 * counted).
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_SEEN_H
#define KILN_STORE_SEEN_H

#include "base/pool.h"
#include "base/str.h"
#include "store/content.h"

struct kiln_block;
struct kiln_seen_part;

/* A table of fingerprints: series, time and hash folded into one. */
struct kiln_seen_half {
    struct kiln_content_hash *slots; /* all zero: free */
    uint32_t n, n_slots;
    uint64_t from; /* log records from here on are in it, or in the younger half */
};

struct kiln_seen {
    struct kiln_pool *pool;
    uint64_t seed;
    struct kiln_seen_half young, old;
    struct kiln_seen_part *parts; /* of blocks, most recently used first */
    uint32_t n_parts;
    size_t part_bytes;
};

/* Records up to `number` are in blocks that it will not remember. */
void kiln_seen_init(struct kiln_seen *seen, struct kiln_pool *pool, uint64_t seed, uint64_t number);
void kiln_seen_done(struct kiln_seen *seen);
/* Forgets everything: after profiles were deleted. */
void kiln_seen_clear(struct kiln_seen *seen, uint64_t number);

/* Remembers a profile of a log record. */
void kiln_seen_add(struct kiln_seen *seen, uint64_t number, struct kiln_str key, uint64_t time_ns,
                   struct kiln_content_hash hash);

/* Whether the profile is in one of the blocks.  1, 0, or an error where that could not be found
 * out. */
KILN_CHECK int kiln_seen_find(struct kiln_seen *seen, struct kiln_block *const *blocks, uint32_t n,
                              struct kiln_str key, uint64_t time_ns, struct kiln_content_hash hash);

#endif /* KILN_STORE_SEEN_H */

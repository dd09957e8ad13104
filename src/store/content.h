/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content - a hash of what a profile says, whoever said it and in which order: two profiles of
 * equal resource, scope, head and observations have equal hashes in whatever batch they lie.
 *
 * Each dictionary entry is hashed once; a profile then costs a few instructions an observation.
 * The seed is the store's own, so that nobody outside can prepare two contents of one hash, and it
 * stays, so that hashes made before and after a restart agree.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_CONTENT_H
#define KILN_STORE_CONTENT_H

#include "base/mem.h"
#include "core/batch.h"

struct kiln_content_hash {
    uint64_t lo, hi;
};

/* Hashes of one table's entries, as far as they are known; parallel to the table. */
struct kiln_content_table {
    struct kiln_content_hash *hashes;
    uint32_t n, cap;
};

/* The hashes of one growing dictionary.  Zero, but for `seed`, is empty. */
struct kiln_content {
    uint64_t seed;
    struct kiln_budget budget; /* tells how much memory it has */
    struct kiln_content_table strings, functions, mappings, locations, stacks, links, attrs, sets;
    struct kiln_content_hash *frames; /* scratch: of a stack */
    uint32_t cap_frames;
};

void kiln_content_init(struct kiln_content *content, uint64_t seed);
void kiln_content_done(struct kiln_content *content);

/* Hashes the entries of the batch that came since the last call; only the same growing batch. */
KILN_CHECK int kiln_content_learn(struct kiln_content *content, const struct kiln_batch *batch);

/* Where a profile stands: its resource, its scope, its first sample. */
struct kiln_content_place {
    uint32_t resource, scope, first_sample;
};
/* The hash of a profile of that batch. */
struct kiln_content_hash kiln_content_profile(const struct kiln_content *content,
                                              const struct kiln_batch *batch, uint32_t profile,
                                              const struct kiln_content_place *place);

static inline bool kiln_content_equal(struct kiln_content_hash a, struct kiln_content_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

#endif /* KILN_STORE_CONTENT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest - what the rows of one service in a block come down to: each profile as a sum, and which
 * attributes its samples have.  Made when somebody first asks, and cached (store/cache.h): a
 * timeline, a list of profiles and labels need no more of most blocks.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_STORE_DIGEST_H
#define KILN_STORE_DIGEST_H

#include "store/rows.h"
#include "store/scan_int.h"

struct kiln_digest_profile {
    uint32_t series, origin; /* numbers of the block */
    uint64_t time_ns, duration_ns;
    struct kiln_row_sums sums;
    uint8_t id[16];
};

/* Samples with this set of attributes there are in the series, from the origin. */
struct kiln_digest_pair {
    uint64_t series, origin, set;
};

struct kiln_digest {
    struct kiln_cached cached;            /* first */
    struct kiln_digest_profile *profiles; /* by series, then time */
    struct kiln_digest_pair *pairs;       /* by series */
    uint32_t n_profiles, n_pairs;
};

/*
 * Bytes of rows, as on disk, that a question about labels alone may read: it comes often, and may
 * be about months.  128 MiB; to be changed by tests.
 */
extern uint64_t kiln_digest_pairs_bytes;

/* Whether it is cached. */
bool kiln_digest_is_there(struct kiln_scan *scan, const struct kiln_block *block, uint32_t service);
/* 1 where it would be too large; a reference otherwise. */
KILN_CHECK int kiln_digest_of_block(struct kiln_scan *scan, struct kiln_scan_part *part,
                                    struct kiln_block *block, uint32_t service,
                                    struct kiln_digest **ret_digest, struct kiln_err *err);
static inline void kiln_digest_unref(struct kiln_digest *digest)
{
    kiln_cached_unref((struct kiln_cached *)digest);
}

#endif /* KILN_STORE_DIGEST_H */

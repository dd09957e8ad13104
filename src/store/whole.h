/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole - for what a cached result stands (store/ready.h, store/wide.h): all rows of some series of
 * a block, and what they add to the basis of an answer.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_STORE_WHOLE_H
#define KILN_STORE_WHOLE_H

#include "store/scan.h"

struct kiln_whole {
    uint32_t *series; /* numbers of the block */
    uint32_t n_series;
    struct kiln_scan_piece piece; /* of the basis */
};

/* From a source all of whose rows are meant, at its end. */
KILN_CHECK int kiln_whole_copy(const struct kiln_scan_source *source, struct kiln_whole *ret_whole);
void kiln_whole_done(struct kiln_whole *whole);
size_t kiln_whole_bytes(const struct kiln_whole *whole);

/* Of the series of a source; for the key in the cache. */
uint64_t kiln_whole_hash(const struct kiln_scan_source *source);
/* Whether it stands for the series of the source. */
bool kiln_whole_is_of(const struct kiln_whole *whole, const struct kiln_scan_source *source);

#endif /* KILN_STORE_WHOLE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lacks - addresses of a tenant that could be named better (core/frame.h: kiln_frame_lack()) and
 * that have no symbol yet (store/book.h), by build id.
 *
 * It is told of dictionaries, each once, and remembers; addresses leave when they have a symbol,
 * even one that says that there is nothing.  Of a build id no more than KILN_LACKS_MAX addresses
 * are remembered: `more` says that there are others, and who asks tells of all dictionaries again.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_LACKS_H
#define KILN_STORE_LACKS_H

#include "store/book.h"

enum { KILN_LACKS_MAX = 65536 };

struct kiln_lacks;

KILN_CHECK int kiln_lacks_new(struct kiln_book *book, struct kiln_lacks **ret_lacks);
void kiln_lacks_free(struct kiln_lacks *lacks); /* may be NULL */

/* What a dictionary is of. */
struct kiln_lacks_source {
    const struct kiln_batch *batch;
    uint32_t first; /* location to begin with */
    uint64_t samples, newest_ns;
};
KILN_CHECK int kiln_lacks_add(struct kiln_lacks *lacks, const struct kiln_lacks_source *source);

/* How many build ids were met; they keep their numbers. */
uint32_t kiln_lacks_count(const struct kiln_lacks *lacks);
/* What a build id lacks now, until the next call; `n` 0: nothing. */
KILN_CHECK int kiln_lacks_get(struct kiln_lacks *lacks, uint32_t number,
                              struct kiln_unnamed *ret_unnamed);

#endif /* KILN_STORE_LACKS_H */

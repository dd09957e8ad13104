/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lacks - addresses of a tenant that could be named better (core/frame.h: kiln_frame_lack()) and
 * that have no symbol yet (store/book.h), by build id.
 *
 * It is told of dictionaries, each once, and remembers; addresses leave when they have a symbol,
 * even one that says that there is nothing.  Of a build id no more than KILN_LACKS_MAX addresses
 * are remembered: `more` says that there are others, which must be told again.
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

/* A build id that a dictionary refers to. */
struct kiln_build_use {
    uint32_t build; /* number */
    bool lacking;   /* some of its locations could be named better */
    uint32_t round; /* for who keeps it; 0 */
};

struct kiln_lacks_range {
    uint32_t first, end;
};

/* All build ids of a dictionary, ascending, each once; and the addresses that lack something, of
 * the locations of a range.  The list is the caller's. */
KILN_CHECK int kiln_lacks_add(struct kiln_lacks *lacks, const struct kiln_batch *batch,
                              struct kiln_lacks_range locations, struct kiln_build_use **ret_uses,
                              uint32_t *ret_n);

/* Build ids that were met keep their numbers. */
uint32_t kiln_lacks_count(const struct kiln_lacks *lacks);
struct kiln_str kiln_lacks_build_id(const struct kiln_lacks *lacks, uint32_t number);
/* UINT32_MAX: it was not met. */
uint32_t kiln_lacks_find(const struct kiln_lacks *lacks, struct kiln_str build_id);
/* What a build id lacks now, until the next call; `n` 0: nothing. */
KILN_CHECK int kiln_lacks_get(struct kiln_lacks *lacks, uint32_t number,
                              struct kiln_unnamed *ret_unnamed);
/* Forgets what it lacks. */
void kiln_lacks_forget(struct kiln_lacks *lacks, uint32_t number);

#endif /* KILN_STORE_LACKS_H */

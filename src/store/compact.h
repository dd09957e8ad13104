/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact - several blocks of a tenant into one, or one into a smaller one: profile by profile, in
 * the order of series and time, so that memory holds the common dictionary and a page of each
 * input, never the profiles.
 *
 * The new block says in its footer which ones it replaces: its rename is the commit, and whoever
 * opens the store after a crash sees the inputs or the new block, never both.  Removing the inputs
 * is the caller's.
 *
 * Threads: no state; one thread a merge.
 */
#ifndef KILN_STORE_COMPACT_H
#define KILN_STORE_COMPACT_H

#include "store/block.h"
#include "store/book.h"

struct kiln_compact_opts {
    struct kiln_io *io;
    struct kiln_str tenant;
    struct kiln_block *const *blocks;
    uint32_t n;
    uint32_t level;
    struct kiln_book *book; /* names that came later, for the new block's dictionary; NULL: none */
    size_t memory_bytes;    /* dictionary, writer and pages together; KILN_E_LIMIT beyond */
    /* Profiles of a service that end before this time are left out: 0 none, UINT64_MAX all.  NULL:
     * none of any service. */
    uint64_t (*cutoff)(void *context, struct kiln_str service);
    bool only_smaller;           /* no new block if no profile would be left out */
    bool (*stop)(void *context); /* asked now and then: give up with -ECANCELED; NULL: never */
    void *context;
    kiln_block_verifier *verify; /* NULL: kiln_block_verify_within() */
    /* Not NULL: what can be read of damaged inputs is merged, the rest is reported. */
    void (*lost)(void *context, const struct kiln_block_lost *lost);
};

struct kiln_compact_result {
    bool empty;              /* no profile is left: no block was written */
    bool unchanged;          /* `only_smaller`, and nothing was left out: likewise */
    struct kiln_block_id id; /* of the new block */
    uint64_t profiles, left_out;
};

/*
 * Merges.  On failure nothing is left behind; *ret_bad is then the number of the input that could
 * not be read, or UINT32_MAX where none of them is at fault.
 */
KILN_CHECK int kiln_compact_blocks(const struct kiln_compact_opts *opts,
                                   struct kiln_compact_result *ret_result, uint32_t *ret_bad,
                                   struct kiln_err *err);

/* About the memory that a merge needs whose inputs have dictionaries of `dict_bytes` together. */
size_t kiln_compact_memory(uint64_t dict_bytes, uint32_t n);
/* The other way round: the largest sum of dictionaries that fits. */
uint64_t kiln_compact_dict_bytes(size_t memory_bytes);

#endif /* KILN_STORE_COMPACT_H */

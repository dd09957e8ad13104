/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen_block - the part of store/seen.h that looks into blocks.
 *
 * Of a block: a hash table of its series.  Of a page of rows: a short hash of series and time of
 * each profile; once a profile with an equal one came, the fingerprint of its content too.  All of
 * it is made when it is first needed, charged to the pool, and freed in the order of use.
 *
 * Threads: as store/seen.h.
 */
#ifndef KILN_STORE_SEEN_BLOCK_H
#define KILN_STORE_SEEN_BLOCK_H

#include "base/hash.h"
#include "store/rows.h"
#include "store/seen.h"

struct kiln_seen_wanted {
    struct kiln_str key;
    uint64_t key_hash, time_ns;
    struct kiln_content_hash print;
};

/* Series, time and content as one; never zero. */
static inline struct kiln_content_hash kiln_seen_print(uint64_t key_hash, uint64_t time_ns,
                                                       struct kiln_content_hash hash)
{
    struct kiln_content_hash print = {hash.lo ^ kiln_hash_mix(key_hash, time_ns), hash.hi};

    if (!print.lo && !print.hi)
        print.lo = 1;
    return print;
}

void kiln_seen_blocks_init(struct kiln_seen *seen);
void kiln_seen_blocks_done(struct kiln_seen *seen);
/* Frees what was not used for longest; false: there is nothing more to free. */
bool kiln_seen_drop_oldest(struct kiln_seen *seen);
/* Forgets what was read of a block. */
void kiln_seen_block_drop(struct kiln_seen *seen, struct kiln_block *block);
/* Whether a block has the profile.  1, 0, or why that is unknown. */
KILN_CHECK int kiln_seen_block_has(struct kiln_seen *seen, struct kiln_block *block,
                                   const struct kiln_seen_wanted *wanted);

/* ---- contents: seen_content.c ---- */

/* A block's dictionary, kept to read more than one page with it. */
struct kiln_seen_reader {
    struct kiln_block *block; /* borrowed */
    struct kiln_rows rows;    /* of the page at hand */
    struct kiln_block_reader *reader;
    struct kiln_content content; /* has learned all of it */
    size_t charged;
    bool used; /* since the last kiln_seen_rest() */
};

/* Reads the profiles of a page of rows; valid until the next call. */
KILN_CHECK int kiln_seen_read_page(struct kiln_seen *seen, struct kiln_block *block, uint32_t page,
                                   struct kiln_seen_reader **ret_reader);
/* Closes those of a block; NULL: all. */
void kiln_seen_close_readers(struct kiln_seen *seen, const struct kiln_block *block);

#endif /* KILN_STORE_SEEN_BLOCK_H */

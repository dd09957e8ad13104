/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dict - the dictionary of a block, but for stacks, read once and kept for many questions.
 *
 * Threads: immutable once made.
 */
#ifndef KILN_STORE_DICT_H
#define KILN_STORE_DICT_H

#include "store/block_rows.h"
#include "store/cache.h"

struct kiln_fund;

struct kiln_block_dict {
    struct kiln_cached cached; /* first */
    const struct kiln_batch *batch;
    const struct kiln_origin *origins; /* by number - 1; resource and scope count from 1 */
    const struct kiln_moment *moments; /* by number - 1 */
    const uint16_t *cpus;              /* by number of a set */
    uint32_t n_origins, n_moments;
    struct kiln_block_reader *reader; /* has it all */
};

/*
 * From the cache, or read; a reference.  The whole dictionary is kept only where there is plenty of
 * room, for the code in it is seldom asked for; what attributes, links and profiles need, and all
 * strings, are kept by themselves.
 */
KILN_CHECK int kiln_block_meta(struct kiln_cache *cache, struct kiln_block *block,
                               struct kiln_fund *fund, struct kiln_block_dict **ret_dict,
                               struct kiln_err *err);
KILN_CHECK int kiln_block_dict(struct kiln_cache *cache, struct kiln_block *block,
                               struct kiln_fund *fund, struct kiln_block_dict **ret_dict,
                               struct kiln_err *err);
/* Drops a reference; the last one of a dictionary that is not cached gives its memory back. */
void kiln_block_dict_done(struct kiln_block_dict *dict, struct kiln_fund *fund);
static inline void kiln_block_dict_unref(struct kiln_block_dict *dict)
{
    kiln_cached_unref((struct kiln_cached *)dict);
}

#endif /* KILN_STORE_DICT_H */

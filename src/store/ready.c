/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ready.h"

#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"

#define IS_READY (UINT64_C(1) << 63) /* in the cache, beside a hash of service and series */

static uint64_t what(const struct kiln_scan_source *source)
{
    uint64_t hash = kiln_hash(source->whole, source->n_whole * sizeof(*source->whole));

    return kiln_hash_mix(hash, source->service) | IS_READY;
}

static void free_ready(struct kiln_cached *cached)
{
    struct kiln_ready *ready = (struct kiln_ready *)cached;

    kiln_free(ready->series);
    kiln_free(ready->upto);
    kiln_free(ready->functions);
    kiln_free(ready->piece.intervals);
    kiln_free(ready);
}

struct kiln_ready *kiln_ready_find(struct kiln_cache *cache, const struct kiln_scan_source *source,
                                   const struct kiln_forest *forest, bool functions)
{
    const struct kiln_block_id *block = &kiln_block_info(source->block)->id;
    struct kiln_ready *ready =
        (struct kiln_ready *)kiln_cache_find(cache, block, what(source), forest->serial + 1);

    if (ready && ready->forest == forest->serial && ready->n_series == source->n_whole &&
        memcmp(ready->series, source->whole, source->n_whole * sizeof(*ready->series)) == 0 &&
        (ready->functions || !functions))
        return ready;
    kiln_cached_unref((struct kiln_cached *)ready);
    return NULL;
}

static void *copy(const void *from, size_t size)
{
    void *to = kiln_malloc(size + 1);

    if (to && size)
        memcpy(to, from, size);
    return to;
}

int kiln_ready_new(const struct kiln_scan_source *source, const struct kiln_forest *forest,
                   int64_t *upto, struct kiln_ready **ret_ready)
{
    const struct kiln_scan_piece *piece = source->piece;
    struct kiln_ready *ready = kiln_calloc(1, sizeof(*ready));

    if (!ready) {
        kiln_free(upto);
        return -ENOMEM;
    }
    *ready = (struct kiln_ready){
        .cached = {.free = free_ready},
        .forest = forest->serial,
        .upto = upto,
        .n_series = source->n_whole,
        .series = copy(source->whole, source->n_whole * sizeof(*source->whole)),
        .piece = *piece,
    };
    ready->piece.intervals = copy(piece->intervals, piece->n * sizeof(*piece->intervals));
    atomic_init(&ready->cached.refs, 1);
    if (!ready->series || !ready->piece.intervals) {
        kiln_cached_unref(&ready->cached);
        return -ENOMEM;
    }
    *ret_ready = ready;
    return 0;
}

void kiln_ready_keep(struct kiln_cache *cache, const struct kiln_scan_source *source,
                     const struct kiln_forest *forest, struct kiln_ready *ready)
{
    ready->cached.bytes = sizeof(*ready) + ready->n_series * sizeof(*ready->series) +
                          ((size_t)forest->n_stacks + 1) * sizeof(*ready->upto) +
                          ready->n_functions * sizeof(*ready->functions) +
                          ready->piece.n * sizeof(*ready->piece.intervals);
    kiln_cache_add(cache, &kiln_block_info(source->block)->id, what(source), forest->serial + 1,
                   &ready->cached);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ready.h"

#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"

#define IS_READY (UINT64_C(1) << 63) /* in the cache, beside a hash of service and series */

static uint64_t what(const struct kiln_scan_source *source)
{
    return kiln_hash_mix(kiln_whole_hash(source), source->service) | IS_READY;
}

static void free_ready(struct kiln_cached *cached)
{
    struct kiln_ready *ready = (struct kiln_ready *)cached;

    kiln_free(ready->upto);
    kiln_free(ready->functions);
    kiln_whole_done(&ready->whole);
    kiln_free(ready);
}

struct kiln_ready *kiln_ready_find(struct kiln_cache *cache, const struct kiln_scan_source *source,
                                   const struct kiln_forest *forest, bool functions)
{
    const struct kiln_block_id *block = &kiln_block_info(source->block)->id;
    struct kiln_ready *ready =
        (struct kiln_ready *)kiln_cache_find(cache, block, what(source), forest->serial + 1);

    if (ready && ready->forest == forest->serial && kiln_whole_is_of(&ready->whole, source) &&
        (ready->functions || !functions))
        return ready;
    kiln_cached_unref((struct kiln_cached *)ready);
    return NULL;
}

int kiln_ready_new(const struct kiln_scan_source *source, const struct kiln_forest *forest,
                   int64_t *upto, struct kiln_ready **ret_ready)
{
    struct kiln_ready *ready = kiln_calloc(1, sizeof(*ready));
    int r;

    if (!ready) {
        kiln_free(upto);
        return -ENOMEM;
    }
    ready->cached.free = free_ready;
    atomic_init(&ready->cached.refs, 1);
    ready->forest = forest->serial;
    ready->upto = upto;
    r = kiln_whole_copy(source, &ready->whole);
    if (r < 0) {
        kiln_cached_unref(&ready->cached);
        return r;
    }
    *ret_ready = ready;
    return 0;
}

void kiln_ready_keep(struct kiln_cache *cache, const struct kiln_scan_source *source,
                     const struct kiln_forest *forest, struct kiln_ready *ready)
{
    ready->cached.bytes = sizeof(*ready) + kiln_whole_bytes(&ready->whole) +
                          ((size_t)forest->n_stacks + 1) * sizeof(*ready->upto) +
                          ready->n_functions * sizeof(*ready->functions);
    kiln_cache_add(cache, &kiln_block_info(source->block)->id, what(source), forest->serial + 1,
                   &ready->cached);
}

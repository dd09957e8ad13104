/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was applied lately is in two tables: when the younger is full it becomes the older one, and
 * the older one is forgotten.  So at least as many profiles as one of them holds are remembered.
 */
#include "store/seen.h"

#include <errno.h>

#include "base/hash.h"
#include "store/seen_block.h"

#define SLOTS_MIN  64u        /* of many tenants most send little */
#define SLOTS_MAX  (1u << 19) /* 8 MiB: 390,000 profiles; of a large pool more: */
#define SLOTS_MOST (1u << 21)
#define POOL_SHARE 64u /* of the pool: one table may take it, if that is more */

/* ---- recent ---- */

static struct kiln_content_hash *slot_of(const struct kiln_seen_half *half,
                                         struct kiln_content_hash print)
{
    uint32_t mask = half->n_slots - 1;
    uint32_t i = (uint32_t)print.lo & mask;

    while ((half->slots[i].lo || half->slots[i].hi) && !kiln_content_equal(half->slots[i], print))
        i = (i + 1) & mask;
    return &half->slots[i];
}

static bool half_has(const struct kiln_seen_half *half, struct kiln_content_hash print)
{
    return half->n_slots && kiln_content_equal(*slot_of(half, print), print);
}

static void half_done(struct kiln_seen *seen, struct kiln_seen_half *half)
{
    kiln_free(half->slots);
    kiln_pool_give(seen->pool, (size_t)half->n_slots * sizeof(*half->slots));
    *half = (struct kiln_seen_half){.from = half->from};
}

static int half_grow(struct kiln_seen *seen, struct kiln_seen_half *half)
{
    struct kiln_seen_half larger = {
        .n = half->n, .n_slots = half->n_slots ? half->n_slots * 2 : SLOTS_MIN, .from = half->from};
    size_t bytes = (size_t)larger.n_slots * sizeof(*larger.slots);

    if (larger.n_slots > seen->slots_max || kiln_pool_take(seen->pool, bytes) < 0)
        return KILN_E_LIMIT;
    larger.slots = kiln_calloc(larger.n_slots, sizeof(*larger.slots));
    if (!larger.slots) {
        kiln_pool_give(seen->pool, bytes);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < half->n_slots; i++) {
        if (half->slots[i].lo || half->slots[i].hi)
            *slot_of(&larger, half->slots[i]) = half->slots[i];
    }
    half_done(seen, half);
    *half = larger;
    return 0;
}

static bool is_full(const struct kiln_seen_half *half)
{
    return half->n * UINT64_C(4) >= half->n_slots * UINT64_C(3);
}

void kiln_seen_add(struct kiln_seen *seen, uint64_t number, struct kiln_str key, uint64_t time_ns,
                   struct kiln_content_hash hash)
{
    struct kiln_content_hash print = kiln_seen_print(kiln_hash(key.ptr, key.len), time_ns, hash);
    struct kiln_seen_half *young = &seen->young;
    struct kiln_content_hash *slot;

    if (is_full(young) && half_grow(seen, young) < 0) {
        half_done(seen, &seen->old);
        seen->old = *young;
        /* Some of this very record may be in the older half. */
        *young = (struct kiln_seen_half){.from = number + 1};
        if (half_grow(seen, young) < 0) {
            half_done(seen, &seen->old);
            seen->old.from = number + 1;
            return;
        }
    }
    slot = slot_of(young, print);
    young->n += !slot->lo && !slot->hi;
    *slot = print;
}

/* ---- blocks ---- */

struct finding {
    struct kiln_seen *seen;
    struct kiln_seen_wanted wanted;
    int error;
};

static int find_in(void *context, struct kiln_block *block)
{
    struct finding *f = context;
    int r;

    if (kiln_block_info(block)->log_from >= f->seen->old.from)
        return 0; /* what is in it is remembered */
    r = kiln_seen_block_has(f->seen, block, &f->wanted);
    if (r < 0)
        f->error = r;
    return r > 0;
}

int kiln_seen_find(struct kiln_seen *seen, struct kiln_block *const *blocks, uint32_t n,
                   struct kiln_str key, uint64_t time_ns, struct kiln_content_hash hash)
{
    uint64_t key_hash = kiln_hash(key.ptr, key.len);
    struct finding f = {
        .seen = seen, .wanted = {key, key_hash, time_ns, kiln_seen_print(key_hash, time_ns, hash)}};
    int r = 0;

    if (half_has(&seen->young, f.wanted.print) || half_has(&seen->old, f.wanted.print))
        return 1;
    if (!seen->has_spans)
        r = kiln_spans_set(&seen->spans, blocks, n);
    seen->has_spans = r == 0;
    if (r == 0)
        r = kiln_spans_at(&seen->spans, time_ns, find_in, &f);
    return r ? r : f.error;
}

void kiln_seen_change(struct kiln_seen *seen, struct kiln_block *const *gone, uint32_t n_gone)
{
    for (uint32_t i = 0; i < n_gone; i++)
        kiln_seen_block_drop(seen, gone[i]);
    kiln_spans_done(&seen->spans);
    seen->has_spans = false;
}

/* ---- as a whole ---- */

void kiln_seen_init(struct kiln_seen *seen, struct kiln_pool *pool, uint64_t seed, uint64_t number)
{
    size_t slots = pool->limit / POOL_SHARE / sizeof(struct kiln_content_hash);

    *seen = (struct kiln_seen){
        .pool = pool, .seed = seed, .young = {.from = number + 1}, .old = {.from = number + 1}};
    for (seen->slots_max = SLOTS_MAX; seen->slots_max < SLOTS_MOST && seen->slots_max < slots;)
        seen->slots_max *= 2;
    kiln_seen_blocks_init(seen);
}

void kiln_seen_clear(struct kiln_seen *seen, uint64_t number)
{
    half_done(seen, &seen->young);
    half_done(seen, &seen->old);
    kiln_seen_blocks_done(seen);
    kiln_seen_change(seen, NULL, 0);
    seen->young.from = seen->old.from = number + 1;
}

void kiln_seen_done(struct kiln_seen *seen)
{
    kiln_seen_clear(seen, 0);
}

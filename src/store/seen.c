/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was applied lately is in two tables: when the younger is full it becomes the older one, and
 * the older one is forgotten.  So at least as many profiles as one of them holds are remembered.
 *
 * Hashes made from a block are kept in parts: the profiles of one series in one window of about a
 * minute.  A part costs a read of these profiles and of the service's dictionary.
 */
#include "store/seen.h"

#include <errno.h>

#include "base/hash.h"
#include "store/block.h"
#include "store/rows.h"

#define SLOTS_MIN      64u        /* of many tenants most send little */
#define SLOTS_MAX      (1u << 19) /* 8 MiB: 390,000 profiles */
#define WINDOW_BITS    36         /* of nanoseconds: 69 s */
#define PARTS_MAX      512u
#define PART_BYTES_MAX ((size_t)8 << 20)
#define READ_BYTES     ((size_t)16 << 20) /* beside the dictionary */

/* ---- recent ---- */

static struct kiln_content_hash fingerprint(struct kiln_str key, uint64_t time_ns,
                                            struct kiln_content_hash hash)
{
    struct kiln_content_hash print = {hash.lo ^ kiln_hash_mix(kiln_hash(key.ptr, key.len), time_ns),
                                      hash.hi};

    if (!print.lo && !print.hi)
        print.lo = 1;
    return print;
}

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

    if (larger.n_slots > SLOTS_MAX || kiln_pool_take(seen->pool, bytes) < 0)
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
    slot = slot_of(young, fingerprint(key, time_ns, hash));
    young->n += !slot->lo && !slot->hi;
    *slot = fingerprint(key, time_ns, hash);
}

/* ---- parts of blocks ---- */

struct seen_profile {
    uint64_t time_ns;
    struct kiln_content_hash hash;
};

struct kiln_seen_part {
    struct kiln_seen_part *next;
    struct kiln_block_id block;
    uint32_t series, n;
    uint64_t window;
    struct seen_profile profiles[];
};

static size_t part_bytes(const struct kiln_seen_part *part)
{
    return sizeof(*part) + part->n * sizeof(*part->profiles);
}

static void drop_last_part(struct kiln_seen *seen)
{
    struct kiln_seen_part **at = &seen->parts;

    while ((*at)->next)
        at = &(*at)->next;
    seen->part_bytes -= part_bytes(*at);
    seen->n_parts--;
    kiln_pool_give(seen->pool, part_bytes(*at));
    kiln_free(*at);
    *at = NULL;
}

static void keep_part(struct kiln_seen *seen, struct kiln_seen_part *part)
{
    size_t bytes = part_bytes(part);

    while (seen->parts && (seen->n_parts >= PARTS_MAX || seen->part_bytes + bytes > PART_BYTES_MAX))
        drop_last_part(seen);
    if (kiln_pool_take(seen->pool, bytes) < 0) {
        kiln_free(part);
        return;
    }
    part->next = seen->parts;
    seen->parts = part;
    seen->n_parts++;
    seen->part_bytes += bytes;
}

/* The part, moved to the front; or NULL. */
static struct kiln_seen_part *find_part(struct kiln_seen *seen, const struct kiln_block_id *block,
                                        uint32_t series, uint64_t window)
{
    for (struct kiln_seen_part **at = &seen->parts; *at; at = &(*at)->next) {
        struct kiln_seen_part *part = *at;

        if (part->series != series || part->window != window ||
            memcmp(&part->block, block, sizeof(*block)) != 0)
            continue;
        *at = part->next;
        part->next = seen->parts;
        seen->parts = part;
        return part;
    }
    return NULL;
}

/* The hashes of rows that begin in the window and have a time of their own. */
static int hash_rows(uint64_t seed, const struct kiln_rows *rows, uint64_t window,
                     struct kiln_seen_part **ret_part)
{
    const struct kiln_batch *batch = kiln_rows_batch(rows);
    struct kiln_seen_part *part = kiln_malloc(sizeof(*part) + rows->n * sizeof(*part->profiles));
    struct kiln_content content;
    int r;

    if (!part)
        return -ENOMEM;
    part->n = 0;
    kiln_content_init(&content, seed);
    r = kiln_content_learn(&content, batch);
    for (uint32_t i = 0; r == 0 && i < rows->n; i++) {
        const struct kiln_row *row = &rows->rows[i];
        struct kiln_content_place place = {row->resource, row->scope, row->first_sample};

        if (batch->profiles[i].time_ns >> WINDOW_BITS != window ||
            (row->flags & KILN_PROFILE_TIME_SET))
            continue;
        part->profiles[part->n++] = (struct seen_profile){
            batch->profiles[i].time_ns, kiln_content_profile(&content, batch, i, &place)};
    }
    kiln_content_done(&content);
    if (r < 0)
        kiln_free(part);
    else
        *ret_part = part;
    return r;
}

/* What a damaged block has lost is not there; what it still has will be read by others too. */
static void pass_over(void *context, const struct kiln_block_lost *lost)
{
    (void)context;
    (void)lost;
}

static int read_rows(struct kiln_block *block, uint32_t series, uint64_t window,
                     struct kiln_rows *rows)
{
    size_t words = kiln_block_info(block)->n_series / 64 + 1;
    uint64_t *bits = kiln_calloc(words, sizeof(*bits));
    struct kiln_block_read_opts opts = {.series = bits,
                                        .start_ns = window << WINDOW_BITS,
                                        .end_ns = (window + 1) << WINDOW_BITS,
                                        .lost = pass_over};
    struct kiln_block_reader *reader;
    int r = -ENOMEM;

    if (!bits)
        return r;
    if (opts.end_ns == 0)
        opts.end_ns = UINT64_MAX;
    bits[series / 64] |= UINT64_C(1) << series % 64;
    r = kiln_block_read(block, &opts, rows->b, &reader, NULL);
    if (r == 0) {
        r = kiln_rows_read(rows, reader, NULL, NULL);
        kiln_block_reader_free(reader);
    }
    kiln_free(bits);
    return r;
}

static int read_part(struct kiln_seen *seen, struct kiln_block *block, uint32_t series,
                     uint64_t window, struct kiln_seen_part **ret_part)
{
    struct kiln_limits limits = kiln_limits_default;
    struct kiln_rows rows;
    int r;

    limits.memory_bytes = (size_t)kiln_block_info(block)->dict_bytes * 3 + READ_BYTES;
    r = kiln_pool_take(seen->pool, limits.memory_bytes);
    if (r < 0)
        return r;
    r = kiln_rows_init(&rows, &limits);
    if (r == 0) {
        r = read_rows(block, series, window, &rows);
        if (r == 0)
            r = hash_rows(seen->seed, &rows, window, ret_part);
        kiln_rows_done(&rows);
    }
    kiln_pool_give(seen->pool, limits.memory_bytes);
    if (r == 0) {
        (*ret_part)->block = kiln_block_info(block)->id;
        (*ret_part)->series = series;
        (*ret_part)->window = window;
    }
    return r;
}

static bool part_has(const struct kiln_seen_part *part, uint64_t time_ns,
                     struct kiln_content_hash hash)
{
    for (uint32_t i = 0; i < part->n; i++) {
        if (part->profiles[i].time_ns == time_ns &&
            kiln_content_equal(part->profiles[i].hash, hash))
            return true;
    }
    return false;
}

/* ---- blocks ---- */

/* The series of a block with this key; 1, 0 or an error. */
static int find_series(const struct kiln_block *block, struct kiln_str key, uint32_t *ret_index,
                       struct kiln_block_series *ret_series)
{
    uint32_t low = 0, high = (uint32_t)kiln_block_info(block)->n_series;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int r = kiln_block_series(block, mid, ret_series);
        int order = r < 0 ? 0 : kiln_str_cmp(ret_series->key, key);

        if (r < 0)
            return r;
        if (order == 0) {
            *ret_index = mid;
            return 1;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return 0;
}

static int block_has(struct kiln_seen *seen, struct kiln_block *block, struct kiln_str key,
                     uint64_t time_ns, struct kiln_content_hash hash)
{
    struct kiln_seen_part *part;
    struct kiln_block_series series;
    uint32_t index;
    bool has;
    int r;

    r = find_series(block, key, &index, &series);
    if (r <= 0)
        return r;
    if (time_ns < series.min_ns || time_ns > series.max_ns)
        return 0;
    part = find_part(seen, &kiln_block_info(block)->id, index, time_ns >> WINDOW_BITS);
    if (part)
        return part_has(part, time_ns, hash);
    r = read_part(seen, block, index, time_ns >> WINDOW_BITS, &part);
    if (r < 0)
        return r;
    has = part_has(part, time_ns, hash);
    keep_part(seen, part);
    return has;
}

int kiln_seen_find(struct kiln_seen *seen, struct kiln_block *const *blocks, uint32_t n,
                   struct kiln_str key, uint64_t time_ns, struct kiln_content_hash hash)
{
    struct kiln_content_hash print = fingerprint(key, time_ns, hash);
    uint64_t from = seen->old.from;
    int r = 0;

    if (half_has(&seen->young, print) || half_has(&seen->old, print))
        return 1;
    for (uint32_t i = 0; i < n && r <= 0; i++) {
        const struct kiln_block_info *info = kiln_block_info(blocks[i]);
        int found;

        if (info->log_from >= from || time_ns < info->min_ns || time_ns > info->max_ns)
            continue;
        found = block_has(seen, blocks[i], key, time_ns, hash);
        if (found != 0)
            r = found;
    }
    return r;
}

/* ---- as a whole ---- */

void kiln_seen_init(struct kiln_seen *seen, struct kiln_pool *pool, uint64_t seed, uint64_t number)
{
    *seen = (struct kiln_seen){
        .pool = pool, .seed = seed, .young = {.from = number + 1}, .old = {.from = number + 1}};
}

void kiln_seen_clear(struct kiln_seen *seen, uint64_t number)
{
    half_done(seen, &seen->young);
    half_done(seen, &seen->old);
    while (seen->parts)
        drop_last_part(seen);
    seen->young.from = seen->old.from = number + 1;
}

void kiln_seen_done(struct kiln_seen *seen)
{
    kiln_seen_clear(seen, 0);
}

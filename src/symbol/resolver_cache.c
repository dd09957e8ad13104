/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each half is a table by (id, version, address), and a table of texts, since many addresses are in
 * one function.
 */
#include <errno.h>

#include "base/hash.h"
#include "symbol/resolver_int.h"

enum { TABLE_FIRST = 256, TABLE_MAX = 1 << 24 };

/* What a function is called, each once in a half. */
struct texts {
    uint64_t hash;
    struct kiln_str function, system_name, file, module;
};

struct entry {
    struct kiln_kept_key key;
    union {
        const struct texts *texts;
        uint64_t begin;
    };
    uint32_t line, start_line;
    bool used, has_name; /* it has texts; else where the function begins */
};

struct kiln_kept_half {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct entry *entries;
    uint32_t n_entries, cap_entries; /* capacities are powers of two */
    const struct texts **texts;
    uint32_t n_texts, cap_texts;
    struct kiln_kept_half *next; /* of those that are gone */
};

void kiln_name_cache_init(struct kiln_name_cache *cache, size_t bytes)
{
    /* Two halves, and a third that may have to live until the end of a call. */
    *cache = (struct kiln_name_cache){.half_bytes = bytes / 3};
}

static void half_free(struct kiln_kept_half *half)
{
    if (!half)
        return;
    kiln_free(half->entries);
    kiln_free(half->texts);
    kiln_arena_done(&half->arena);
    kiln_free(half);
}

void kiln_name_cache_turn(struct kiln_name_cache *cache)
{
    while (cache->gone) {
        struct kiln_kept_half *half = cache->gone;

        cache->gone = half->next;
        half_free(half);
    }
}

void kiln_name_cache_done(struct kiln_name_cache *cache)
{
    kiln_name_cache_turn(cache);
    half_free(cache->now);
    half_free(cache->before);
    *cache = (struct kiln_name_cache){0};
}

size_t kiln_name_cache_bytes(const struct kiln_name_cache *cache)
{
    return (cache->now ? cache->now->budget.used : 0) +
           (cache->before ? cache->before->budget.used : 0);
}

/* A new half before the others. */
static int rotate(struct kiln_name_cache *cache)
{
    struct kiln_kept_half *half = kiln_calloc(1, sizeof(*half));

    if (!half)
        return -ENOMEM;
    half->budget.limit = cache->half_bytes;
    kiln_arena_init(&half->arena, &half->budget);
    if (cache->before) {
        cache->before->next = cache->gone;
        cache->gone = cache->before;
    }
    cache->before = cache->now;
    cache->now = half;
    return 0;
}

static uint64_t hash_key(const struct kiln_kept_key *key)
{
    return kiln_hash_mix(kiln_hash_mix(key->id, key->version), key->address);
}

static struct entry *entry_of(const struct kiln_kept_half *half, const struct kiln_kept_key *key)
{
    uint32_t mask = half->cap_entries - 1;
    uint32_t at = (uint32_t)hash_key(key) & mask;

    while (half->entries[at].used && memcmp(&half->entries[at].key, key, sizeof(*key)) != 0)
        at = (at + 1) & mask;
    return half->entries + at;
}

static int grow_entries(struct kiln_kept_half *half)
{
    struct kiln_kept_half more = *half;
    int r;

    more.cap_entries = half->cap_entries ? half->cap_entries * 2 : TABLE_FIRST;
    if (more.cap_entries > TABLE_MAX)
        return KILN_E_LIMIT;
    r = kiln_budget_take(&half->budget, more.cap_entries * sizeof(*more.entries));
    if (r < 0)
        return r;
    more.entries = kiln_calloc(more.cap_entries, sizeof(*more.entries));
    if (!more.entries) {
        kiln_budget_give(&half->budget, more.cap_entries * sizeof(*more.entries));
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < half->cap_entries; i++) {
        if (half->entries[i].used)
            *entry_of(&more, &half->entries[i].key) = half->entries[i];
    }
    kiln_free(half->entries);
    kiln_budget_give(&half->budget, half->cap_entries * sizeof(*half->entries));
    half->entries = more.entries;
    half->cap_entries = more.cap_entries;
    return 0;
}

static uint64_t hash_texts(const struct kiln_name *name)
{
    uint64_t hash = kiln_hash(name->function.ptr, name->function.len);

    hash = kiln_hash_mix(hash, kiln_hash(name->system_name.ptr, name->system_name.len));
    hash = kiln_hash_mix(hash, kiln_hash(name->file.ptr, name->file.len));
    return kiln_hash_mix(hash, kiln_hash(name->module.ptr, name->module.len));
}

static bool same_texts(const struct texts *texts, uint64_t hash, const struct kiln_name *name)
{
    return texts->hash == hash && kiln_str_eq(texts->function, name->function) &&
           kiln_str_eq(texts->system_name, name->system_name) &&
           kiln_str_eq(texts->file, name->file) && kiln_str_eq(texts->module, name->module);
}

static int grow_texts(struct kiln_kept_half *half)
{
    uint32_t cap = half->cap_texts ? half->cap_texts * 2 : TABLE_FIRST;
    const struct texts **texts;
    int r = kiln_budget_take(&half->budget, cap * sizeof(*texts));

    if (r < 0)
        return r;
    texts = kiln_calloc(cap, sizeof(*texts));
    if (!texts) {
        kiln_budget_give(&half->budget, cap * sizeof(*texts));
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < half->cap_texts; i++) {
        uint32_t at = half->texts[i] ? (uint32_t)half->texts[i]->hash & (cap - 1) : 0;

        while (half->texts[i] && texts[at])
            at = (at + 1) & (cap - 1);
        if (half->texts[i])
            texts[at] = half->texts[i];
    }
    kiln_free(half->texts);
    kiln_budget_give(&half->budget, half->cap_texts * sizeof(*texts));
    half->texts = texts;
    half->cap_texts = cap;
    return 0;
}

static struct kiln_str copy(struct kiln_kept_half *half, struct kiln_str text, int *r)
{
    if (text.len == 0 || *r < 0)
        return KILN_STR_NONE;
    text = kiln_arena_copy(&half->arena, text);
    if (!text.ptr)
        *r = half->budget.used + text.len > half->budget.limit ? KILN_E_LIMIT : -ENOMEM;
    return text;
}

static int add_texts(struct kiln_kept_half *half, const struct kiln_name *name,
                     const struct texts **ret_texts)
{
    uint64_t hash = hash_texts(name);
    struct texts *made;
    uint32_t at;
    int r = 0;

    if (half->n_texts * 2 >= half->cap_texts)
        r = grow_texts(half);
    if (r < 0)
        return r;
    at = (uint32_t)hash & (half->cap_texts - 1);
    for (; half->texts[at]; at = (at + 1) & (half->cap_texts - 1)) {
        if (same_texts(half->texts[at], hash, name)) {
            *ret_texts = half->texts[at];
            return 0;
        }
    }
    made = kiln_arena_alloc(&half->arena, sizeof(*made));
    if (!made)
        return KILN_E_LIMIT;
    made->hash = hash;
    made->function = copy(half, name->function, &r);
    made->system_name = copy(half, name->system_name, &r);
    made->file = copy(half, name->file, &r);
    made->module = copy(half, name->module, &r);
    if (r < 0)
        return r;
    half->texts[at] = *ret_texts = made;
    half->n_texts++;
    return 0;
}

static struct kiln_name name_of(const struct entry *entry)
{
    if (!entry->has_name)
        return (struct kiln_name){.begin = entry->begin};
    return (struct kiln_name){.function = entry->texts->function,
                              .system_name = entry->texts->system_name,
                              .file = entry->texts->file,
                              .module = entry->texts->module,
                              .line = entry->line,
                              .start_line = entry->start_line};
}

static int put(struct kiln_kept_half *half, const struct kiln_kept_key *key,
               const struct kiln_name *name, struct kiln_name *ret_kept)
{
    struct entry made = {
        .key = *key, .begin = name->begin, .used = true, .has_name = name->function.len > 0};
    struct entry *entry;
    int r = half->n_entries * 4 >= half->cap_entries * 3 ? grow_entries(half) : 0;

    if (r == 0 && made.has_name)
        r = add_texts(half, name, &made.texts);
    if (r < 0)
        return r;
    made.line = name->line;
    made.start_line = name->start_line;
    entry = entry_of(half, key);
    half->n_entries += !entry->used;
    *entry = made;
    *ret_kept = name_of(entry);
    return 0;
}

int kiln_name_cache_put(struct kiln_name_cache *cache, const struct kiln_kept_key *key,
                        const struct kiln_name *name, struct kiln_name *ret_kept)
{
    int r = cache->now ? put(cache->now, key, name, ret_kept) : KILN_E_LIMIT;

    if (r != KILN_E_LIMIT)
        return r;
    r = rotate(cache);
    if (r == 0)
        r = put(cache->now, key, name, ret_kept);
    return r < 0 ? -ENOMEM : 0;
}

int kiln_name_cache_get(struct kiln_name_cache *cache, const struct kiln_kept_key *key,
                        struct kiln_name *ret_name)
{
    const struct kiln_kept_half *halves[] = {cache->now, cache->before};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(halves); i++) {
        const struct entry *entry;
        struct kiln_name name;
        int r;

        if (!halves[i] || halves[i]->cap_entries == 0)
            continue;
        entry = entry_of(halves[i], key);
        if (!entry->used)
            continue;
        if (i == 0) {
            *ret_name = name_of(entry);
            return 1;
        }
        name = name_of(entry);
        r = kiln_name_cache_put(cache, key, &name, ret_name);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each half is a table by (id, version, address), a set of lists of frames, since many addresses
 * have the same, and a set of texts, since many frames are of one function or file.
 */
#include <errno.h>

#include "base/hash.h"
#include "symbol/resolver_int.h"

enum { TABLE_FIRST = 256, TABLE_MAX = 1 << 24 };

/* What texts and lists begin with. */
struct item {
    uint64_t hash;
};

struct text {
    struct item item;
    struct kiln_str text;
};

/* The frames of an address: many addresses of a function without lines share one. */
struct list {
    struct item item;
    struct kiln_str module;
    uint32_t n;
    struct kiln_name_frame frames[]; /* with texts that are kept */
};

/* Items by hash, in a half's arena.  Capacities are powers of two. */
struct set {
    const struct item **items;
    uint32_t n, cap;
};

struct entry {
    struct kiln_kept_key key;
    union {
        const struct list *list;
        uint64_t begin;
    };
    bool used, has_name; /* it has a list; else where the function begins */
    bool shallow;
};

struct kiln_kept_half {
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct entry *entries;
    uint32_t n_entries, cap_entries; /* a power of two */
    struct set texts, lists;
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
    kiln_free(half->texts.items);
    kiln_free(half->lists.items);
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

/* ---- sets ---- */

static int grow_set(struct kiln_kept_half *half, struct set *set)
{
    struct set more = {.n = set->n, .cap = set->cap ? set->cap * 2 : TABLE_FIRST};
    int r = kiln_budget_take(&half->budget, more.cap * sizeof(*more.items));

    if (r < 0)
        return r;
    more.items = kiln_calloc(more.cap, sizeof(*more.items));
    if (!more.items) {
        kiln_budget_give(&half->budget, more.cap * sizeof(*more.items));
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < set->cap; i++) {
        uint32_t at = set->items[i] ? (uint32_t)set->items[i]->hash & (more.cap - 1) : 0;

        while (set->items[i] && more.items[at])
            at = (at + 1) & (more.cap - 1);
        if (set->items[i])
            more.items[at] = set->items[i];
    }
    kiln_free(set->items);
    kiln_budget_give(&half->budget, set->cap * sizeof(*more.items));
    *set = more;
    return 0;
}

/* The place of the next item with this hash, from `at` on, or a free one; there is room. */
static uint32_t place_of(const struct set *set, uint64_t hash, uint32_t at)
{
    at &= set->cap - 1;
    while (set->items[at] && set->items[at]->hash != hash)
        at = (at + 1) & (set->cap - 1);
    return at;
}

static int make_room(struct kiln_kept_half *half, struct set *set)
{
    return set->n * 2 >= set->cap ? grow_set(half, set) : 0;
}

static void add_item(struct set *set, uint32_t at, const struct item *item)
{
    set->items[at] = item;
    set->n++;
}

/* The arena takes blocks, and may want a larger one than is left though `n` bytes would fit: the
 * next half has room, or there is no memory indeed. */
enum { NO_ROOM = KILN_E_LIMIT };

/* ---- texts ---- */

static int keep_text(struct kiln_kept_half *half, struct kiln_str text, struct kiln_str *ret)
{
    uint64_t hash = kiln_hash(text.ptr, text.len);
    struct text *made;
    uint32_t at;
    int r = text.len ? make_room(half, &half->texts) : 0;

    if (r < 0 || !text.len) {
        *ret = KILN_STR_NONE;
        return r;
    }
    at = place_of(&half->texts, hash, (uint32_t)hash);
    for (; half->texts.items[at]; at = place_of(&half->texts, hash, at + 1)) {
        const struct text *known = (const struct text *)half->texts.items[at];

        if (kiln_str_eq(known->text, text)) {
            *ret = known->text;
            return 0;
        }
    }
    made = kiln_arena_alloc(&half->arena, sizeof(*made));
    if (!made)
        return NO_ROOM;
    made->item.hash = hash;
    made->text = kiln_arena_copy(&half->arena, text);
    if (!made->text.ptr)
        return NO_ROOM;
    add_item(&half->texts, at, &made->item);
    *ret = made->text;
    return 0;
}

static int keep_frame(struct kiln_kept_half *half, struct kiln_name_frame *frame)
{
    int r = keep_text(half, frame->function, &frame->function);

    if (r == 0)
        r = keep_text(half, frame->system_name, &frame->system_name);
    return r < 0 ? r : keep_text(half, frame->file, &frame->file);
}

/* ---- lists of frames: their texts are kept, so that pointers tell whether they are the same ----
 */

static uint64_t hash_list(const struct kiln_name *name)
{
    uint64_t hash = kiln_hash_mix(name->n, (uintptr_t)name->module.ptr);

    for (uint32_t i = 0; i < name->n; i++) {
        const struct kiln_name_frame *f = name->frames + i;

        hash = kiln_hash_mix(hash, (uintptr_t)f->function.ptr ^ (uint64_t)f->line << 40);
        hash = kiln_hash_mix(hash, (uintptr_t)f->system_name.ptr ^ (uint64_t)f->column << 40);
        hash = kiln_hash_mix(hash, (uintptr_t)f->file.ptr ^ (uint64_t)f->start_line << 40);
    }
    return hash;
}

static bool same_frame(const struct kiln_name_frame *a, const struct kiln_name_frame *b)
{
    return a->function.ptr == b->function.ptr && a->system_name.ptr == b->system_name.ptr &&
           a->file.ptr == b->file.ptr && a->line == b->line && a->column == b->column &&
           a->start_line == b->start_line;
}

static bool same_list(const struct list *list, const struct kiln_name *name)
{
    bool same = list->n == name->n && list->module.ptr == name->module.ptr;

    for (uint32_t i = 0; same && i < name->n; i++)
        same = same_frame(list->frames + i, name->frames + i);
    return same;
}

static int make_list(struct kiln_kept_half *half, uint64_t hash, const struct kiln_name *name,
                     struct list **ret_list)
{
    size_t size = sizeof(**ret_list) + name->n * sizeof(*name->frames);
    struct list *made = kiln_arena_alloc(&half->arena, size);

    if (!made)
        return NO_ROOM;
    made->item.hash = hash;
    made->module = name->module;
    made->n = name->n;
    memcpy(made->frames, name->frames, name->n * sizeof(*name->frames));
    *ret_list = made;
    return 0;
}

static int find_list(struct kiln_kept_half *half, const struct kiln_name *name,
                     const struct list **ret_list)
{
    uint64_t hash = hash_list(name);
    struct list *made;
    uint32_t at;
    int r = make_room(half, &half->lists);

    if (r < 0)
        return r;
    at = place_of(&half->lists, hash, (uint32_t)hash);
    for (; half->lists.items[at]; at = place_of(&half->lists, hash, at + 1)) {
        const struct list *known = (const struct list *)half->lists.items[at];

        if (same_list(known, name)) {
            *ret_list = known;
            return 0;
        }
    }
    r = make_list(half, hash, name, &made);
    if (r < 0)
        return r;
    add_item(&half->lists, at, &made->item);
    *ret_list = made;
    return 0;
}

static int keep_list(struct kiln_kept_half *half, const struct kiln_name *name,
                     const struct list **ret_list)
{
    struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];
    struct kiln_name kept = {.frames = frames};
    int r = keep_text(half, name->module, &kept.module);

    for (; r == 0 && kept.n < name->n && kept.n < KILN_NAME_FRAMES_MAX; kept.n++) {
        frames[kept.n] = name->frames[kept.n];
        r = keep_frame(half, frames + kept.n);
    }
    return r < 0 ? r : find_list(half, &kept, ret_list);
}

/* ---- names ---- */

static struct kiln_name name_of(const struct entry *entry)
{
    if (!entry->has_name)
        return (struct kiln_name){.begin = entry->begin, .shallow = entry->shallow};
    return (struct kiln_name){.frames = entry->list->frames,
                              .n = entry->list->n,
                              .module = entry->list->module,
                              .shallow = entry->shallow};
}

static int put(struct kiln_kept_half *half, const struct kiln_kept_key *key,
               const struct kiln_name *name, struct kiln_name *ret_kept)
{
    struct entry made = {.key = *key,
                         .begin = name->begin,
                         .used = true,
                         .has_name = name->n > 0,
                         .shallow = name->shallow};
    struct entry *entry;
    int r = half->n_entries * 4 >= half->cap_entries * 3 ? grow_entries(half) : 0;

    if (r == 0 && made.has_name)
        r = keep_list(half, name, &made.list);
    if (r < 0)
        return r;
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

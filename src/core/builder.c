/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every table is an array of the batch under construction plus a hash index over it
 * (core/intern.h).  Entry 0, the zero value, is not in the index: it is recognised before a
 * look-up. Records are compared as bytes, so
 * their padding is always zero; they are hashed field by field, because a wide load right after
 * narrow stores stalls the processor longer than the hash takes.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "core/builder_int.h"

const struct kiln_limits kiln_limits_default = {
    .memory_bytes = 1u << 30,
    .table_count = 1u << 28,
    .stack_depth = 1u << 16,
    .value_depth = 64,
};

void kiln_builder_fail(struct kiln_builder *b, int code)
{
    assert(code < 0);
    if (!b->error)
        b->error = code;
}

int kiln_builder_error(const struct kiln_builder *b)
{
    return b->error;
}

const struct kiln_limits *kiln_builder_limits(const struct kiln_builder *b)
{
    return &b->limits;
}

const struct kiln_batch *kiln_builder_peek(const struct kiln_builder *b)
{
    return &b->box->batch;
}

/* ---- arrays ---- */

#define BLOCK_MAX ((size_t)256 << 10) /* beyond that, arrays of their own grow without copies */

static size_t aligned(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

/* Memory for an array in the box or its block; NULL if neither has room. */
static void *carve(struct kiln_batch_box *box, size_t bytes)
{
    size_t room = aligned(bytes);
    char *at = NULL;

    if (room <= box->block_bytes - box->block_used) {
        at = box->block + box->block_used;
        box->block_used += room;
    } else if (room <= sizeof(box->first) - box->first_used) {
        at = box->first + box->first_used;
        box->first_used += room;
    }
    return at;
}

/* Moves an array that lies in the box (or nowhere yet) to where `want` elements fit. */
static int move_array(struct kiln_builder *b, void **array, uint32_t *cap, uint64_t want,
                      size_t size)
{
    void *moved = want > BLOCK_MAX ? NULL : carve(b->box, (size_t)want * size);
    int r;

    if (!moved) {
        r = kiln_budget_take(&b->box->budget, (size_t)want * size);
        if (r < 0)
            return r;
        moved = kiln_malloc((size_t)want * size);
        if (!moved) {
            kiln_budget_give(&b->box->budget, (size_t)want * size);
            return -ENOMEM;
        }
    }
    if (*array)
        memcpy(moved, *array, (size_t)*cap * size);
    *array = moved;
    *cap = (uint32_t)want;
    return 0;
}

/* Exactly `need` elements, where they are known beforehand. */
static int reserve_array(struct kiln_builder *b, void **array, uint32_t *cap, uint64_t need,
                         size_t size)
{
    if (need <= *cap)
        return 0;
    if (need > b->limits.table_count)
        return KILN_E_LIMIT;
    if (*array && !kiln_box_holds(b->box, *array))
        return kiln_reserve(&b->box->budget, array, cap, need, size, b->limits.table_count);
    return move_array(b, array, cap, need, size);
}

int kiln_builder_grow(struct kiln_builder *b, void **array, uint32_t *cap, uint64_t need,
                      size_t size)
{
    uint64_t want = *cap ? (uint64_t)*cap * 2 : 4;

    if (*array && !kiln_box_holds(b->box, *array))
        return kiln_grow(&b->box->budget, array, cap, need, size, b->limits.table_count);
    if (need > b->limits.table_count)
        return KILN_E_LIMIT;
    if (want < need)
        want = need;
    if (want > b->limits.table_count)
        want = b->limits.table_count;
    return move_array(b, array, cap, want, size);
}

/* Makes entry 0 of each table. */
static void add_zero_values(struct kiln_builder *b)
{
    struct kiln_dict *d = &b->box->batch.dict;

#define ZERO(table, zero)                                                                          \
    if (ROOM(b, d->table, 0, table, 1))                                                            \
    d->table[d->n_##table++] = (zero)
    ZERO(strings, KILN_STR(""));
    ZERO(functions, (struct kiln_function){0});
    ZERO(mappings, (struct kiln_mapping){0});
    ZERO(locations, (struct kiln_location){0});
    ZERO(stacks, (struct kiln_range){0});
    ZERO(links, (struct kiln_link){0});
    ZERO(attrs, (struct kiln_attr){0});
    ZERO(sets, (struct kiln_range){0});
#undef ZERO
}

/* Memory for every other array, so that none is NULL and an empty range may be pointed to. */
static void make_arrays(struct kiln_builder *b)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_dict *d = &batch->dict;
    bool ok = ROOM(b, d->lines, 0, lines, 1);

    ok = ok && ROOM(b, d->frames, 0, frames, 1);
    ok = ok && ROOM(b, d->nested, 0, nested, 1);
    ok = ok && ROOM(b, d->members, 0, members, 1);
    ok = ok && ROOM(b, batch->entity_keys, 0, entity_keys, 1);
    ok = ok && ROOM(b, batch->samples, 0, samples, 1);
    if (ok)
        (void)ROOM(b, batch->observations, 0, observations, 1);
}

int kiln_builder_new(const struct kiln_limits *limits, struct kiln_builder **ret_builder)
{
    struct kiln_builder *b = kiln_calloc(1, sizeof(*b));

    if (!b)
        return -ENOMEM;
    b->box = kiln_calloc(1, sizeof(*b->box));
    if (!b->box) {
        kiln_free(b);
        return -ENOMEM;
    }
    b->limits = limits ? *limits : kiln_limits_default;
    atomic_store(&b->box->refs, 1);
    b->box->budget.limit = b->limits.memory_bytes;
    kiln_arena_init(&b->box->arena, &b->box->budget);
    kiln_arena_init(&b->scratch, &b->box->budget);
    add_zero_values(b);
    make_arrays(b);
    if (b->error) {
        int r = b->error;

        kiln_builder_free(b);
        return r;
    }
    *ret_builder = b;
    return 0;
}

static void *alloc_from(struct kiln_builder *b, struct kiln_arena *arena, size_t size)
{
    void *ptr = b->error ? NULL : kiln_arena_alloc(arena, size);

    if (!ptr)
        kiln_builder_fail(b, KILN_E_LIMIT);
    return ptr;
}

void *kiln_builder_alloc(struct kiln_builder *b, size_t size)
{
    return alloc_from(b, &b->box->arena, size);
}

void *kiln_builder_scratch(struct kiln_builder *b, size_t size)
{
    return alloc_from(b, &b->scratch, size);
}

void kiln_builder_adopt(struct kiln_builder *b, void *ptr, size_t size)
{
    int r = kiln_arena_adopt(&b->box->arena, ptr, size);

    if (r == 0)
        return;
    kiln_free(ptr);
    kiln_builder_fail(b, r);
}

static void expect(struct kiln_builder *b, struct kiln_intern *index, void **array, uint32_t n,
                   uint32_t *cap, uint64_t more, size_t size)
{
    int r = 0;

    if (more == 0 || b->error)
        return;
    if (index)
        r = kiln_intern_expect(index, &b->box->budget, more);
    if (r == 0)
        r = reserve_array(b, array, cap, n + more, size);
    if (r < 0)
        kiln_builder_fail(b, r);
}

/* One block for all that is to come, if it is little. */
static void make_block(struct kiln_builder *b, const struct kiln_counts *more)
{
    struct kiln_batch_box *box = b->box;
    const struct kiln_dict *d = &box->batch.dict;
    uint64_t bytes = 0;

    if (box->block || b->error)
        return;
#define TABLE(owner, field)                                                                        \
    if (more->field)                                                                               \
    bytes += ((owner)->n_##field + more->field + 2) * sizeof(*(owner)->field) + 16
    TABLE(d, strings);
    TABLE(d, functions);
    TABLE(d, mappings);
    TABLE(d, locations);
    TABLE(d, stacks);
    TABLE(d, links);
    TABLE(d, attrs);
    TABLE(d, sets);
    TABLE(d, lines);
    TABLE(d, frames);
    TABLE(d, members);
    TABLE(&box->batch, resources);
    TABLE(&box->batch, scopes);
    TABLE(&box->batch, profiles);
    TABLE(&box->batch, samples);
    TABLE(&box->batch, observations);
#undef TABLE
    if (bytes > BLOCK_MAX || kiln_budget_take(&box->budget, (size_t)bytes) < 0)
        return;
    box->block = kiln_malloc((size_t)bytes);
    if (box->block)
        box->block_bytes = (size_t)bytes;
    else
        kiln_budget_give(&box->budget, (size_t)bytes);
}

void kiln_builder_expect(struct kiln_builder *b, const struct kiln_counts *more)
{
    struct kiln_batch *batch = &b->box->batch;
    struct kiln_dict *d = &batch->dict;

#define TABLE(index, owner, field, extra)                                                          \
    expect(b, index, (void **)&(owner)->field, (owner)->n_##field, &b->cap.field,                  \
           more->field ? more->field + (extra) : 0, sizeof(*(owner)->field))
    make_block(b, more);
    TABLE(&b->strings, d, strings, 1);
    TABLE(more->bulk ? NULL : &b->functions, d, functions, 1);
    TABLE(&b->mappings, d, mappings, 1);
    TABLE(more->bulk ? NULL : &b->locations, d, locations, 1);
    TABLE(more->bulk ? NULL : &b->stacks, d, stacks, 1);
    TABLE(&b->links, d, links, 1);
    TABLE(&b->attrs, d, attrs, 1);
    TABLE(&b->sets, d, sets, 1);
    TABLE(NULL, d, lines, 0);
    TABLE(NULL, d, frames, 0);
    TABLE(NULL, d, members, 0);
    TABLE(NULL, batch, resources, 0);
    TABLE(NULL, batch, scopes, 0);
    TABLE(NULL, batch, profiles, 0);
    TABLE(NULL, batch, samples, 0);
    TABLE(NULL, batch, observations, 0);
#undef TABLE
}

/* ---- strings ---- */

/* Out of line, as other additions: most texts are there, and finding one needs few registers. */
static __attribute__((noinline)) uint32_t add_string(struct kiln_builder *b, struct kiln_str s,
                                                     bool copy, uint64_t hash)
{
    struct kiln_dict *d = &b->box->batch.dict;
    int r;

    if (copy) {
        char *text = kiln_builder_alloc(b, s.len);

        if (!text)
            return 0;
        s.ptr = memcpy(text, s.ptr, s.len);
    }
    if (!ROOM(b, d->strings, d->n_strings, strings, 1))
        return 0;
    r = kiln_intern_add(&b->strings, &b->box->budget, hash, d->n_strings);
    if (r < 0) {
        kiln_builder_fail(b, r);
        return 0;
    }
    d->strings[d->n_strings] = s;
    return d->n_strings++;
}

static uint32_t intern_string(struct kiln_builder *b, struct kiln_str s, bool copy)
{
    const struct kiln_dict *d = &b->box->batch.dict;
    uint32_t guess = b->next_string;
    uint64_t hash;

    if (guess < d->n_strings && kiln_str_eq(d->strings[guess], s)) {
        b->next_string++;
        return guess;
    }
    if (s.len == 0 ||
        (kiln_builder_behind(&b->strings, d->n_strings) && !kiln_builder_catch_up(b, &b->strings)))
        return 0;
    hash = kiln_hash(s.ptr, s.len);
    for (struct kiln_probe p = kiln_intern_probe(&b->strings, hash);
         kiln_intern_next(&b->strings, &p);) {
        if (kiln_str_eq(d->strings[p.entry], s)) {
            b->next_string = p.entry + 1;
            return p.entry;
        }
    }
    return add_string(b, s, copy, hash);
}

uint32_t kiln_builder_string(struct kiln_builder *b, struct kiln_str s)
{
    return intern_string(b, s, true);
}

uint32_t kiln_builder_string_ref(struct kiln_builder *b, struct kiln_str s)
{
    return intern_string(b, s, false);
}

/* ---- records: entries of fixed size, equal when their bytes are equal ---- */

/* The table a record goes to; pointers into the builder. */
struct record_table {
    struct kiln_intern *index;
    void **array;
    uint32_t *n;
    uint32_t *cap;
};

#define TABLE(b, table)                                                                            \
    (struct record_table)                                                                          \
    {                                                                                              \
        &(b)->table, (void **)&(b)->box->batch.dict.table, &(b)->box->batch.dict.n_##table,        \
            &(b)->cap.table                                                                        \
    }

KILN_INLINE uint32_t intern_record(struct kiln_builder *b, struct record_table t,
                                   const void *record, size_t size, uint64_t hash)
{
    int r;

    for (struct kiln_probe p = kiln_intern_probe(t.index, hash); kiln_intern_next(t.index, &p);) {
        if (memcmp((char *)*t.array + (size_t)p.entry * size, record, size) == 0)
            return p.entry;
    }
    if (memcmp(*t.array, record, size) == 0)
        return 0;
    if (!kiln_builder_fit(b, t.array, t.cap, (uint64_t)*t.n + 1, size))
        return 0;
    r = kiln_intern_add(t.index, &b->box->budget, hash, *t.n);
    if (r < 0) {
        kiln_builder_fail(b, r);
        return 0;
    }
    memcpy((char *)*t.array + (size_t)*t.n * size, record, size);
    return (*t.n)++;
}

uint32_t kiln_builder_function(struct kiln_builder *b, const struct kiln_function *function)
{
    const struct kiln_dict *d = &b->box->batch.dict;
    uint32_t known = b->next_function;

    assert(function->pad == 0);
    if (known >= d->n_functions || !kiln_function_is(&d->functions[known], function)) {
        if (kiln_builder_behind(&b->functions, d->n_functions) &&
            !kiln_builder_catch_up(b, &b->functions))
            return 0;
        known = intern_record(b, TABLE(b, functions), function, sizeof(*function),
                              kiln_hash_function(function));
    }
    b->next_function = known + 1;
    return known;
}

uint32_t kiln_builder_mapping(struct kiln_builder *b, const struct kiln_mapping *mapping)
{
    return intern_record(b, TABLE(b, mappings), mapping, sizeof(*mapping),
                         kiln_hash_mapping(mapping));
}

uint32_t kiln_builder_link(struct kiln_builder *b, const struct kiln_link *link)
{
    return intern_record(b, TABLE(b, links), link, sizeof(*link), kiln_hash(link, sizeof(*link)));
}

/* ---- lists: entries that are a range of another array ---- */

/* Where a list's elements live, and its index. */
struct list_table {
    struct kiln_intern *index;
    void **pool; /* the array of elements */
    uint32_t *n_pool;
    uint32_t *cap_pool;
    size_t size;   /* of an element */
    uint64_t hash; /* of the list at hand */
};

/* Copies `n` > 0 elements behind the pool, unless they lie there already; false on failure. */
static bool pool_append(struct kiln_builder *b, struct list_table t, const void *elements,
                        uint32_t n)
{
    if (!kiln_builder_fit(b, t.pool, t.cap_pool, (uint64_t)*t.n_pool + n, t.size))
        return false;
    if ((char *)*t.pool + *t.n_pool * t.size != elements)
        memcpy((char *)*t.pool + *t.n_pool * t.size, elements, n * t.size);
    *t.n_pool += n;
    return true;
}

/* Out of line, as add_string(). */
static __attribute__((noinline)) uint32_t add_location(struct kiln_builder *b,
                                                       const struct kiln_location *location,
                                                       const struct kiln_line *lines,
                                                       uint32_t n_lines, uint64_t hash)
{
    struct kiln_dict *d = &b->box->batch.dict;
    struct list_table pool = {NULL,          (void **)&d->lines, &d->n_lines,
                              &b->cap.lines, sizeof(*lines),     0};
    uint32_t first = d->n_lines;
    int r;

    if (n_lines == 0 && !location->address && !location->mapping && !location->attrs)
        return 0;
    if (!ROOM(b, d->locations, d->n_locations, locations, 1) ||
        (n_lines && !pool_append(b, pool, lines, n_lines)))
        return 0;
    r = kiln_intern_add(&b->locations, &b->box->budget, hash, d->n_locations);
    if (r < 0) {
        kiln_builder_fail(b, r);
        return 0;
    }
    d->locations[d->n_locations] = (struct kiln_location){
        .address = location->address,
        .mapping = location->mapping,
        .attrs = location->attrs,
        .first = first,
        .n = n_lines,
    };
    return d->n_locations++;
}

uint32_t kiln_builder_location(struct kiln_builder *b, const struct kiln_location *location,
                               const struct kiln_line *lines, uint32_t n_lines)
{
    const struct kiln_dict *d = &b->box->batch.dict;
    uint32_t guess = b->next_location;
    uint64_t hash;

    if (guess < d->n_locations && kiln_location_is(d, guess, location, lines, n_lines)) {
        b->next_location++;
        return guess;
    }
    hash = kiln_hash_location(location, lines, n_lines);
    if (kiln_builder_behind(&b->locations, d->n_locations) &&
        !kiln_builder_catch_up(b, &b->locations))
        return 0;
    for (struct kiln_probe p = kiln_intern_probe(&b->locations, hash);
         kiln_intern_next(&b->locations, &p);) {
        if (kiln_location_is(d, p.entry, location, lines, n_lines)) {
            b->next_location = p.entry + 1;
            return p.entry;
        }
    }
    return add_location(b, location, lines, n_lines, hash);
}

/* Finds or adds a list of 32-bit indexes: a stack, or a set of attributes. */
static uint32_t intern_indexes(struct kiln_builder *b, struct list_table t,
                               struct kiln_range **ranges, uint32_t *n_ranges, uint32_t *cap_ranges,
                               const uint32_t *elements, uint32_t n)
{
    size_t bytes = (size_t)n * sizeof(*elements);
    int r;

    if (n == 0)
        return 0;
    for (struct kiln_probe p = kiln_intern_probe(t.index, t.hash); kiln_intern_next(t.index, &p);) {
        struct kiln_range known = (*ranges)[p.entry];

        if (known.n == n && memcmp((uint32_t *)*t.pool + known.first, elements, bytes) == 0)
            return p.entry;
    }
    if (!kiln_builder_fit(b, (void **)ranges, cap_ranges, (uint64_t)*n_ranges + 1,
                          sizeof(**ranges)) ||
        !pool_append(b, t, elements, n))
        return 0;
    r = kiln_intern_add(t.index, &b->box->budget, t.hash, *n_ranges);
    if (r < 0) {
        kiln_builder_fail(b, r);
        return 0;
    }
    (*ranges)[*n_ranges] = (struct kiln_range){*t.n_pool - n, n};
    return (*n_ranges)++;
}

uint32_t *kiln_builder_stack_room(struct kiln_builder *b, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;

    return ROOM(b, d->frames, d->n_frames, frames, n) ? d->frames + d->n_frames : NULL;
}

uint32_t kiln_builder_stack(struct kiln_builder *b, const uint32_t *locations, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;
    struct list_table t = {&b->stacks,     (void **)&d->frames, &d->n_frames,
                           &b->cap.frames, sizeof(*d->frames),  0};

    if (n > b->limits.stack_depth) {
        kiln_builder_fail(b, KILN_E_LIMIT);
        return 0;
    }
    if (kiln_builder_behind(&b->stacks, d->n_stacks) && !kiln_builder_catch_up(b, &b->stacks))
        return 0;
    t.hash = kiln_hash(locations, n * sizeof(*locations));
    return intern_indexes(b, t, &d->stacks, &d->n_stacks, &b->cap.stacks, locations, n);
}

uint32_t kiln_builder_stack_take(struct kiln_builder *b, uint32_t n)
{
    const struct kiln_dict *d = &b->box->batch.dict;

    return b->error ? 0 : kiln_builder_stack(b, d->frames + d->n_frames, n);
}

/* ---- attributes ---- */

struct kiln_value kiln_value_string(uint32_t string)
{
    return (struct kiln_value){.kind = KILN_VALUE_STRING, .str = string};
}

struct kiln_value kiln_value_int(int64_t i)
{
    return (struct kiln_value){.kind = KILN_VALUE_INT, .i = i};
}

struct kiln_value kiln_value_bool(bool flag)
{
    return (struct kiln_value){.kind = KILN_VALUE_BOOL, .flag = flag};
}

struct kiln_value kiln_value_double(double d)
{
    return (struct kiln_value){.kind = KILN_VALUE_DOUBLE, .d = d};
}

struct kiln_value kiln_value_bytes(uint32_t string)
{
    return (struct kiln_value){.kind = KILN_VALUE_BYTES, .str = string};
}

uint32_t kiln_builder_attr(struct kiln_builder *b, uint32_t key, struct kiln_value value,
                           uint32_t unit)
{
    /* A struct kiln_attr, in words: it is compared in words, right after it was written. */
    uint64_t attr[3] = {key | (uint64_t)unit << 32, value.kind | (uint64_t)value.n << 32,
                        value.bits};

    _Static_assert(sizeof(attr) == sizeof(struct kiln_attr), "three words");
    return intern_record(b, TABLE(b, attrs), attr, sizeof(attr), kiln_hash_attr(attr));
}

uint32_t kiln_builder_text_attr(struct kiln_builder *b, struct kiln_str key, struct kiln_str value)
{
    return kiln_builder_attr(b, kiln_builder_string(b, key),
                             kiln_value_string(kiln_builder_string(b, value)), 0);
}

/*
 * Children of arrays and maps are interned as whole lists, so that equal values have equal bits.
 */
struct kiln_value kiln_builder_nested(struct kiln_builder *b, enum kiln_value_kind kind,
                                      const struct kiln_attr *children, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;
    struct list_table pool = {&b->lists,      (void **)&d->nested, &d->n_nested,
                              &b->cap.nested, sizeof(*children),   0};
    size_t bytes = (size_t)n * sizeof(*children);
    uint64_t hash;
    int r;

    if (n == 0)
        return (struct kiln_value){.kind = kind};
    hash = kiln_hash(children, bytes);
    for (struct kiln_probe p = kiln_intern_probe(&b->lists, hash);
         kiln_intern_next(&b->lists, &p);) {
        struct kiln_range known = b->list_ranges[p.entry];

        if (known.n == n && memcmp(&d->nested[known.first], children, bytes) == 0)
            return (struct kiln_value){.kind = kind, .n = n, .first = known.first};
    }
    if (!SIDE_ROOM(b, b->list_ranges, b->lists.n, lists, 1) || !pool_append(b, pool, children, n))
        return (struct kiln_value){0};
    b->list_ranges[b->lists.n] = (struct kiln_range){d->n_nested - n, n};
    r = kiln_intern_add(&b->lists, &b->box->budget, hash, b->lists.n);
    if (r < 0) {
        kiln_builder_fail(b, r);
        return (struct kiln_value){0};
    }
    return (struct kiln_value){.kind = kind, .n = n, .first = d->n_nested - n};
}

struct kiln_value kiln_builder_map(struct kiln_builder *b, const struct kiln_attr *entries,
                                   uint32_t n)
{
    return kiln_builder_nested(b, KILN_VALUE_MAP, entries, n);
}

struct kiln_value kiln_builder_array(struct kiln_builder *b, const struct kiln_value *items,
                                     uint32_t n)
{
    struct kiln_value value = {0};
    struct kiln_attr *children;

    if (n == 0)
        return (struct kiln_value){.kind = KILN_VALUE_ARRAY};
    children = kiln_calloc(n, sizeof(*children));
    if (!children) {
        kiln_builder_fail(b, -ENOMEM);
        return value;
    }
    for (uint32_t i = 0; i < n; i++)
        children[i].value = items[i];
    value = kiln_builder_nested(b, KILN_VALUE_ARRAY, children, n);
    kiln_free(children);
    return value;
}

/* ---- attribute sets ---- */

#define SET_SMALL 32u /* up to here a set is sorted and checked without scratch memory */
#define REPEATED  UINT32_MAX

static int by_index(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/*
 * Sorts a small list by insertion, without references to the empty attribute; returns how many
 * stay, or REPEATED where two of it share a key.  The keys are looked at in a copy, since
 * attributes are far apart.
 */
static uint32_t sort_small(const struct kiln_attr *attrs, const uint32_t *list, uint32_t n,
                           uint32_t sorted[SET_SMALL])
{
    uint32_t keys[SET_SMALL], kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t attr = list[i], at = kept;

        if (attr == 0)
            continue;
        keys[kept] = attrs[attr].key;
        for (uint32_t k = 0; k < kept; k++) {
            if (keys[k] == keys[kept])
                return REPEATED;
        }
        for (; at > 0 && sorted[at - 1] > attr; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = attr;
        kept++;
    }
    return kept;
}

/* The list without references to the empty attribute; returns how many stay. */
static uint32_t copy_members(const uint32_t *attrs, uint32_t n, uint32_t *list)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (attrs[i] != 0)
            list[kept++] = attrs[i];
    }
    return kept;
}

struct keyed {
    uint32_t key;
    uint32_t position;
    uint32_t attr;
};

static int by_key_then_position(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->position < y->position ? -1 : 1;
}

/* Drops every attribute whose key comes again later in the list.  Returns how many stay. */
static uint32_t drop_repeated(struct kiln_builder *b, uint32_t *list, uint32_t n)
{
    const struct kiln_attr *attrs = b->box->batch.dict.attrs;
    struct keyed *keyed = kiln_calloc(n, sizeof(*keyed));
    uint32_t kept = 0;

    if (!keyed) {
        kiln_builder_fail(b, -ENOMEM);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++)
        keyed[i] = (struct keyed){attrs[list[i]].key, i, list[i]};
    qsort(keyed, n, sizeof(*keyed), by_key_then_position);
    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 == n || keyed[i + 1].key != keyed[i].key)
            list[kept++] = keyed[i].attr;
    }
    kiln_free(keyed);
    return kept;
}

static uint32_t intern_set(struct kiln_builder *b, const uint32_t *sorted, uint32_t n)
{
    struct kiln_dict *d = &b->box->batch.dict;
    struct list_table t = {&b->sets,        (void **)&d->members, &d->n_members,
                           &b->cap.members, sizeof(*d->members),  kiln_hash_members(sorted, n)};

    return intern_indexes(b, t, &d->sets, &d->n_sets, &b->cap.sets, sorted, n);
}

uint32_t kiln_builder_set(struct kiln_builder *b, const uint32_t *attrs, uint32_t n,
                          uint32_t *ret_duplicates)
{
    uint32_t small[SET_SMALL];
    uint32_t *list;
    uint32_t kept = REPEATED, set;

    if (n == 0 || b->error)
        return 0;
    if (n <= SET_SMALL)
        kept = sort_small(b->box->batch.dict.attrs, attrs, n, small);
    if (kept != REPEATED)
        return intern_set(b, small, kept);
    list = kiln_malloc(n * sizeof(*list));
    if (!list) {
        kiln_builder_fail(b, -ENOMEM);
        return 0;
    }
    n = copy_members(attrs, n, list);
    kept = drop_repeated(b, list, n);
    qsort(list, kept, sizeof(*list), by_index);
    if (ret_duplicates)
        *ret_duplicates += n - kept;
    set = intern_set(b, list, kept);
    kiln_free(list);
    return set;
}

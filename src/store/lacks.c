/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of a build id are a list that grows, and is sorted when it is full or asked for.
 */
#include "store/lacks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "core/frame.h"
#include "core/intern.h"

#define MEMORY_MAX ((size_t)64 << 20) /* of one tenant */

struct build {
    struct kiln_str id, file;
    uint64_t *addresses;
    uint32_t n, cap, n_sorted; /* the first ones are in order, each once, and without symbol */
    uint64_t age;              /* of the symbols that these were compared with */
    uint64_t samples, newest_ns;
    bool more;
};

struct kiln_lacks {
    struct kiln_book *book;
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_intern index;
    struct build *builds;
    uint32_t n, cap;
};

int kiln_lacks_new(struct kiln_book *book, struct kiln_lacks **ret_lacks)
{
    struct kiln_lacks *lacks = kiln_calloc(1, sizeof(*lacks));

    if (!lacks)
        return -ENOMEM;
    lacks->book = book;
    lacks->budget.limit = MEMORY_MAX;
    kiln_arena_init(&lacks->arena, &lacks->budget);
    *ret_lacks = lacks;
    return 0;
}

void kiln_lacks_free(struct kiln_lacks *lacks)
{
    if (!lacks)
        return;
    for (uint32_t i = 0; i < lacks->n; i++)
        kiln_free(lacks->builds[i].addresses);
    kiln_free(lacks->builds);
    kiln_intern_done(&lacks->index, &lacks->budget);
    kiln_arena_done(&lacks->arena);
    kiln_free(lacks);
}

/* ---- build ids ---- */

static int find_build(struct kiln_lacks *lacks, struct kiln_str id, struct kiln_str file,
                      uint32_t *ret)
{
    uint64_t hash = kiln_hash(id.ptr, id.len);
    struct build made = {0};
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&lacks->index, hash);
         kiln_intern_next(&lacks->index, &p);) {
        if (kiln_str_eq(lacks->builds[p.entry].id, id)) {
            *ret = p.entry;
            return 0;
        }
    }
    made.id = kiln_arena_copy(&lacks->arena, id);
    made.file = kiln_arena_copy(&lacks->arena, file);
    r = made.id.ptr && made.file.ptr ? 0 : KILN_E_LIMIT;
    if (r == 0)
        r = kiln_grow(&lacks->budget, (void **)&lacks->builds, &lacks->cap, (uint64_t)lacks->n + 1,
                      sizeof(*lacks->builds), UINT32_MAX);
    if (r == 0)
        r = kiln_intern_add(&lacks->index, &lacks->budget, hash, lacks->n);
    if (r < 0)
        return r;
    lacks->builds[lacks->n] = made;
    *ret = lacks->n++;
    return 0;
}

/* ---- addresses ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Puts them in order, each once, without those that have a symbol. */
static int settle(struct kiln_lacks *lacks, struct build *b)
{
    uint64_t age = kiln_book_age(lacks->book, b->id);
    struct kiln_symbols *symbols = NULL;
    uint32_t kept = 0;
    int r = 0;

    if (b->n == b->n_sorted && age == b->age)
        return 0;
    if (age)
        r = kiln_book_get(lacks->book, b->id, &symbols);
    if (r < 0)
        return r;
    if (b->n > b->n_sorted)
        qsort(b->addresses, b->n, sizeof(*b->addresses), compare);
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t address = b->addresses[i];

        if ((kept == 0 || b->addresses[kept - 1] != address) &&
            !(symbols && kiln_symbols_has(symbols, address)))
            b->addresses[kept++] = address;
    }
    b->n = b->n_sorted = kept;
    b->age = age;
    kiln_symbols_unref(symbols);
    return 0;
}

/* The list has twice the room, so that sorting it is seldom. */
static int add_address(struct kiln_lacks *lacks, struct build *b, uint64_t address)
{
    int r = 0;

    if (b->n && b->addresses[b->n - 1] == address)
        return 0;
    if (b->n == 2 * KILN_LACKS_MAX) {
        r = settle(lacks, b);
        if (r == 0 && b->n > KILN_LACKS_MAX) {
            b->n = b->n_sorted = KILN_LACKS_MAX;
            b->more = true;
        }
    }
    if (r == 0)
        r = kiln_grow(&lacks->budget, (void **)&b->addresses, &b->cap, (uint64_t)b->n + 1,
                      sizeof(*b->addresses), 2 * KILN_LACKS_MAX);
    if (r == KILN_E_LIMIT) {
        b->more = true;
        return 0;
    }
    if (r == 0)
        b->addresses[b->n++] = address;
    return r;
}

/* ---- dictionaries ---- */

/* What a set of attributes stands for. */
struct known {
    uint32_t build; /* and one; 0: not looked at yet */
    bool counted;
};

static int add_location(struct kiln_lacks *lacks, const struct kiln_lacks_source *source,
                        const struct kiln_location *l, struct known *known)
{
    const struct kiln_dict *d = &source->batch->dict;
    const struct kiln_mapping *mapping = &d->mappings[l->mapping];
    struct build *b;
    uint32_t number;
    int r;

    if (known->build == 0) {
        struct kiln_str id = kiln_frame_build_id(source->batch, mapping->attrs);

        if (id.len == 0 || id.len > KILN_SYMBOLS_BUILD_ID_MAX)
            return 0;
        r = find_build(lacks, id, d->strings[mapping->filename], &number);
        if (r < 0)
            return r;
        known->build = number + 1;
    }
    b = &lacks->builds[known->build - 1];
    if (!known->counted) {
        known->counted = true;
        b->samples += source->samples;
        b->newest_ns = source->newest_ns > b->newest_ns ? source->newest_ns : b->newest_ns;
    }
    return add_address(lacks, b, kiln_frame_address(source->batch, l));
}

int kiln_lacks_add(struct kiln_lacks *lacks, const struct kiln_lacks_source *source)
{
    const struct kiln_dict *d = &source->batch->dict;
    struct known *known = kiln_calloc((size_t)d->n_sets + 1, sizeof(*known));
    int r = known ? 0 : -ENOMEM;

    for (uint32_t i = source->first; r == 0 && i < d->n_locations; i++) {
        const struct kiln_location *l = &d->locations[i];

        if (kiln_frame_lack(source->batch, l) != KILN_LACKS_NOTHING)
            r = add_location(lacks, source, l, &known[d->mappings[l->mapping].attrs]);
    }
    kiln_free(known);
    return r;
}

/* ---- asking ---- */

uint32_t kiln_lacks_count(const struct kiln_lacks *lacks)
{
    return lacks->n;
}

int kiln_lacks_get(struct kiln_lacks *lacks, uint32_t number, struct kiln_unnamed *ret_unnamed)
{
    struct build *b = &lacks->builds[number];
    int r = settle(lacks, b);

    if (r < 0)
        return r;
    *ret_unnamed = (struct kiln_unnamed){
        .build_id = b->id,
        .file = b->file,
        .addresses = b->addresses,
        .n = b->n > KILN_LACKS_MAX ? KILN_LACKS_MAX : b->n,
        .more = b->more || b->n > KILN_LACKS_MAX,
        .samples = b->samples,
        .newest_ns = b->newest_ns,
    };
    return 0;
}

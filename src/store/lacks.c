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

uint32_t kiln_lacks_find(const struct kiln_lacks *lacks, struct kiln_str id)
{
    for (struct kiln_probe p = kiln_intern_probe(&lacks->index, kiln_hash(id.ptr, id.len));
         kiln_intern_next(&lacks->index, &p);) {
        if (kiln_str_eq(lacks->builds[p.entry].id, id))
            return p.entry;
    }
    return UINT32_MAX;
}

static int find_build(struct kiln_lacks *lacks, struct kiln_str id, struct kiln_str file,
                      uint32_t *ret)
{
    uint64_t hash = kiln_hash(id.ptr, id.len);
    struct build made = {0};
    int r;

    *ret = kiln_lacks_find(lacks, id);
    if (*ret != UINT32_MAX)
        return 0;
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
        if (r == 0 && b->n > KILN_LACKS_MAX + KILN_LACKS_MAX / 2) {
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

enum { NOT_KNOWN, NO_BUILD, HAS_BUILD, LACKING };

/* What a set of attributes of a mapping stands for. */
struct known {
    uint32_t build;
    uint32_t state;
};

static int look_up(struct kiln_lacks *lacks, const struct kiln_batch *batch,
                   const struct kiln_mapping *mapping, struct known *known)
{
    struct kiln_str id = kiln_frame_build_id(batch, mapping->attrs);
    int r;

    if (known->state != NOT_KNOWN)
        return 0;
    known->state = NO_BUILD;
    if (id.len == 0 || id.len > KILN_SYMBOLS_BUILD_ID_MAX)
        return 0;
    r = find_build(lacks, id, batch->dict.strings[mapping->filename], &known->build);
    known->state = HAS_BUILD;
    return r;
}

static int add_locations(struct kiln_lacks *lacks, const struct kiln_batch *batch,
                         struct kiln_lacks_range range, struct known *known)
{
    const struct kiln_dict *d = &batch->dict;
    int r = 0;

    for (uint32_t i = range.first; r == 0 && i < range.end; i++) {
        const struct kiln_location *l = &d->locations[i];
        struct known *k = &known[d->mappings[l->mapping].attrs];

        if (k->state < HAS_BUILD || kiln_frame_lack(batch, l) == KILN_LACKS_NOTHING)
            continue;
        k->state = LACKING;
        r = add_address(lacks, &lacks->builds[k->build], kiln_frame_address(batch, l));
    }
    return r;
}

static int by_build(const void *a, const void *b)
{
    const struct kiln_build_use *x = a, *y = b;

    if (x->build != y->build)
        return x->build < y->build ? -1 : 1;
    return y->lacking - x->lacking;
}

static int list_uses(const struct known *known, uint32_t n_sets, struct kiln_build_use **ret_uses,
                     uint32_t *ret_n)
{
    struct kiln_build_use *uses = kiln_calloc((size_t)n_sets + 1, sizeof(*uses));
    uint32_t n = 0, kept = 0;

    if (!uses)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_sets; i++) {
        if (known[i].state >= HAS_BUILD)
            uses[n++] = (struct kiln_build_use){known[i].build, known[i].state == LACKING, 0};
    }
    qsort(uses, n, sizeof(*uses), by_build);
    for (uint32_t i = 0; i < n; i++) {
        if (kept == 0 || uses[kept - 1].build != uses[i].build)
            uses[kept++] = uses[i];
    }
    *ret_uses = kiln_realloc(uses, ((size_t)kept + 1) * sizeof(*uses));
    *ret_uses = *ret_uses ? *ret_uses : uses;
    *ret_n = kept;
    return 0;
}

int kiln_lacks_add(struct kiln_lacks *lacks, const struct kiln_batch *batch,
                   struct kiln_lacks_range locations, struct kiln_build_use **ret_uses,
                   uint32_t *ret_n)
{
    const struct kiln_dict *d = &batch->dict;
    struct known *known = kiln_calloc((size_t)d->n_sets + 1, sizeof(*known));
    int r = known ? 0 : -ENOMEM;

    for (uint32_t i = 1; r == 0 && i < d->n_mappings; i++) {
        if (d->mappings[i].attrs)
            r = look_up(lacks, batch, &d->mappings[i], &known[d->mappings[i].attrs]);
    }
    if (r == 0)
        r = add_locations(lacks, batch, locations, known);
    if (r == 0)
        r = list_uses(known, d->n_sets, ret_uses, ret_n);
    kiln_free(known);
    return r;
}

/* ---- asking ---- */

uint32_t kiln_lacks_count(const struct kiln_lacks *lacks)
{
    return lacks->n;
}

struct kiln_str kiln_lacks_build_id(const struct kiln_lacks *lacks, uint32_t number)
{
    return lacks->builds[number].id;
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
    };
    return 0;
}

void kiln_lacks_forget(struct kiln_lacks *lacks, uint32_t number)
{
    struct build *b = &lacks->builds[number];

    b->n = b->n_sorted = 0;
    b->more = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Names lie in chunks, which never move: the lock is for adding alone. */
#include "store/wide_names.h"

#include <errno.h>

#include "base/err.h"
#include "base/hash.h"

#define CHUNK    1024u
#define N_CHUNKS (KILN_WIDE_NAMES_MAX / CHUNK)

struct chunk {
    struct kiln_function_name names[CHUNK];
    uint64_t hashes[CHUNK];
};

struct kiln_wide_names {
    struct kiln_wide_shelf *shelf;
    uint32_t refs; /* under the shelf's lock */
    pthread_mutex_t lock;
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_intern index;
    uint32_t n; /* 0 is no name */
    struct chunk *chunks[N_CHUNKS];
};

void kiln_wide_shelf_init(struct kiln_wide_shelf *shelf)
{
    shelf->current = NULL;
    pthread_mutex_init(&shelf->lock, NULL);
}

void kiln_wide_shelf_done(struct kiln_wide_shelf *shelf)
{
    pthread_mutex_destroy(&shelf->lock);
}

static struct kiln_wide_names *make(struct kiln_wide_shelf *shelf)
{
    struct kiln_wide_names *names = kiln_calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    names->shelf = shelf;
    names->n = 1;
    names->budget.limit = SIZE_MAX;
    kiln_arena_init(&names->arena, &names->budget);
    pthread_mutex_init(&names->lock, NULL);
    return names;
}

static void free_names(struct kiln_wide_names *names)
{
    for (uint32_t i = 0; i < N_CHUNKS; i++)
        kiln_free(names->chunks[i]);
    kiln_intern_done(&names->index, &names->budget);
    kiln_arena_done(&names->arena);
    pthread_mutex_destroy(&names->lock);
    kiln_free(names);
}

int kiln_wide_names_get(struct kiln_wide_shelf *shelf, uint32_t more,
                        struct kiln_wide_names **ret_names)
{
    struct kiln_wide_names *names;

    pthread_mutex_lock(&shelf->lock);
    names = shelf->current;
    if (!names || more > KILN_WIDE_NAMES_MAX - kiln_wide_names_n(names))
        names = make(shelf);
    if (names) {
        names->refs++;
        shelf->current = names;
    }
    pthread_mutex_unlock(&shelf->lock);
    *ret_names = names;
    return names ? 0 : -ENOMEM;
}

struct kiln_wide_names *kiln_wide_names_ref(struct kiln_wide_names *names)
{
    pthread_mutex_lock(&names->shelf->lock);
    names->refs++;
    pthread_mutex_unlock(&names->shelf->lock);
    return names;
}

void kiln_wide_names_unref(struct kiln_wide_names *names)
{
    struct kiln_wide_shelf *shelf;
    bool last;

    if (!names)
        return;
    shelf = names->shelf;
    pthread_mutex_lock(&shelf->lock);
    last = --names->refs == 0;
    if (last && shelf->current == names)
        shelf->current = NULL;
    pthread_mutex_unlock(&shelf->lock);
    if (last)
        free_names(names);
}

/* ---- adding ---- */

static int copy(struct kiln_wide_names *t, const struct kiln_flame_name *from,
                struct kiln_function_name *to)
{
    const struct kiln_function_name *last = t->n > 1 ? kiln_wide_name(t, t->n - 1) : NULL;

    to->inlined = from->inlined;
    to->name = kiln_arena_copy(&t->arena, from->name);
    to->file = kiln_arena_copy(&t->arena, from->file);
    /* Most neighbours have the same of these. */
    to->module = last && kiln_str_eq(last->module, from->module)
                     ? last->module
                     : kiln_arena_copy(&t->arena, from->module);
    to->kind = last && kiln_str_eq(last->kind, from->kind) ? last->kind
                                                           : kiln_arena_copy(&t->arena, from->kind);
    return to->name.ptr && to->file.ptr && to->module.ptr && to->kind.ptr ? 0 : -ENOMEM;
}

static int append(struct kiln_wide_names *t, const struct kiln_flame_name *name, uint64_t hash)
{
    struct chunk **chunk = &t->chunks[t->n / CHUNK];
    int r;

    if (t->n == KILN_WIDE_NAMES_MAX)
        return KILN_E_LIMIT; /* several made use of the room at once */
    if (!*chunk) {
        *chunk = kiln_calloc(1, sizeof(**chunk));
        if (!*chunk)
            return -ENOMEM;
        t->budget.used += sizeof(**chunk);
    }
    r = copy(t, name, &(*chunk)->names[t->n % CHUNK]);
    if (r == 0)
        r = kiln_intern_add(&t->index, &t->budget, hash, t->n);
    if (r == 0)
        (*chunk)->hashes[t->n++ % CHUNK] = hash;
    return r;
}

static int add(struct kiln_wide_names *t, const struct kiln_flame_name *name, uint32_t *ret)
{
    uint64_t hash = kiln_hash(name->name.ptr, name->name.len);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&t->index, hash);
         kiln_intern_next(&t->index, &p);) {
        if (kiln_wide_name_hash(t, p.entry) == hash &&
            kiln_str_eq(kiln_wide_name(t, p.entry)->name, name->name)) {
            *ret = p.entry;
            return 0;
        }
    }
    r = append(t, name, hash);
    if (r == 0)
        *ret = t->n - 1;
    return r;
}

int kiln_wide_names_add(struct kiln_wide_names *names, const struct kiln_flame *flame,
                        const bool *used, uint32_t *numbers, size_t *ret_bytes)
{
    size_t before;
    int r = 0;

    pthread_mutex_lock(&names->lock);
    before = names->budget.used;
    for (uint32_t i = 0; r == 0 && i < flame->n_names; i++) {
        numbers[i] = 0;
        if (used[i])
            r = add(names, &flame->names[i], &numbers[i]);
    }
    *ret_bytes = names->budget.used - before;
    pthread_mutex_unlock(&names->lock);
    return r;
}

/* ---- reading ---- */

uint32_t kiln_wide_names_n(struct kiln_wide_names *names)
{
    uint32_t n;

    pthread_mutex_lock(&names->lock);
    n = names->n;
    pthread_mutex_unlock(&names->lock);
    return n;
}

const struct kiln_function_name *kiln_wide_name(const struct kiln_wide_names *names,
                                                uint32_t number)
{
    return &names->chunks[number / CHUNK]->names[number % CHUNK];
}

uint64_t kiln_wide_name_hash(const struct kiln_wide_names *names, uint32_t number)
{
    return names->chunks[number / CHUNK]->hashes[number % CHUNK];
}

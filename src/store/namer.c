/* SPDX-License-Identifier: Apache-2.0 */
#include "store/namer.h"

#include <errno.h>

#include "base/hash.h"
#include "core/frame.h"
#include "store/book.h"

/* The most bytes of names that are made or hashed: a long name that many locations share takes few
 * bytes of a block but its length for each of them. */
#define NAME_BYTES_MAX (UINT64_C(1) << 33)
#define TEXT_MAX       (1u << 24)

void kiln_namer_init(struct kiln_namer *namer, const struct kiln_batch *batch,
                     struct kiln_budget *budget, struct kiln_finder *finder)
{
    *namer = (struct kiln_namer){.budget = budget, .batch = batch, .finder = finder};
    kiln_arena_init(&namer->arena, budget);
    kiln_buf_init(&namer->text, TEXT_MAX);
}

void kiln_namer_trim(struct kiln_namer *namer)
{
    kiln_array_free(namer->budget, (void **)&namer->locations, &namer->cap_locations,
                    sizeof(*namer->locations));
    kiln_array_free(namer->budget, (void **)&namer->pool, &namer->cap_pool, sizeof(*namer->pool));
    kiln_intern_done(&namer->index, namer->budget);
    kiln_buf_done(&namer->text);
    namer->n_locations = namer->n_pool = 0;
    namer->finder = NULL;
    namer->batch = namer->texts = NULL;
}

void kiln_namer_done(struct kiln_namer *namer)
{
    kiln_namer_trim(namer);
    kiln_array_free(namer->budget, (void **)&namer->names, &namer->cap_names,
                    sizeof(*namer->names));
    kiln_array_free(namer->budget, (void **)&namer->hashes, &namer->cap_hashes,
                    sizeof(*namer->hashes));
    kiln_arena_done(&namer->arena);
}

static void widen(struct kiln_function_name *known, const struct kiln_function_name *more)
{
    if (!known->file.len)
        known->file = more->file;
    if (!known->module.len)
        known->module = more->module;
    if (!known->kind.len)
        known->kind = more->kind;
}

static bool is_same(const struct kiln_namer *namer, const struct kiln_function_name *a,
                    const struct kiln_function_name *b, bool b_is_made)
{
    if (!kiln_str_eq(a->name, b->name))
        return false;
    return !namer->apart ||
           (kiln_str_eq(a->file, b->file) && kiln_str_eq(a->module, b->module) &&
            kiln_str_eq(a->kind, b->kind) && a->inlined == b->inlined && a->is_made == b_is_made);
}

int kiln_namer_add(struct kiln_namer *namer, struct kiln_function_name *name, bool made,
                   uint32_t *ret)
{
    uint64_t hash = kiln_hash(name->name.ptr, name->name.len);
    int r;

    namer->name_bytes += name->name.len;
    if (namer->name_bytes > NAME_BYTES_MAX)
        return KILN_E_LIMIT;
    for (struct kiln_probe p = kiln_intern_probe(&namer->index, hash);
         kiln_intern_next(&namer->index, &p);) {
        struct kiln_function_name *known = &namer->names[p.entry];

        if (namer->hashes[p.entry] == hash && is_same(namer, known, name, made)) {
            if (!made)
                widen(known, name);
            known->inlined &= name->inlined;
            *ret = p.entry;
            return 0;
        }
    }
    if (made) {
        name->name = kiln_arena_copy(&namer->arena, name->name);
        name->file = kiln_arena_copy(&namer->arena, name->file);
        name->is_made = true;
        if (!name->name.ptr || !name->file.ptr)
            return KILN_E_LIMIT;
    }
    r = kiln_grow(namer->budget, (void **)&namer->names, &namer->cap_names,
                  (uint64_t)namer->n_names + 1, sizeof(*namer->names), INT32_MAX);
    if (r == 0)
        r = kiln_grow(namer->budget, (void **)&namer->hashes, &namer->cap_hashes,
                      (uint64_t)namer->n_names + 1, sizeof(*namer->hashes), INT32_MAX);
    if (r == 0)
        r = kiln_intern_add(&namer->index, namer->budget, hash, namer->n_names);
    if (r < 0)
        return r;
    namer->names[namer->n_names] = *name;
    namer->hashes[namer->n_names] = hash;
    *ret = namer->n_names++;
    return 0;
}

static int add(struct kiln_namer *namer, struct kiln_named_location *to,
               struct kiln_function_name *name, bool made)
{
    uint32_t number = 0;
    int r = kiln_namer_add(namer, name, made, &number);

    if (r == 0)
        r = kiln_grow(namer->budget, (void **)&namer->pool, &namer->cap_pool,
                      (uint64_t)namer->n_pool + 1, sizeof(*namer->pool), UINT32_MAX);
    if (r < 0)
        return r;
    namer->pool[namer->n_pool++] = number;
    to->n++;
    return 0;
}

static int add_unnamed(struct kiln_namer *namer, struct kiln_named_location *to,
                       struct kiln_function_name *name, const struct kiln_location *location)
{
    name->name =
        kiln_frame_unnamed(name->module, kiln_frame_address(namer->batch, location), &namer->text);
    return namer->text.error ? namer->text.error : add(namer, to, name, true);
}

/* Names that came later. */
static int add_found(struct kiln_namer *namer, struct kiln_named_location *to,
                     const struct kiln_function_name *place, const struct kiln_location *location,
                     const struct kiln_symbol_found *found)
{
    int r = 0;

    for (uint32_t i = found->n; i > 0 && r == 0; i--) {
        const struct kiln_symbol_frame *frame = &found->frames[i - 1];
        struct kiln_function_name name = *place;

        name.name = frame->name.len ? frame->name : frame->system_name;
        name.file = frame->file;
        name.inlined = i < found->n;
        r = name.name.len ? add(namer, to, &name, true) : add_unnamed(namer, to, &name, location);
    }
    return r;
}

/* Those the location has itself. */
static int add_own(struct kiln_namer *namer, struct kiln_named_location *to,
                   const struct kiln_function_name *place, const struct kiln_location *location)
{
    const struct kiln_batch *texts = namer->texts ? namer->texts : namer->batch;
    const struct kiln_dict *d = &namer->batch->dict;
    struct kiln_function_name name = *place;
    int r = 0;

    if (location->n == 0)
        return add_unnamed(namer, to, &name, location);
    for (uint32_t i = location->n; i > 0 && r == 0; i--) {
        const struct kiln_function *f = &d->functions[d->lines[location->first + i - 1].function];

        name = *place;
        name.name = kiln_frame_function(&texts->dict, f);
        name.file = texts->dict.strings[f->filename];
        name.inlined = i < location->n;
        r = name.name.len ? add(namer, to, &name, false) : add_unnamed(namer, to, &name, location);
    }
    return r;
}

static int make_room(struct kiln_namer *namer, uint32_t location)
{
    uint32_t n = namer->batch->dict.n_locations;
    int r;

    if (location < namer->n_locations)
        return 0;
    r = kiln_reserve(namer->budget, (void **)&namer->locations, &namer->cap_locations, n,
                     sizeof(*namer->locations), UINT32_MAX);
    if (r < 0)
        return r;
    memset(namer->locations + namer->n_locations, 0,
           (n - namer->n_locations) * sizeof(*namer->locations));
    namer->n_locations = n;
    return 0;
}

int kiln_namer_make(struct kiln_namer *namer, uint32_t index)
{
    const struct kiln_batch *batch = namer->batch;
    const struct kiln_batch *texts = namer->texts ? namer->texts : batch;
    const struct kiln_dict *d = &batch->dict;
    const struct kiln_location *location = &d->locations[index];
    const struct kiln_function_name place = {
        .file = KILN_STR(""),
        .module = texts->dict.strings[d->mappings[location->mapping].filename],
        .kind = kiln_set_text(texts, location->attrs, KILN_STR("profile.frame.type")),
    };
    struct kiln_named_location made = {.first = namer->n_pool};
    struct kiln_symbol_found found;
    int r = make_room(namer, index);

    if (r == 0 && namer->finder)
        r = kiln_finder_get(namer->finder, batch, location, &found);
    if (r >= 0)
        r = r > 0 ? add_found(namer, &made, &place, location, &found)
                  : add_own(namer, &made, &place, location);
    made.lacks = kiln_frame_lack(batch, location) != KILN_LACKS_NOTHING;
    namer->lacks = namer->lacks || made.lacks;
    if (r == 0)
        namer->locations[index] = made;
    return r;
}

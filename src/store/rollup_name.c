/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a service's frames: every location once, in the order of their numbers, so that
 * names follow it too.  Frames that read the same are one name, whatever function they are of.
 */
#include <errno.h>

#include "core/frame.h"
#include "store/rollup_group.h"

#define ROOM(naming, array, need)                                                                  \
    kiln_grow((naming)->budget, (void **)&(naming)->array, &(naming)->cap_##array, (need),         \
              sizeof(*(naming)->array), UINT32_MAX)

#define TEXT_MAX          (1u << 20)
#define LOCATIONS_OF_NAME 8u /* in the mean, at most: more are not worth it */

static int intern(struct kiln_rollup_naming *naming, struct kiln_str text, bool is_made,
                  struct kiln_rollup_name name, uint32_t *ret)
{
    int r;

    name.hash = kiln_rollup_hash(text);
    for (struct kiln_probe p = kiln_intern_probe(&naming->index, name.hash);
         kiln_intern_next(&naming->index, &p);) {
        if (naming->names[p.entry].hash == name.hash && kiln_str_eq(naming->texts[p.entry], text)) {
            *ret = p.entry;
            return 0;
        }
    }
    r = ROOM(naming, names, (uint64_t)naming->n + 1);
    if (r == 0)
        r = ROOM(naming, texts, (uint64_t)naming->n + 1);
    if (r == 0)
        r = kiln_intern_add(&naming->index, naming->budget, name.hash, naming->n);
    if (r == 0 && is_made) {
        text = kiln_arena_copy(&naming->arena, text);
        r = text.ptr ? 0 : KILN_E_LIMIT;
    }
    if (r < 0)
        return r;
    naming->names[naming->n] = name;
    naming->texts[naming->n] = text;
    *ret = naming->n++;
    return 0;
}

/* `line` is 0 where the location has none. */
static int add_frame(struct kiln_rollup_naming *naming, const struct kiln_block_writer *w,
                     uint32_t location, uint32_t line, struct kiln_buf *scratch)
{
    const struct kiln_dict *d = &w->dict->dict;
    const struct kiln_location *l = &d->locations[location];
    struct kiln_rollup_name name = {.location = w->locations.of[location], .line = line};
    struct kiln_str text = KILN_STR("");
    int r = ROOM(naming, pool, (uint64_t)naming->n_pool + 1);
    bool is_made = false;

    if (l->n)
        text = kiln_frame_function(d, &d->functions[d->lines[l->first + line].function]);
    if (text.len == 0) {
        text = kiln_frame_unnamed(d->strings[d->mappings[l->mapping].filename],
                                  kiln_frame_address(w->dict, l), scratch);
        is_made = true;
    }
    if (r == 0)
        r = intern(naming, text, is_made, name, &naming->pool[naming->n_pool]);
    naming->n_pool += r == 0;
    return r;
}

static int add_location(struct kiln_rollup_naming *naming, const struct kiln_block_writer *w,
                        uint32_t location, struct kiln_buf *scratch)
{
    const struct kiln_dict *d = &w->dict->dict;
    const struct kiln_location *l = &d->locations[location];
    int r = 0;

    naming->first[location] = naming->n_pool + 1;
    if (!naming->lacks_symbols && kiln_frame_lacks_name(d, l))
        naming->lacks_symbols = kiln_frame_build_id(w->dict, d->mappings[l->mapping].attrs).len > 0;
    if (l->n == 0)
        r = add_frame(naming, w, location, 0, scratch);
    for (uint32_t i = l->n; r == 0 && i > 0; i--)
        r = add_frame(naming, w, location, i - 1, scratch);
    if (r == 0)
        naming->pool[naming->n_pool - 1] |= KILN_ROLLUP_LAST;
    return r;
}

/* More locations than this would not be worth it. */
static bool are_too_many(const struct kiln_rollup_work *k, uint32_t n)
{
    uint64_t max = k->service_rows / (kiln_rollup_limits.rows_name + 1) * LOCATIONS_OF_NAME;
    uint64_t used = 0;

    for (uint32_t i = 0; i < n; i++)
        used += k->m->used[i];
    return used > max + LOCATIONS_OF_NAME;
}

int kiln_rollup_name_all(struct kiln_rollup_work *k)
{
    struct kiln_rollup_naming *naming = &k->naming;
    const struct kiln_block_writer *w = k->w;
    uint32_t n = w->dict->dict.n_locations;
    int r = kiln_reserve(naming->budget, (void **)&naming->first, &naming->cap_first, n,
                         sizeof(*naming->first), UINT32_MAX);
    struct kiln_buf scratch;

    if (r < 0)
        return r;
    memset(naming->first, 0, n * sizeof(*naming->first));
    if (are_too_many(k, n))
        return -ERANGE;
    kiln_buf_init(&scratch, TEXT_MAX);
    if (k->m->used[0])
        r = add_location(naming, w, 0, &scratch);
    for (uint32_t i = 0; r == 0 && i < w->locations.n; i++) {
        if (k->m->used[w->locations.order[i]])
            r = add_location(naming, w, w->locations.order[i], &scratch);
    }
    kiln_buf_done(&scratch);
    return r;
}

void kiln_rollup_naming_done(struct kiln_rollup_naming *naming)
{
#define FREE(array)                                                                                \
    kiln_array_free(naming->budget, (void **)&naming->array, &naming->cap_##array,                 \
                    sizeof(*naming->array))
    FREE(first);
    FREE(pool);
    FREE(names);
    FREE(texts);
#undef FREE
    kiln_intern_done(&naming->index, naming->budget);
    kiln_arena_done(&naming->arena);
}

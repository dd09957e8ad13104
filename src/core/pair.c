/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/hash.h"
#include "core/intern.h"
#include "core/pair.h"

void kiln_pair_done(struct kiln_pair *pair)
{
    kiln_free(pair->frames);
    kiln_free(pair->map_a);
    kiln_free(pair->map_b);
    *pair = (struct kiln_pair){0};
}

static uint32_t find(const struct kiln_pair *pair, const struct kiln_intern *names, uint64_t hash,
                     struct kiln_str name)
{
    for (struct kiln_probe p = kiln_intern_probe(names, hash); kiln_intern_next(names, &p);) {
        if (kiln_str_eq(pair->frames[p.entry].name, name))
            return p.entry;
    }
    return UINT32_MAX;
}

static int add_frames(struct kiln_pair *pair, struct kiln_intern *names, struct kiln_budget *budget,
                      const struct kiln_view *view, uint32_t *map)
{
    for (uint32_t i = 0; i < view->n_frames; i++) {
        struct kiln_str name = view->frames[i].name;
        uint64_t hash = kiln_hash(name.ptr, name.len);
        int r;

        map[i] = find(pair, names, hash, name);
        if (map[i] != UINT32_MAX)
            continue;
        r = kiln_intern_add(names, budget, hash, pair->n_frames);
        if (r < 0)
            return r;
        map[i] = pair->n_frames;
        pair->frames[pair->n_frames++] = view->frames[i];
    }
    return 0;
}

int kiln_pair_init(struct kiln_pair *pair, const struct kiln_view *a, const struct kiln_view *b)
{
    struct kiln_budget budget = {.limit = SIZE_MAX};
    struct kiln_intern names = {0};
    int r = -ENOMEM;

    *pair = (struct kiln_pair){
        .frames = kiln_calloc((size_t)a->n_frames + b->n_frames, sizeof(*pair->frames)),
        .map_a = kiln_calloc(a->n_frames, sizeof(*pair->map_a)),
        .map_b = kiln_calloc(b->n_frames, sizeof(*pair->map_b)),
    };
    if (pair->frames && pair->map_a && pair->map_b)
        r = add_frames(pair, &names, &budget, b, pair->map_b);
    if (r == 0)
        r = add_frames(pair, &names, &budget, a, pair->map_a);
    kiln_intern_done(&names, &budget);
    if (r < 0)
        kiln_pair_done(pair);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over stacks in order; nothing is looked up.  Whether a name recurs is known from how
 * often it is on the path of the moment.
 */
#include "store/forest.h"

#include <errno.h>

#include "base/err.h"

#define ARRAY(f, array, need)                                                                      \
    kiln_grow(&(f)->budget, (void **)&(f)->array, &(f)->cap_##array, (need), sizeof(*(f)->array),  \
              UINT32_MAX)
#define EXACTLY(f, array, need)                                                                    \
    kiln_reserve(&(f)->budget, (void **)&(f)->array, &(f)->cap_##array, (need),                    \
                 sizeof(*(f)->array), UINT32_MAX)
#define FREE(f, array)                                                                             \
    kiln_array_free(&(f)->budget, (void **)&(f)->array, &(f)->cap_##array, sizeof(*(f)->array))

static _Atomic uint64_t n_made;

static void free_forest(struct kiln_cached *cached)
{
    struct kiln_forest *f = (struct kiln_forest *)cached;

    FREE(f, own);
    FREE(f, first);
    FREE(f, stacks);
    FREE(f, rank);
    kiln_namer_done(&f->namer);
    kiln_cached_unref(f->dict);
    if (f->let_go)
        f->let_go(f->kept);
    kiln_free(f);
}

int kiln_forest_maker_init(struct kiln_forest_maker *maker, size_t memory_bytes)
{
    struct kiln_forest *f = kiln_calloc(1, sizeof(*f));

    *maker = (struct kiln_forest_maker){.forest = f, .budget = {.limit = memory_bytes}};
    if (!f)
        return -ENOMEM;
    f->budget.limit = memory_bytes;
    f->folded = UINT32_MAX;
    f->serial = atomic_fetch_add(&n_made, 1);
    f->cached.free = free_forest;
    atomic_init(&f->cached.refs, 1);
    kiln_namer_init(&f->namer, NULL, &f->budget, NULL);
    return 0;
}

void kiln_forest_maker_done(struct kiln_forest_maker *maker)
{
    kiln_forest_unref(maker->forest);
    maker->forest = NULL;
    FREE(maker, path);
    FREE(maker, on_path);
}

int kiln_forest_expect(struct kiln_forest_maker *maker, uint64_t stacks, uint64_t nodes)
{
    struct kiln_forest *f = maker->forest;
    int r = EXACTLY(f, first, stacks + 1);

    if (r == 0)
        r = EXACTLY(f, stacks, stacks + 1);
    if (r == 0)
        r = EXACTLY(f, own, nodes + 1);
    return r;
}

static int make_room(struct kiln_forest_maker *maker, uint32_t depth, uint32_t n)
{
    struct kiln_forest *f = maker->forest;
    uint32_t known = maker->n_on_path, names = f->namer.n_names;
    int r = ARRAY(f, first, (uint64_t)f->n_stacks + 2);

    if (r == 0)
        r = ARRAY(f, stacks, (uint64_t)f->n_stacks + 2);
    if (r == 0)
        r = ARRAY(f, own, (uint64_t)f->n_nodes + n + 1);
    if (r == 0)
        r = ARRAY(maker, path, (uint64_t)depth + 1);
    if (r == 0)
        r = ARRAY(maker, on_path, (uint64_t)names + 1);
    if (r == 0 && names > known) {
        memset(maker->on_path + known, 0, (names - known) * sizeof(*maker->on_path));
        maker->n_on_path = names;
    }
    return r;
}

int kiln_forest_add(struct kiln_forest_maker *maker, uint32_t shared, const uint32_t *own,
                    uint32_t n)
{
    struct kiln_forest *f = maker->forest;
    int r;

    if (f->n_stacks + 2 > f->cap_first || f->n_stacks + 2 > f->cap_stacks ||
        n >= f->cap_own - f->n_nodes || shared + n >= maker->cap_path ||
        f->namer.n_names > maker->n_on_path) {
        r = make_room(maker, shared + n, n);
        if (r < 0)
            return r;
    }
    while (maker->n_path > shared)
        maker->on_path[maker->path[--maker->n_path]]--;
    f->first[f->n_stacks] = f->n_nodes;
    f->stacks[f->n_stacks++].shared = shared;
    for (uint32_t i = 0; i < n; i++) {
        bool again = maker->on_path[own[i]]++ > 0;

        f->own[f->n_nodes++] = own[i] | (again ? KILN_FOREST_AGAIN : 0);
        maker->path[maker->n_path++] = own[i];
    }
    f->first[f->n_stacks] = f->n_nodes;
    f->depth = maker->n_path > f->depth ? maker->n_path : f->depth;
    return 0;
}

/* Gives back the room that was not needed. */
static void shrink(struct kiln_budget *budget, void **array, uint32_t *cap, uint32_t n, size_t size)
{
    void *smaller = n && n < *cap ? kiln_realloc(*array, n * size) : NULL;

    if (!smaller)
        return;
    kiln_budget_give(budget, (*cap - n) * size);
    *array = smaller;
    *cap = n;
}

static void link_stacks(struct kiln_forest *f)
{
    struct kiln_forest_stack *s = f->stacks;

    s[f->n_stacks] = (struct kiln_forest_stack){0};
    for (uint32_t i = f->n_stacks; i-- > 0;) {
        uint32_t k = i + 1;

        while (k < f->n_stacks && s[k].shared > s[i].shared)
            k = s[k].next;
        s[i].name = f->first[i + 1] > f->first[i] ? f->own[f->first[i]] & KILN_FOREST_NAME : 0;
        s[i].next = k;
        s[i].below = k < f->n_stacks && s[k].shared == s[i].shared ? s[k].below : k;
    }
}

int kiln_forest_finish(struct kiln_forest_maker *maker, struct kiln_forest **ret_forest)
{
    struct kiln_forest *f = maker->forest;
    int r = ARRAY(f, first, 1);

    if (r == 0 && f->n_stacks == 0)
        f->first[0] = 0;
    if (r == 0)
        r = ARRAY(f, stacks, (uint64_t)f->n_stacks + 1);
    if (r == 0) {
        link_stacks(f);
        shrink(&f->budget, (void **)&f->first, &f->cap_first, f->n_stacks + 1, sizeof(*f->first));
        shrink(&f->budget, (void **)&f->stacks, &f->cap_stacks, f->n_stacks + 1,
               sizeof(*f->stacks));
        shrink(&f->budget, (void **)&f->own, &f->cap_own, f->n_nodes, sizeof(*f->own));
        shrink(&f->budget, (void **)&f->namer.names, &f->namer.cap_names, f->namer.n_names,
               sizeof(*f->namer.names));
        shrink(&f->budget, (void **)&f->namer.hashes, &f->namer.cap_hashes, f->namer.n_names,
               sizeof(*f->namer.hashes));
        f->names = f->namer.names;
        f->hashes = f->namer.hashes;
        f->n_names = f->namer.n_names;
        f->lacks_names = f->lacks_names || f->namer.lacks;
        kiln_namer_trim(&f->namer);
        f->cached.bytes = sizeof(*f) + f->budget.used;
        *ret_forest = kiln_forest_ref(f);
    }
    kiln_forest_maker_done(maker);
    return r;
}

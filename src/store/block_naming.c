/* SPDX-License-Identifier: Apache-2.0 */
#include "store/block_naming.h"

#include <errno.h>

#include "store/scan_int.h"

struct kiln_block_naming {
    struct kiln_block *block; /* a reference */
    struct kiln_block_dict *dict, *meta;
    struct kiln_finder *finder;
    struct kiln_budget budget;
    struct kiln_namer namer; /* of the whole block */
    uint64_t age;
    struct kiln_forest *forest; /* the one at hand */
    uint32_t *own_of;           /* by name of the block: 1 + its number in the forest, or 0 */
    uint32_t *own;              /* the names of the block that have one */
    uint32_t n_own_of, n_own, cap_own_of, cap_own;
};

#define ROOM(n, array, need)                                                                       \
    kiln_grow(&(n)->budget, (void **)&(n)->array, &(n)->cap_##array, (need), sizeof(*(n)->array),  \
              UINT32_MAX)

void kiln_block_naming_free(struct kiln_block_naming *n)
{
    if (!n)
        return;
    kiln_namer_done(&n->namer);
    kiln_array_free(&n->budget, (void **)&n->own_of, &n->cap_own_of, sizeof(*n->own_of));
    kiln_array_free(&n->budget, (void **)&n->own, &n->cap_own, sizeof(*n->own));
    kiln_finder_free(n->finder);
    kiln_block_dict_unref(n->dict);
    kiln_block_dict_unref(n->meta);
    kiln_block_unref(n->block);
    kiln_free(n);
}

static int load(struct kiln_block_naming *n, const struct kiln_forest_place *place,
                struct kiln_err *err)
{
    struct kiln_cache *cache = &place->store->cache;
    int r = kiln_block_meta(cache, n->block, place->fund, &n->meta, err);

    if (r == 0)
        r = kiln_block_dict(cache, n->block, place->fund, &n->dict, err);
    if (r == 0)
        r = kiln_finder_new(place->tenant->book, &n->finder);
    if (r < 0)
        return r;
    n->namer.batch = n->dict->batch;
    n->namer.finder = n->finder;
    n->namer.texts = n->meta->batch;
    n->namer.apart = true;
    return 0;
}

int kiln_block_naming_open(const struct kiln_forest_place *place, struct kiln_block *block,
                           uint64_t age, struct kiln_block_naming **naming, struct kiln_err *err)
{
    struct kiln_block_naming *n = *naming;
    int r;

    if (n && n->block == block && n->age == age)
        return 0;
    kiln_block_naming_free(n);
    *naming = NULL;
    n = kiln_calloc(1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    n->block = kiln_block_ref(block);
    n->age = age;
    n->budget.limit = place->store->pool->limit;
    kiln_namer_init(&n->namer, NULL, &n->budget, NULL);
    r = load(n, place, err);
    if (r < 0)
        kiln_block_naming_free(n);
    else
        *naming = n;
    return r;
}

uint32_t kiln_block_naming_locations(const struct kiln_block_naming *n)
{
    return n->dict->batch->dict.n_locations;
}

/* ---- a forest ---- */

void kiln_block_naming_begin(struct kiln_block_naming *n, struct kiln_forest *forest)
{
    for (uint32_t i = 0; i < n->n_own; i++)
        n->own_of[n->own[i]] = 0;
    n->n_own = 0;
    n->forest = forest;
    n->namer.lacks = false;
    forest->dict = &n->meta->cached;
    kiln_cached_ref(forest->dict);
}

/* Adds a name of the block to those of the forest, where two functions of one name are one: what
 * else is known of it is that of the service's own occurrences. */
static int add_name(struct kiln_block_naming *n, uint32_t name)
{
    struct kiln_function_name copy = n->namer.names[name];
    uint32_t known = n->n_own_of, number = 0;
    int r = ROOM(n, own_of, (uint64_t)name + 1);

    if (r == 0)
        r = ROOM(n, own, (uint64_t)n->n_own + 1);
    if (r == 0)
        r = kiln_namer_add(&n->forest->namer, &copy, copy.is_made, &number);
    if (r < 0)
        return r;
    if (name >= known) {
        memset(n->own_of + known, 0, (n->cap_own_of - known) * sizeof(*n->own_of));
        n->n_own_of = n->cap_own_of;
    }
    n->own[n->n_own++] = name;
    n->own_of[name] = number + 1;
    return 0;
}

int kiln_block_naming_get(struct kiln_block_naming *n, uint32_t location,
                          struct kiln_block_names_out *out)
{
    struct kiln_named_location l;
    int r = kiln_namer_get(&n->namer, location, &l);

    if (r == 0 && out->n + l.n > out->cap)
        r = kiln_grow(out->budget, (void **)&out->names, &out->cap, (uint64_t)out->n + l.n,
                      sizeof(*out->names), UINT32_MAX);
    for (uint32_t i = 0; r == 0 && i < l.n; i++) {
        uint32_t name = n->namer.pool[l.first + i];

        if (name >= n->n_own_of || n->own_of[name] == 0)
            r = add_name(n, name);
        if (r == 0)
            out->names[out->n++] = n->own_of[name] - 1;
    }
    n->forest->lacks_names = n->forest->lacks_names || l.lacks;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame as a forest: a stack for each node that has something of its own, and one that ends in
 * the name 0 for each that has something pruned.  Cutting the tree again makes no node of that name
 * (store/merge_cut.c), so it stays part of its parent's total.
 */
#include "store/wide.h"

#include <errno.h>
#include <stdlib.h>

#define PRUNED  0u /* the name */
/* In the cache, beside a hash of series; store/ready.h has another bit. */
#define IS_WIDE (UINT64_C(1) << 62)

struct kiln_wide_limits kiln_wide_limits = {
    .nodes_max = 32768, .functions_max = 1 << 17, .summaries_max = 24, .bytes_max = SIZE_MAX};

static void free_wide(struct kiln_cached *cached)
{
    struct kiln_wide *wide = (struct kiln_wide *)cached;

    kiln_forest_unref(wide->forest);
    kiln_wide_names_unref(wide->names);
    kiln_free(wide->upto);
    kiln_free(wide->functions);
    kiln_whole_done(&wide->whole);
    kiln_free(wide);
}

/* ---- functions ---- */

static int by_total(const void *a, const void *b)
{
    const struct kiln_flame_function *x = a, *y = b;

    return (x->total < y->total) - (x->total > y->total);
}

/* The functions with the largest totals stay; the bound is the largest of the others. */
static void prune_functions(struct kiln_flame *flame, struct kiln_wide *wide)
{
    uint32_t most = kiln_wide_limits.functions_max;

    if (flame->n_functions <= most)
        return;
    qsort(flame->functions, flame->n_functions, sizeof(*flame->functions), by_total);
    wide->functions_bound = flame->functions_bound;
    if (wide->functions_bound == 0)
        wide->functions_bound = flame->functions[most].total;
    wide->is_pruned = true;
    flame->n_functions = most;
}

static int list_functions(const struct kiln_flame *flame, const uint32_t *numbers,
                          struct kiln_wide *wide)
{
    wide->functions = kiln_malloc(((size_t)flame->n_functions + 1) * sizeof(*wide->functions));
    if (!wide->functions)
        return -ENOMEM;
    wide->n_functions = flame->n_functions;
    for (uint32_t i = 0; i < flame->n_functions; i++) {
        const struct kiln_flame_function *f = &flame->functions[i];

        wide->functions[i] = (struct kiln_merge_function){numbers[f->name], f->self, f->total};
    }
    return 0;
}

/* ---- the tree ---- */

static void put_stack(struct kiln_forest *f, uint32_t common, const uint32_t *path, uint32_t length)
{
    f->stacks[f->n_stacks].shared = common;
    for (uint32_t i = common; i < length; i++)
        f->own[f->n_nodes++] = path[i];
    f->first[++f->n_stacks] = f->n_nodes;
    f->depth = length > f->depth ? length : f->depth;
}

/* Nodes are in preorder: a stack shares with the last one what is above the least deep node since.
 */
static int plant(struct kiln_forest_maker *maker, const struct kiln_flame *flame,
                 const uint32_t *numbers, int64_t *sums)
{
    uint32_t common = 0, *path = kiln_malloc(((size_t)flame->n_nodes + 1) * sizeof(*path));
    int r = path ? kiln_forest_expect(maker, flame->n_nodes, flame->n_nodes) : -ENOMEM;

    if (r == 0)
        maker->forest->first[0] = 0;
    for (uint32_t i = 0; r == 0 && i < flame->n_nodes; i++) {
        const struct kiln_flame_node *node = &flame->nodes[i];
        uint32_t above = node->depth ? node->depth - 1 : 0;

        common = common < above ? common : above;
        if (i)
            path[above] = numbers[node->name];
        if (node->self == 0)
            continue;
        sums[maker->forest->n_stacks] = node->self;
        put_stack(maker->forest, common, path, node->depth);
        common = node->depth;
    }
    kiln_free(path);
    return r;
}

static int make_tree(struct kiln_flame *flame, const uint32_t *numbers, struct kiln_wide *wide)
{
    int64_t *sums = kiln_malloc(((size_t)flame->n_nodes + 1) * sizeof(*sums));
    struct kiln_forest_maker maker;
    int r = sums ? kiln_forest_maker_init(&maker, SIZE_MAX) : -ENOMEM;

    if (r < 0) {
        kiln_free(sums);
        return r;
    }
    r = plant(&maker, flame, numbers, sums);
    if (r == 0)
        r = kiln_forest_finish(&maker, &wide->forest);
    else
        kiln_forest_maker_done(&maker);
    if (r < 0) {
        kiln_free(sums);
        return r;
    }
    wide->forest->folded = PRUNED;
    wide->forest->n_names = kiln_wide_names_n(wide->names);
    wide->upto = kiln_realloc(sums, ((size_t)wide->forest->n_stacks + 1) * sizeof(*sums));
    wide->upto = wide->upto ? wide->upto : sums;
    kiln_merging_add_up(wide->upto, wide->forest->n_stacks);
    return 0;
}

/* ---- making one ---- */

static void mark_used(const struct kiln_flame *flame, bool *used)
{
    for (uint32_t i = 1; i < flame->n_nodes; i++)
        used[flame->nodes[i].name] = true;
    for (uint32_t i = 0; i < flame->n_functions; i++)
        used[flame->functions[i].name] = true;
    if (flame->other)
        used[flame->other] = false;
}

static int fill(struct kiln_wide_shelf *shelf, struct kiln_flame *flame, struct kiln_wide *wide,
                uint32_t *numbers, bool *used)
{
    size_t names = 0;
    int r;

    prune_functions(flame, wide);
    mark_used(flame, used);
    r = kiln_wide_names_get(shelf, flame->n_names, &wide->names);
    if (r == 0)
        r = kiln_wide_names_add(wide->names, flame, used, numbers, &names);
    if (r == 0)
        r = list_functions(flame, numbers, wide);
    if (r == 0)
        r = make_tree(flame, numbers, wide);
    if (r == 0)
        wide->bytes = sizeof(*wide) + names + wide->n_functions * sizeof(*wide->functions) +
                      wide->forest->cached.bytes +
                      ((size_t)wide->forest->n_stacks + 1) * sizeof(*wide->upto);
    return r;
}

int kiln_wide_of_flame(struct kiln_wide_shelf *shelf, struct kiln_flame *flame,
                       struct kiln_wide **ret_wide)
{
    struct kiln_wide *wide = kiln_calloc(1, sizeof(*wide));
    uint32_t *numbers = kiln_malloc(((size_t)flame->n_names + 1) * sizeof(*numbers));
    bool *used = kiln_calloc((size_t)flame->n_names + 1, sizeof(*used));
    int r = -ENOMEM;

    if (wide) {
        wide->cached.free = free_wide;
        atomic_init(&wide->cached.refs, 1);
        wide->error_bound = flame->error_bound;
        wide->is_pruned = flame->error_bound != 0;
    }
    if (wide && numbers && used)
        r = fill(shelf, flame, wide, numbers, used);
    kiln_free(numbers);
    kiln_free(used);
    if (r < 0)
        kiln_wide_unref(wide);
    else
        *ret_wide = wide;
    return r;
}

/* ---- of a whole block ---- */

static uint64_t what(const struct kiln_scan_source *source)
{
    return kiln_whole_hash(source) >> 2 | IS_WIDE;
}

struct kiln_wide *kiln_wide_find(struct kiln_cache *cache, const struct kiln_scan_source *source,
                                 uint64_t age)
{
    const struct kiln_block_id *block = &kiln_block_info(source->block)->id;
    struct kiln_wide *wide =
        (struct kiln_wide *)kiln_cache_find(cache, block, what(source), age + 1);

    if (wide && kiln_whole_is_of(&wide->whole, source))
        return wide;
    kiln_wide_unref(wide);
    return NULL;
}

int kiln_wide_note(struct kiln_wide *wide, const struct kiln_scan_source *source)
{
    int r = kiln_whole_copy(source, &wide->whole);

    wide->bytes += kiln_whole_bytes(&wide->whole);
    return r;
}

bool kiln_wide_keep(struct kiln_cache *cache, const struct kiln_scan_source *source, uint64_t age,
                    struct kiln_wide *wide)
{
    wide->cached.bytes = wide->bytes;
    return kiln_cache_put(cache, &kiln_block_info(source->block)->id, what(source), age + 1,
                          &wide->cached);
}

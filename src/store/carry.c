/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head has its stacks in memory.  A block has them in pages, in the order of ranks, each as what
 * it adds to the one before: they are read once from front to back.
 */
#include "store/carry.h"

#include <errno.h>

#include "core/remap.h"
#include "store/scan_int.h"

#define PAGES_MAX ((size_t)256 << 20)
#define SLICE     256u /* stacks of a head */

static int carry_head(const struct kiln_carrier *c, const struct kiln_scan_source *source,
                      uint32_t n)
{
    struct kiln_remap_edit edit;
    struct kiln_remap *remap = NULL;
    struct kiln_finder *finder;
    uint64_t since_ns;
    int r = kiln_finder_new(source->tenant->book, &finder);

    edit = kiln_finder_edit(finder);
    if (r == 0 && source->live)
        r = kiln_scan_load_names(source->tenant, source->batch, finder);
    if (source->live)
        kiln_scan_lock(source->tenant, &since_ns);
    if (r == 0)
        r = kiln_remap_new(c->b, source->batch, finder ? &edit : NULL, &remap);
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        if (c->wants(c->context, i))
            r = c->take(c->context, i, kiln_remap_stack(remap, i));
        if (i % SLICE != SLICE - 1 || r < 0)
            continue;
        r = kiln_leash_check(c->scan->q->leash);
        if (source->live)
            kiln_scan_breathe(source->tenant, &since_ns);
    }
    if (source->live)
        kiln_scan_unlock(source->tenant);
    kiln_remap_free(remap);
    kiln_finder_free(finder);
    return r;
}

/* ---- blocks ---- */

/* One forward pass over stacks, in the order of ranks. */
struct reading {
    const struct kiln_carrier *c;
    struct kiln_block *block;
    struct kiln_block_dict *dict;
    struct kiln_remap *remap;
    struct kiln_budget budget;
    struct kiln_page_in in;
    struct kiln_column columns[3];
    uint32_t *path; /* from the root, as indexes of the builder */
    uint32_t n_path, cap_path;
    const uint32_t *by_rank; /* its number; 0: it is not wanted */
    uint32_t rank, n_ranks;
};

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

static int add_stack(struct reading *rd, uint64_t kept, const uint64_t *own, uint64_t n)
{
    struct kiln_builder *b = rd->c->b;
    uint32_t depth = (uint32_t)(kept + n), *frames, carried;
    uint32_t stack = rd->by_rank[rd->rank++];

    kiln_remap_locations(rd->remap, own, (uint32_t)n, rd->path + kept);
    rd->n_path = depth;
    if (stack == 0)
        return 0;
    frames = kiln_builder_stack_room(b, depth);
    if (!frames)
        return kiln_builder_error(b);
    for (uint32_t i = 0; i < depth; i++)
        frames[i] = rd->path[depth - 1 - i];
    carried = kiln_builder_stack_take(b, depth);
    return rd->c->take(rd->c->context, stack - 1, carried);
}

static int add_page(struct reading *rd, uint64_t n, struct kiln_err *err)
{
    const struct kiln_column *c = rd->columns;
    uint32_t n_locations = rd->dict->batch->dict.n_locations;
    uint64_t at = 0;
    int r = 0;

    if (c[0].n != n || c[1].n != n || n > rd->n_ranks - rd->rank)
        return damaged(err, "its columns do not fit together");
    for (uint32_t i = 0; i < c[2].n; i++) {
        if (c[2].v[i] >= n_locations)
            return damaged(err, "a stack has a location that is not there");
    }
    rd->n_path = 0;
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        uint64_t kept = c[0].v[i], own = c[1].v[i];

        if (own > c[2].n - at || kept > rd->n_path || own > kiln_limits_default.stack_depth - kept)
            return damaged(err, "a stack is damaged");
        r = add_stack(rd, kept, c[2].v + at, own);
        at += own;
    }
    return r;
}

static int read_stacks(struct reading *rd, const struct kiln_section *section, struct kiln_err *err)
{
    struct kiln_leash *leash = rd->c->scan->q->leash;
    int r = kiln_grow(&rd->budget, (void **)&rd->path, &rd->cap_path,
                      (uint64_t)kiln_limits_default.stack_depth + 1, sizeof(*rd->path), UINT32_MAX);

    for (uint32_t i = 0; r == 0 && i < section->n_pages; i++) {
        const struct kiln_page_ref *ref = &rd->block->footer.pages[section->first_page + i];

        r = kiln_leash_check(leash);
        if (r == 0)
            r = kiln_leash_read(leash, ref->size);
        if (r == 0)
            r = kiln_page_load(&rd->in, rd->block->io, rd->block->fd, ref->offset, ref->size, err);
        for (uint32_t k = 0; r == 0 && k < KILN_ARRAY_LEN(rd->columns); k++)
            r = kiln_page_get(&rd->in, &rd->columns[k], UINT32_MAX, err);
        if (r == 0)
            r = add_page(rd, ref->n_entries, err);
    }
    return r;
}

/* Which are wanted, in the order of ranks; the forest knows it. */
static int sort_stacks(const struct kiln_carrier *c, const struct kiln_scan_source *source,
                       uint32_t **ret_by_rank, struct kiln_err *err)
{
    struct kiln_forest *forest;
    uint32_t *by_rank;
    int r = kiln_scan_forest(c->scan, source, NULL, 0, &forest, err);

    if (r < 0)
        return r;
    by_rank = kiln_calloc((size_t)forest->n_stacks + 1, sizeof(*by_rank));
    for (uint32_t i = 0; by_rank && i < forest->n_stacks; i++) {
        if (c->wants(c->context, i))
            by_rank[forest->rank[i]] = i + 1;
    }
    kiln_forest_unref(forest);
    *ret_by_rank = by_rank;
    return by_rank ? 0 : -ENOMEM;
}

static int carry_block(const struct kiln_carrier *c, const struct kiln_scan_source *source,
                       struct kiln_err *err)
{
    const struct kiln_footer *f = &source->block->footer;
    struct reading rd = {.c = c, .block = source->block, .budget = {.limit = PAGES_MAX}};
    uint32_t *by_rank = NULL;
    struct kiln_remap_edit edit;
    struct kiln_finder *finder;
    int r = kiln_finder_new(source->tenant->book, &finder);

    edit = kiln_finder_edit(finder);
    if (r == 0)
        r = kiln_block_dict(&c->scan->store->cache, source->block, &c->scan->fund, &rd.dict, err);
    if (r == 0)
        r = sort_stacks(c, source, &by_rank, err);
    if (r == 0)
        r = kiln_remap_new(c->b, rd.dict->batch, finder ? &edit : NULL, &rd.remap);
    rd.in.budget = &rd.budget;
    if (r == 0)
        r = kiln_page_in_init(&rd.in, &rd.budget);
    rd.by_rank = by_rank;
    rd.n_ranks = source->n_stacks;
    if (r == 0)
        r = read_stacks(&rd, &f->sections[f->stacks[source->service]], err);
    kiln_page_in_done(&rd.in);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rd.columns); i++)
        kiln_column_done(&rd.columns[i], &rd.budget);
    kiln_array_free(&rd.budget, (void **)&rd.path, &rd.cap_path, sizeof(*rd.path));
    kiln_remap_free(rd.remap);
    kiln_finder_free(finder);
    kiln_block_dict_unref(rd.dict);
    kiln_free(by_rank);
    return r;
}

int kiln_carry_stacks(const struct kiln_carrier *c, const struct kiln_scan_source *source,
                      uint32_t n, struct kiln_err *err)
{
    return source->block ? carry_block(c, source, err) : carry_head(c, source, n);
}

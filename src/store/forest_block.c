/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a service of a block (block_stacks.c has their columns) as a forest: they come in
 * order, with what they share, so that one pass makes it.  A page begins with a whole stack; what
 * that one shares with the last of the page before is found by looking.
 */
#include <errno.h>

#include "store/scan_int.h"

#define PAGES_MAX ((size_t)256 << 20)

struct making {
    const struct kiln_forest_place *place;
    struct kiln_block *block;
    struct kiln_block_naming *naming;
    struct kiln_forest_maker maker;
    struct kiln_budget budget;
    struct kiln_page_in in;
    struct kiln_column columns[3];
    uint32_t *path;                    /* locations of the last stack, from the root */
    uint32_t *ends;                    /* names up to each of them */
    struct kiln_block_names_out names; /* scratch */
    uint32_t n_path, cap_path, cap_ends;
    uint64_t n_ranks;
};

static int damaged(struct kiln_err *err, const char *what)
{
    return kiln_err_set(err, KILN_E_CORRUPT, NULL, "%s", what);
}

#define ROOM(m, array, need)                                                                       \
    kiln_grow(&(m)->budget, (void **)&(m)->array, &(m)->cap_##array, (need), sizeof(*(m)->array),  \
              UINT32_MAX)

/* ---- stacks ---- */

/* The names of the locations behind the `kept` first ones; they become part of the path. */
static int name_own(struct making *m, uint32_t kept, const uint64_t *own, uint32_t n)
{
    uint32_t before = kept ? m->ends[kept - 1] : 0;
    int r = 0;

    m->names.n = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        r = kiln_block_naming_get(m->naming, (uint32_t)own[i], &m->names);
        m->path[kept + i] = (uint32_t)own[i];
        m->ends[kept + i] = before + m->names.n;
    }
    m->n_path = kept + n;
    return r;
}

static int add_stack(struct making *m, uint64_t kept, const uint64_t *own, uint64_t n,
                     struct kiln_err *err)
{
    uint32_t n_locations = kiln_block_naming_locations(m->naming);
    int r;

    if (kept > m->n_path || n > kiln_limits_default.stack_depth - kept ||
        (n == 0 && m->maker.forest->n_stacks))
        return damaged(err, "a stack is damaged");
    for (uint64_t i = 0; i < n; i++) {
        if (own[i] >= n_locations)
            return damaged(err, "a stack has a location that is not there");
    }
    r = name_own(m, (uint32_t)kept, own, (uint32_t)n);
    if (r == 0)
        r = kiln_forest_add(&m->maker, kept ? m->ends[kept - 1] : 0, m->names.names, m->names.n);
    return r;
}

/* How much the first stack of a page shares with the one before. */
static uint64_t shared_with_last(const struct making *m, const uint64_t *own, uint64_t n)
{
    uint64_t i = 0;

    while (i < n && i < m->n_path && own[i] == m->path[i])
        i++;
    return i == n ? 0 : i;
}

static int add_page(struct making *m, uint64_t n, struct kiln_err *err)
{
    const struct kiln_column *c = m->columns;
    uint64_t at = 0;
    int r = 0;

    if (c[0].n != n || c[1].n != n)
        return damaged(err, "its columns do not fit together");
    for (uint64_t i = 0; r == 0 && i < n; i++) {
        uint64_t kept = c[0].v[i], own = c[1].v[i], more = 0;

        if (own > c[2].n - at || (i == 0 && kept))
            return damaged(err, "its columns do not fit together");
        if (i == 0)
            more = shared_with_last(m, c[2].v, own);
        r = add_stack(m, kept + more, c[2].v + at + more, own - more, err);
        at += own;
    }
    return r == 0 && at != c[2].n ? damaged(err, "its columns do not fit together") : r;
}

/* ---- ranks ---- */

static int add_ranks(struct making *m, uint64_t n, struct kiln_err *err)
{
    struct kiln_forest *f = m->maker.forest;

    if (m->columns[0].n != n || n > f->n_stacks - m->n_ranks)
        return damaged(err, "there are more ranks than stacks");
    for (uint64_t i = 0; i < n; i++) {
        if (m->columns[0].v[i] >= f->n_stacks)
            return damaged(err, "a rank is larger than there are stacks");
        f->rank[m->n_ranks++] = (uint32_t)m->columns[0].v[i];
    }
    return 0;
}

/* ---- sections ---- */

static int read_section(struct making *m, const struct kiln_section *section, uint32_t n_columns,
                        int (*take)(struct making *m, uint64_t n, struct kiln_err *err),
                        struct kiln_err *err)
{
    const struct kiln_block *block = m->block;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < section->n_pages; i++) {
        const struct kiln_page_ref *ref = &block->footer.pages[section->first_page + i];

        r = kiln_leash_check(m->place->fund->leash);
        if (r == 0)
            r = kiln_leash_read(m->place->fund->leash, ref->size);
        if (r == 0)
            r = kiln_page_load(&m->in, block->io, block->fd, ref->offset, ref->size, err);
        for (uint32_t k = 0; r == 0 && k < n_columns; k++)
            r = kiln_page_get(&m->in, &m->columns[k], UINT32_MAX, err);
        if (r == 0)
            r = take(m, ref->n_entries, err);
        if (r < 0 && r != KILN_E_LIMIT && r != -ENOMEM)
            kiln_err_within(err, "%s[%u]", kiln_section_name(section->kind), i);
    }
    return r;
}

static int make(struct making *m, uint32_t service, struct kiln_err *err)
{
    const struct kiln_footer *f = &m->block->footer;
    const struct kiln_section *stacks = &f->sections[f->stacks[service]];
    struct kiln_forest *forest = m->maker.forest;
    double share = f->info.n_stacks ? (double)stacks->n_entries / (double)f->info.n_stacks : 0;
    int r = ROOM(m, path, (uint64_t)kiln_limits_default.stack_depth + 1);

    if (r == 0)
        r = ROOM(m, ends, (uint64_t)kiln_limits_default.stack_depth + 1);
    if (r == 0)
        r = kiln_grow(&m->budget, (void **)&m->names.names, &m->names.cap, 64,
                      sizeof(*m->names.names), UINT32_MAX);
    if (r == 0)
        r = kiln_forest_expect(&m->maker, stacks->n_entries,
                               (uint64_t)(share * (double)f->info.n_frames));
    if (r == 0)
        r = read_section(m, stacks, 3, add_page, err);
    if (r == 0)
        r = kiln_reserve(&forest->budget, (void **)&forest->rank, &forest->cap_rank,
                         (uint64_t)forest->n_stacks + 1, sizeof(*forest->rank), UINT32_MAX);
    if (r == 0)
        r = read_section(m, &f->sections[f->ranks[service]], 1, add_ranks, err);
    if (r == 0 && (m->n_ranks != forest->n_stacks || forest->n_stacks != stacks->n_entries))
        r = damaged(err, "a stack has no rank");
    return r;
}

static int make_named(struct making *m, uint32_t service, struct kiln_forest **ret_forest,
                      struct kiln_err *err)
{
    int r = kiln_forest_maker_init(&m->maker, m->place->store->pool->limit);

    if (r < 0)
        return r;
    kiln_block_naming_begin(m->naming, m->maker.forest);
    m->names.budget = &m->budget;
    r = kiln_page_in_init(&m->in, &m->budget);
    if (r == 0)
        r = make(m, service, err);
    if (r == 0)
        r = kiln_forest_finish(&m->maker, ret_forest);
    else
        kiln_forest_maker_done(&m->maker);
    return r;
}

static void making_done(struct making *m)
{
    kiln_page_in_done(&m->in);
    for (size_t i = 0; i < KILN_ARRAY_LEN(m->columns); i++)
        kiln_column_done(&m->columns[i], &m->budget);
    kiln_array_free(&m->budget, (void **)&m->path, &m->cap_path, sizeof(*m->path));
    kiln_array_free(&m->budget, (void **)&m->ends, &m->cap_ends, sizeof(*m->ends));
    kiln_array_free(&m->budget, (void **)&m->names.names, &m->names.cap, sizeof(*m->names.names));
}

int kiln_forest_of_block(const struct kiln_forest_place *place, struct kiln_block *block,
                         uint32_t service, struct kiln_forest **ret_forest, struct kiln_err *err)
{
    struct kiln_cache *cache = &place->store->cache;
    const struct kiln_block_id *id = &kiln_block_info(block)->id;
    const struct kiln_census_look look = {place->store, place->tenant, block};
    struct making m = {.place = place, .block = block, .budget = {.limit = PAGES_MAX}};
    struct kiln_forest *forest = NULL;
    uint64_t age;
    int r = kiln_census_age(&look, &age, err);

    if (r < 0)
        return r;
    forest = (struct kiln_forest *)kiln_cache_find(cache, id, service, age + 1);
    if (!forest) {
        m.in.budget = &m.budget;
        r = kiln_block_naming_open(place, block, age, place->naming, err);
        m.naming = *place->naming;
        if (r == 0)
            r = make_named(&m, service, &forest, err);
        making_done(&m);
        if (r < 0)
            return r;
        if (!place->is_wide &&
            !kiln_cache_put(cache, id, service, forest->lacks_names ? age + 1 : 0, &forest->cached))
            r = kiln_fund_take(place->fund, forest->cached.bytes);
    }
    if (r == 0)
        *ret_forest = forest;
    else
        kiln_forest_unref(forest);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: sources at hand take at most half of what there is; cutting them (store/merge_cut.c) and
 * the flame that a summary is made of take the rest.  Summaries are charged to the cache, or to the
 * query where the cache has no room.
 */
#include "store/merge_wide.h"

#include <errno.h>

#include "base/sat.h"
#include "store/scan_int.h"

#define NODES_MIN  1024u
#define NODE_BYTES 512u /* of a node while a tree is cut, about */

void kiln_merge_wide_begin(struct kiln_merge_wide *w, size_t bytes)
{
    const struct kiln_wide_limits *limits = &kiln_wide_limits;
    size_t nodes = bytes / 2 / NODE_BYTES;

    nodes = nodes < NODES_MIN ? NODES_MIN : nodes;
    w->nodes_max = nodes < limits->nodes_max ? (uint32_t)nodes : limits->nodes_max;
    w->bytes_max = bytes / 2 < limits->bytes_max ? bytes / 2 : limits->bytes_max;
}

static void drop_from(struct kiln_merge_wide *w, uint32_t first)
{
    while (w->n > first) {
        struct kiln_wide *wide = w->all[--w->n];

        if (!wide->cached.home) {
            kiln_fund_return(w->m->fund, wide->bytes);
            w->own_bytes -= wide->bytes;
        }
        kiln_wide_unref(wide);
    }
}

void kiln_merge_wide_done(struct kiln_merge_wide *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        kiln_wide_unref(w->all[i]);
    kiln_free(w->all);
    w->all = NULL;
    w->n = w->cap = 0;
}

void kiln_merge_wide_restart(struct kiln_merge_wide *w)
{
    drop_from(w, 0);
    w->bytes = w->charged = 0;
    w->n_counted = 0;
    w->first = 0;
}

/* ---- summaries ---- */

/* Takes the reference over. */
static int add_summary(struct kiln_merge_wide *w, struct kiln_wide *wide)
{
    int r = 0;

    if (w->n == w->cap) {
        uint32_t cap = w->cap ? 2 * w->cap : 32;
        void *all = kiln_realloc(w->all, cap * sizeof(struct kiln_wide *));

        r = all ? 0 : -ENOMEM;
        w->all = all ? all : w->all;
        w->cap = all ? cap : w->cap;
    }
    if (r == 0 && !wide->cached.home)
        r = kiln_fund_take(w->m->fund, wide->bytes);
    if (r < 0) {
        kiln_wide_unref(wide);
        return r;
    }
    if (!wide->cached.home)
        w->own_bytes += wide->bytes;
    w->all[w->n++] = wide;
    return 0;
}

/* The sources of the merge as a summary; the merge is empty then.  Bounds that the sources have
 * already come on top. */
static int summarize(struct kiln_merge_wide *w, int64_t error, int64_t functions, bool pruned,
                     struct kiln_wide **ret_wide)
{
    struct kiln_flame *flame = NULL;
    struct kiln_wide *wide = NULL;
    int r = kiln_merging_unsorted(w->m, w->nodes_max, &flame);

    if (r == 0)
        r = kiln_wide_of_flame(&w->store->wide, flame, &wide);
    kiln_flame_free(flame);
    kiln_merging_done(w->m);
    if (r < 0)
        return r;
    wide->error_bound = kiln_sat_add(wide->error_bound, error);
    wide->functions_bound = kiln_sat_add(wide->functions_bound, functions);
    wide->is_pruned = wide->is_pruned || pruned;
    *ret_wide = wide;
    return 0;
}

/* The summaries from `first` on become the sources of the merge. */
static int open_summaries(struct kiln_merge_wide *w, uint32_t first, int64_t *nodes,
                          int64_t *functions, bool *pruned)
{
    int r = 0;

    *nodes = *functions = 0;
    *pruned = false;
    for (uint32_t i = first; r == 0 && i < w->n; i++) {
        struct kiln_wide *wide = w->all[i];

        *nodes = kiln_sat_add(*nodes, wide->error_bound);
        *functions = kiln_sat_add(*functions, wide->functions_bound);
        *pruned = *pruned || wide->is_pruned;
        kiln_cached_ref(&wide->cached);
        r = kiln_merging_add_wide(w->m, wide);
    }
    return r;
}

/* The summaries from `first` on become one. */
static int join_summaries(struct kiln_merge_wide *w, uint32_t first)
{
    struct kiln_wide *wide = NULL;
    int64_t nodes, functions;
    bool pruned;
    int r;

    if (w->n - first < 2)
        return 0;
    r = open_summaries(w, first, &nodes, &functions, &pruned);
    if (r == 0)
        r = summarize(w, nodes, functions, pruned, &wide);
    if (r < 0)
        return r;
    drop_from(w, first);
    return add_summary(w, wide);
}

/* ---- sources ---- */

/* What roll-ups have so far becomes part of the merge. */
static int finish_rolls(struct kiln_merge_wide *w, int64_t *ret_bound)
{
    struct kiln_merge_rolls *rolls = w->rolls;
    int r = kiln_merge_rolls_finish(rolls);

    *ret_bound = rolls->error_bound;
    w->sums->total = (int64_t)((uint64_t)w->sums->total + (uint64_t)rolls->sum);
    w->sums->count += rolls->count;
    return r;
}

/* The sources at hand become a summary. */
static int collapse(struct kiln_merge_wide *w)
{
    struct kiln_wide *wide = NULL;
    int64_t bound = 0;
    int r = kiln_leash_check(w->m->fund->leash);

    if (w->m->n_sources == 0 && w->rolls->n_rolled == 0)
        return r;
    if (r == 0)
        r = finish_rolls(w, &bound);
    if (r == 0)
        r = summarize(w, bound, 0, bound != 0, &wide);
    kiln_merging_done(w->m);
    kiln_merge_rolls_restart(w->rolls);
    kiln_fund_return(w->m->fund, w->charged);
    w->bytes = w->charged = 0;
    w->n_counted = 0;
    if (r == 0)
        r = add_summary(w, wide);
    return r;
}

static size_t bytes_of(const struct kiln_merge_source *s)
{
    return s->forest->cached.bytes + ((size_t)s->forest->n_stacks + 1) * sizeof(*s->upto) +
           ((size_t)s->forest->n_names + 1) * sizeof(*s->names);
}

/* Those of a whole block at hand stay apart from the others. */
static int limit_summaries(struct kiln_merge_wide *w)
{
    if (w->own_bytes > w->bytes_max / 2 || w->n - w->first > kiln_wide_limits.summaries_max)
        return join_summaries(w, w->first);
    return 0;
}

/* Forests that the cache has are paid for. */
static int count_source(struct kiln_merge_wide *w, const struct kiln_merge_source *s)
{
    size_t bytes = bytes_of(s);
    int r = s->forest->cached.home ? 0 : kiln_fund_take(w->m->fund, bytes);

    if (r == 0 && !s->forest->cached.home)
        w->charged += bytes;
    w->bytes += bytes;
    return r;
}

int kiln_merge_wide_added(struct kiln_merge_wide *w)
{
    int r = 0;

    for (; r == 0 && w->n_counted < w->m->n_sources; w->n_counted++)
        r = count_source(w, &w->m->sources[w->n_counted]);
    if (r == 0 && w->bytes + w->rolls->budget.used > w->bytes_max)
        r = collapse(w);
    if (r == 0)
        r = limit_summaries(w);
    w->error = w->error ? w->error : r;
    return w->error;
}

/* ---- whole blocks ---- */

static int age_of(const struct kiln_merge_wide *w, const struct kiln_scan_source *source,
                  uint64_t *ret_age, struct kiln_err *err)
{
    const struct kiln_census_look look = {w->store, source->tenant, source->block};

    return kiln_census_age(&look, ret_age, err);
}

int kiln_merge_wide_begin_block(struct kiln_merge_wide *w, struct kiln_scan *scan,
                                const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct kiln_wide *wide;
    uint64_t age = 0;
    int r = age_of(w, source, &age, err);

    if (r < 0)
        return r;
    wide = kiln_wide_find(&w->store->cache, source, age);
    if (!wide) {
        r = collapse(w);
        if (r == 0)
            r = limit_summaries(w);
        w->first = w->n;
        w->before = *w->sums;
        return r;
    }
    r = kiln_scan_add_piece(scan, &wide->whole.piece);
    if (r < 0) {
        kiln_wide_unref(wide);
        return r;
    }
    w->sums->total = (int64_t)((uint64_t)w->sums->total + (uint64_t)wide->total);
    w->sums->count += wide->count;
    r = add_summary(w, wide);
    if (r == 0)
        r = limit_summaries(w);
    return r < 0 ? r : 1;
}

/* Keeps the only summary of the block: its memory becomes the cache's where that has room. */
static int keep(struct kiln_merge_wide *w, const struct kiln_scan_source *source,
                struct kiln_err *err)
{
    struct kiln_wide *wide = w->all[w->first];
    size_t charged = wide->bytes;
    uint64_t age;
    int r = age_of(w, source, &age, err);

    if (r == 0)
        r = kiln_wide_note(wide, source);
    if (r < 0)
        return r;
    wide->total = (int64_t)((uint64_t)w->sums->total - (uint64_t)w->before.total);
    wide->count = w->sums->count - w->before.count;
    if (kiln_wide_keep(&w->store->cache, source, age, wide)) {
        w->own_bytes -= charged;
        kiln_fund_return(w->m->fund, charged);
    } else {
        wide->bytes = charged;
    }
    return 0;
}

int kiln_merge_wide_end_block(struct kiln_merge_wide *w, const struct kiln_scan_source *source,
                              struct kiln_err *err)
{
    int r = collapse(w);

    if (r == 0)
        r = join_summaries(w, w->first);
    if (r == 0 && w->n > w->first)
        r = keep(w, source, err);
    w->first = 0;
    return r == 0 ? limit_summaries(w) : r;
}

int kiln_merge_wide_finish(struct kiln_merge_wide *w, int64_t *ret_nodes, int64_t *ret_functions,
                           bool *ret_pruned)
{
    int64_t bound = 0;
    int r;

    *ret_nodes = *ret_functions = 0;
    *ret_pruned = false;
    if (w->n == 0) { /* everything fitted */
        r = finish_rolls(w, ret_nodes);
        *ret_pruned = *ret_nodes != 0;
        return r;
    }
    r = collapse(w);
    if (r == 0)
        r = open_summaries(w, 0, &bound, ret_functions, ret_pruned);
    *ret_nodes = bound;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pruned tree is a forest: a stack for each node that has something of its own, and one for each
 * that has something folded, which ends in a name that is no function.  Whoever cuts the tree makes
 * no node of that, so that it is "other" like everything else that has none.
 */
#include <errno.h>

#include "base/hash.h"
#include "base/sat.h"
#include "store/merge_roll.h"
#include "store/scan_int.h"

#define FOLDED 0u /* the name */

#define ROOM(o, array, need)                                                                       \
    kiln_grow(&(o)->budget, (void **)&(o)->array, &(o)->cap_##array, (need), sizeof(*(o)->array),  \
              UINT32_MAX)

static const struct kiln_merge_function no_functions;

void kiln_merge_rolls_init(struct kiln_merge_rolls *rolls, struct kiln_merging *m)
{
    *rolls = (struct kiln_merge_rolls){.m = m, .budget = {.limit = SIZE_MAX}};
    kiln_arena_init(&rolls->arena, &rolls->budget);
}

void kiln_merge_rolls_done(struct kiln_merge_rolls *o)
{
#define FREE(array)                                                                                \
    kiln_array_free(&o->budget, (void **)&o->array, &o->cap_##array, sizeof(*o->array))
    FREE(ids);
    FREE(hashes);
    FREE(names);
    FREE(self);
    FREE(total);
    FREE(numbers);
    FREE(list);
    FREE(name_of);
    FREE(rolled_self);
    FREE(rolled_total);
#undef FREE
    kiln_intern_done(&o->index, &o->budget);
    kiln_arena_done(&o->arena);
}

void kiln_merge_rolls_restart(struct kiln_merge_rolls *o)
{
    struct kiln_merge_rolls before = *o;

    kiln_merge_rolls_done(o);
    kiln_merge_rolls_init(o, before.m);
    o->store = before.store;
    o->q = before.q;
    o->nodes_max = before.nodes_max;
    o->functions = before.functions;
}

/* ---- names ---- */

/* The texts of the block at hand, once some are needed. */
struct texts {
    struct kiln_block_dict *dict;
    struct kiln_budget budget;
    struct kiln_namer namer;
};

static int open_texts(const struct kiln_merge_rolls *o, struct kiln_block *block,
                      struct texts *texts)
{
    int r;

    if (texts->dict)
        return 0;
    r = kiln_block_dict(&o->store->cache, block, o->m->fund, &texts->dict, NULL);
    if (r < 0)
        return r;
    texts->budget.limit = SIZE_MAX;
    kiln_namer_init(&texts->namer, texts->dict->batch, &texts->budget, NULL);
    return 0;
}

static void close_texts(struct texts *texts)
{
    if (!texts->dict)
        return;
    kiln_namer_done(&texts->namer);
    kiln_block_dict_unref(texts->dict);
}

/* What a name of the roll-up says: lines are listed from the innermost, names from the outermost.
 */
static int read_name(struct texts *texts, const struct kiln_rollup_name *name,
                     const struct kiln_function_name **ret)
{
    struct kiln_named_location l;
    int r;

    if (name->location >= texts->dict->batch->dict.n_locations)
        return KILN_E_CORRUPT;
    r = kiln_namer_get(&texts->namer, name->location, &l);
    if (r < 0)
        return r;
    if (name->line >= l.n)
        return KILN_E_CORRUPT;
    *ret = &texts->namer.names[texts->namer.pool[l.first + l.n - 1 - name->line]];
    return kiln_rollup_hash((*ret)->name) == name->hash ? 0 : KILN_E_CORRUPT;
}

static int copy_name(struct kiln_merge_rolls *o, const struct kiln_function_name *from,
                     struct kiln_function_name *to)
{
    to->name = kiln_arena_copy(&o->arena, from->name);
    to->file = kiln_arena_copy(&o->arena, from->file);
    to->module = kiln_arena_copy(&o->arena, from->module);
    to->kind = kiln_arena_copy(&o->arena, from->kind);
    to->inlined = from->inlined;
    return to->name.ptr && to->file.ptr && to->module.ptr && to->kind.ptr ? 0 : -ENOMEM;
}

static int grow_names(struct kiln_merge_rolls *o)
{
    int r = ROOM(o, ids, (uint64_t)o->n + 1);

    if (r == 0)
        r = ROOM(o, hashes, (uint64_t)o->n + 1);
    if (r == 0)
        r = ROOM(o, names, (uint64_t)o->n + 1);
    if (r == 0)
        r = ROOM(o, self, (uint64_t)o->n + 1);
    if (r == 0)
        r = ROOM(o, total, (uint64_t)o->n + 1);
    if (r == 0)
        r = ROOM(o, numbers, (uint64_t)o->n + 1);
    return r;
}

static int add_name(struct kiln_merge_rolls *o, uint64_t id, const struct kiln_function_name *name)
{
    int r = grow_names(o);

    if (r == 0)
        r = copy_name(o, name, &o->names[o->n]);
    if (r == 0 && o->n)
        r = kiln_intern_add(&o->index, &o->budget, id, o->n);
    if (r < 0)
        return r;
    o->ids[o->n] = id;
    o->hashes[o->n] = kiln_hash(name->name.ptr, name->name.len);
    o->self[o->n] = o->total[o->n] = 0;
    o->numbers[o->n++] = 0;
    return 0;
}

static int find_name(struct kiln_merge_rolls *o, struct kiln_block *block, struct texts *texts,
                     const struct kiln_rollup_name *name, uint32_t *ret)
{
    const struct kiln_function_name *text;
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&o->index, name->hash);
         kiln_intern_next(&o->index, &p);) {
        if (o->ids[p.entry] == name->hash) {
            *ret = p.entry;
            return 0;
        }
    }
    r = open_texts(o, block, texts);
    if (r == 0)
        r = read_name(texts, name, &text);
    if (r == 0)
        r = add_name(o, name->hash, text);
    if (r == 0)
        *ret = o->n - 1;
    return r;
}

/* Fills name_of. */
static int find_names(struct kiln_merge_rolls *o, const struct kiln_scan_rolled *rolled,
                      uint32_t *ret_n)
{
    static const struct kiln_function_name none = {
        .name = {"", 0}, .file = {"", 0}, .module = {"", 0}, .kind = {"", 0}};
    const struct kiln_rollup_name *names;
    struct texts texts = {0};
    uint32_t n = 0;
    int r = kiln_rollup_names(rolled->rollup, &names, &n, NULL);

    if (r == 0)
        r = ROOM(o, name_of, (uint64_t)n + 1);
    if (r == 0 && o->n == 0)
        r = add_name(o, 0, &none);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = find_name(o, rolled->source->block, &texts, &names[i], &o->name_of[i]);
    close_texts(&texts);
    *ret_n = n;
    return r;
}

/* ---- functions ---- */

static int read_functions(struct kiln_merge_rolls *o, const struct kiln_scan_rolled *rolled,
                          uint32_t n)
{
    int r = ROOM(o, rolled_self, (uint64_t)n + 1);

    if (r == 0)
        r = ROOM(o, rolled_total, (uint64_t)n + 1);
    if (r < 0)
        return r;
    memset(o->rolled_self, 0, n * sizeof(*o->rolled_self));
    memset(o->rolled_total, 0, n * sizeof(*o->rolled_total));
    for (int level = 0; r == 0 && level < KILN_N_ROLLUP_LEVELS; level++)
        r = memchr(rolled->wanted[level], true, KILN_ROLLUP_SPANS_MAX)
                ? kiln_rollup_functions(rolled->rollup, rolled->group,
                                        (enum kiln_rollup_level)level, rolled->wanted[level],
                                        o->rolled_self, o->rolled_total, NULL)
                : 0;
    return r;
}

static void add_functions(struct kiln_merge_rolls *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t name = o->name_of[i];

        o->self[name] = kiln_sat_add(o->self[name], o->rolled_self[i]);
        o->total[name] = kiln_sat_add(o->total[name], o->rolled_total[i]);
    }
}

/* ---- trees ---- */

/* A forest in the making, without a maker: nobody asks where names recur. */
struct plant {
    struct kiln_forest *f;
    int64_t *sums;
    uint32_t *path;  /* names by depth */
    uint32_t *ends;  /* of the nodes on it */
    uint32_t depth;  /* of the path */
    uint32_t common; /* of it with the last stack */
};

static void put_stack(struct plant *p, bool folded, int64_t sum)
{
    struct kiln_forest *f = p->f;
    uint32_t length = p->depth + folded;

    f->first[f->n_stacks] = f->n_nodes;
    f->stacks[f->n_stacks].shared = p->common;
    for (uint32_t i = p->common; i < p->depth; i++)
        f->own[f->n_nodes++] = p->path[i];
    if (folded)
        f->own[f->n_nodes++] = FOLDED;
    p->sums[f->n_stacks++] = sum;
    f->first[f->n_stacks] = f->n_nodes;
    f->depth = length > f->depth ? length : f->depth;
    p->common = p->depth;
}

static void put_nodes(struct plant *p, const struct kiln_rollup_nodes *nodes,
                      const uint32_t *name_of)
{
    for (uint32_t i = 0; i < nodes->n; i++) {
        while (p->depth && p->ends[p->depth - 1] <= i)
            p->depth--;
        p->common = p->common < p->depth ? p->common : p->depth;
        if (i) {
            p->path[p->depth] = name_of[nodes->names[i]];
            p->ends[p->depth++] = nodes->ends[i];
        }
        if (nodes->self[i])
            put_stack(p, false, nodes->self[i]);
        if (nodes->folded[i])
            put_stack(p, true, nodes->folded[i]);
    }
}

/* The forest of the nodes at hand, as another source. */
static int plant_tree(struct kiln_merge_rolls *o)
{
    struct kiln_forest_maker maker;
    struct kiln_forest *forest = NULL;
    uint64_t n = o->nodes.n;
    struct plant p = {.sums = kiln_malloc((2 * n + 1) * sizeof(*p.sums)),
                      .path = kiln_malloc((n + 1) * sizeof(*p.path)),
                      .ends = kiln_malloc((n + 1) * sizeof(*p.ends))};
    int r = kiln_forest_maker_init(&maker, o->store->pool->limit);

    if (r == 0 && !(p.sums && p.path && p.ends))
        r = -ENOMEM;
    if (r == 0)
        r = kiln_forest_expect(&maker, 2 * n + 1, 2 * n + 1);
    if (r == 0) {
        p.f = maker.forest;
        put_nodes(&p, &o->nodes, o->name_of);
        r = kiln_forest_finish(&maker, &forest);
    } else {
        kiln_forest_maker_done(&maker);
    }
    if (r == 0) {
        int64_t *sums = kiln_realloc(p.sums, ((size_t)forest->n_stacks + 1) * sizeof(*sums));

        forest->folded = FOLDED;
        r = kiln_merging_add(o->m, forest, sums ? sums : p.sums);
        p.sums = NULL;
    }
    if (r == 0) {
        o->m->sources[o->m->n_sources - 1].functions = &no_functions;
        o->m->sources[o->m->n_sources - 1].is_rolled = true;
    }
    kiln_free(p.sums);
    kiln_free(p.path);
    kiln_free(p.ends);
    return r;
}

static const struct kiln_rollup_group *group_of(const struct kiln_scan_rolled *rolled)
{
    uint32_t n;

    return &kiln_rollup_groups(rolled->rollup, &n)[rolled->group];
}

static bool is_wanted(const struct kiln_scan_rolled *rolled, uint32_t span)
{
    const struct kiln_rollup_group *g = group_of(rolled);

    return span < g->n_hours ? rolled->wanted[KILN_ROLLUP_HOURS][span]
                             : rolled->wanted[KILN_ROLLUP_DAYS][span - g->n_hours];
}

/* Of the trees of a span, the largest that leaves room for those of the other blocks. */
static uint32_t choose_tree(const struct kiln_rollup_group *g, const struct kiln_rollup_span *span,
                            uint32_t n_blocks)
{
    uint32_t tree = span->first_tree, last = tree + span->n_trees - 1;

    while (tree < last && g->trees[tree].n_nodes > KILN_SCAN_ROLLED_NODES / (n_blocks + 1))
        tree++;
    return tree;
}

/* A tree of each span that is wanted. */
static int plant_trees(struct kiln_merge_rolls *o, const struct kiln_scan_rolled *rolled,
                       int64_t *bound)
{
    const struct kiln_rollup_group *g = group_of(rolled);
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < g->n_spans; i++) {
        uint32_t tree;

        if (!is_wanted(rolled, i))
            continue;
        tree = choose_tree(g, &g->spans[i], rolled->n_blocks);
        r = kiln_leash_check(o->q->leash);
        if (r == 0)
            r = kiln_rollup_tree(rolled->rollup, rolled->group, tree, &o->nodes, NULL);
        if (r == 0)
            r = plant_tree(o);
        if (r == 0)
            *bound = kiln_sat_add(*bound, g->trees[tree].error_bound);
    }
    kiln_rollup_nodes_done(rolled->rollup, &o->nodes);
    o->nodes = (struct kiln_rollup_nodes){0};
    return r;
}

/* ---- one roll-up ---- */

static void count_spans(struct kiln_merge_rolls *o, const struct kiln_scan_rolled *rolled)
{
    const struct kiln_rollup_group *g = group_of(rolled);

    for (uint32_t i = 0; i < g->n_spans; i++) {
        if (!is_wanted(rolled, i))
            continue;
        o->sum = kiln_sat_add(o->sum, g->spans[i].total);
        o->count += (double)g->spans[i].count;
    }
}

int kiln_merge_roll(struct kiln_merge_rolls *o, const struct kiln_scan_rolled *rolled)
{
    uint32_t n = 0, n_sources = o->m->n_sources;
    int64_t bound = 0;
    int r = kiln_leash_check(o->q->leash);

    if (r == 0)
        r = kiln_leash_read(o->q->leash, kiln_rollup_bytes(rolled->rollup));
    if (r == 0)
        r = find_names(o, rolled, &n);
    if (r == 0 && o->functions)
        r = read_functions(o, rolled, n);
    if (r == 0 && o->nodes_max)
        r = plant_trees(o, rolled, &bound);
    if (r < 0) {
        kiln_merging_cut_back(o->m, n_sources);
        return r;
    }
    if (o->functions)
        add_functions(o, n);
    o->error_bound = kiln_sat_add(o->error_bound, bound);
    o->n_rolled++;
    count_spans(o, rolled);
    return 0;
}

/* ---- the end ---- */

static int list_functions(struct kiln_merge_rolls *o, uint32_t *ret_n)
{
    uint32_t n = 0;
    int r = ROOM(o, list, (uint64_t)o->n + 1);

    for (uint32_t i = 0; r == 0 && i < o->n; i++) {
        if (o->total[i] || o->self[i])
            o->list[n++] = (struct kiln_merge_function){i, o->self[i], o->total[i]};
    }
    *ret_n = n;
    return r;
}

/* A source without stacks, or with an empty one that has the total where there are no trees. */
static int add_functions_source(struct kiln_merge_rolls *o)
{
    struct kiln_forest_maker maker;
    struct kiln_forest *forest;
    int64_t *sums = kiln_malloc(2 * sizeof(*sums));
    uint32_t n = 0;
    int r = sums ? list_functions(o, &n) : -ENOMEM;

    if (r == 0)
        r = kiln_forest_maker_init(&maker, o->store->pool->limit);
    if (r < 0) {
        kiln_free(sums);
        return r;
    }
    sums[0] = o->sum;
    if (o->nodes_max == 0)
        r = kiln_forest_add(&maker, 0, &(uint32_t){0}, 0);
    if (r == 0)
        r = kiln_forest_finish(&maker, &forest);
    else
        kiln_forest_maker_done(&maker);
    if (r == 0)
        r = kiln_merging_add(o->m, forest, sums);
    else
        kiln_free(sums);
    if (r == 0) {
        o->m->sources[o->m->n_sources - 1].functions = o->list;
        o->m->sources[o->m->n_sources - 1].n_functions = n;
        o->m->sources[o->m->n_sources - 1].is_rolled = true;
    }
    return r;
}

int kiln_merge_rolls_finish(struct kiln_merge_rolls *o)
{
    int r;

    if (o->n_rolled == 0)
        return 0;
    r = add_functions_source(o);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < o->m->n_sources; i++) {
        struct kiln_merge_source *s = &o->m->sources[i];

        if (!s->is_rolled)
            continue;
        kiln_free(s->names);
        s->names = o->numbers;
        s->forest->names = o->names;
        s->forest->hashes = o->hashes;
    }
    o->m->n_rolled_names = o->n;
    return 0;
}

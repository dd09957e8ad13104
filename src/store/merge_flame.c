/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources added up: names matched by their hashes, functions, and the frame of a flame.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"
#include "store/fund.h"
#include "store/merge_int.h"
#include "store/ready.h"
#include "store/wide.h"

#define CHECK_EVERY 16384u /* stacks */

/* ---- sources ---- */

void kiln_merging_add_up(int64_t *sums, uint32_t n)
{
    uint64_t upto = 0;

    for (uint32_t i = 0; i <= n; i++) {
        uint64_t sum = i < n ? (uint64_t)sums[i] : 0;

        sums[i] = (int64_t)upto;
        upto += sum;
    }
}

static void drop_source(struct kiln_merge_source *s)
{
    kiln_forest_unref(s->forest);
    kiln_free(s->own_upto);
    kiln_cached_unref(s->ready);
}

static int add_source(struct kiln_merging *m, struct kiln_merge_source made)
{
    int r = kiln_grow(&m->budget, (void **)&m->sources, &m->cap_sources, (uint64_t)m->n_sources + 1,
                      sizeof(*m->sources), UINT32_MAX);

    if (r == 0) {
        made.names = kiln_calloc((size_t)made.forest->n_names + 1, sizeof(*made.names));
        r = made.names ? 0 : -ENOMEM;
    }
    if (r < 0)
        drop_source(&made);
    else
        m->sources[m->n_sources++] = made;
    return r;
}

int kiln_merging_add(struct kiln_merging *m, struct kiln_forest *forest, int64_t *sums)
{
    kiln_merging_add_up(sums, forest->n_stacks);
    return add_source(m,
                      (struct kiln_merge_source){.forest = forest, .upto = sums, .own_upto = sums});
}

int kiln_merging_add_ready(struct kiln_merging *m, struct kiln_forest *forest,
                           struct kiln_ready *ready)
{
    return add_source(m, (struct kiln_merge_source){.forest = forest,
                                                    .upto = ready->upto,
                                                    .ready = &ready->cached,
                                                    .functions = ready->functions,
                                                    .n_functions = ready->n_functions});
}

int kiln_merging_add_wide(struct kiln_merging *m, struct kiln_wide *wide)
{
    return add_source(m, (struct kiln_merge_source){.forest = kiln_forest_ref(wide->forest),
                                                    .upto = wide->upto,
                                                    .ready = &wide->cached,
                                                    .functions = wide->functions,
                                                    .n_functions = wide->n_functions,
                                                    .wide_names = wide->names});
}

void kiln_merging_cut_back(struct kiln_merging *m, uint32_t n)
{
    while (m->n_sources > n) {
        struct kiln_merge_source *s = &m->sources[--m->n_sources];

        drop_source(s);
        if (!(s->is_rolled && m->n_rolled_names))
            kiln_free(s->names);
    }
}

void kiln_merging_done(struct kiln_merging *m)
{
    kiln_merging_cut_back(m, 0);
    m->n_rolled_names = 0;
    kiln_array_free(&m->budget, (void **)&m->sources, &m->cap_sources, sizeof(*m->sources));
    kiln_array_free(&m->budget, (void **)&m->names, &m->cap_names, sizeof(*m->names));
    kiln_intern_done(&m->index, &m->budget);
    m->n_sources = m->n_names = 0;
}

static const struct kiln_function_name *name_of(const struct kiln_merge_source *source,
                                                uint32_t name)
{
    return source->wide_names ? kiln_wide_name(source->wide_names, name)
                              : &source->forest->names[name];
}

static uint64_t hash_of(const struct kiln_merge_source *source, uint32_t name)
{
    return source->wide_names ? kiln_wide_name_hash(source->wide_names, name)
                              : source->forest->hashes[name];
}

int kiln_merging_new_name(struct kiln_merging *m, struct kiln_merge_source *source, uint32_t name)
{
    uint64_t hash = hash_of(source, name);
    int r;

    for (struct kiln_probe p = kiln_intern_probe(&m->index, hash);
         kiln_intern_next(&m->index, &p);) {
        if (m->names[p.entry].hash == hash) {
            source->names[name] = p.entry + 1;
            return 0;
        }
    }
    r = kiln_grow(&m->budget, (void **)&m->names, &m->cap_names, (uint64_t)m->n_names + 1,
                  sizeof(*m->names), UINT32_MAX - 1);
    if (r == 0)
        r = kiln_intern_add(&m->index, &m->budget, hash, m->n_names);
    if (r < 0)
        return r;
    m->names[m->n_names] = (struct kiln_merge_name){.name = name_of(source, name), .hash = hash};
    source->names[name] = ++m->n_names;
    return 0;
}

/* ---- functions ---- */

/* What a pass over a forest adds up, by name of the forest. */
struct sums {
    int64_t self, total;
};

/* A node that more than one stack goes through, while the pass is below it. */
struct open {
    uint32_t name; /* with AGAIN */
    int64_t before;
};

static void add(int64_t *sum, int64_t more)
{
    *sum = (int64_t)((uint64_t)*sum + (uint64_t)more);
}

static int64_t less(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/*
 * Of the nodes of a stack, those that the next one shares stay open; those that nobody else goes
 * through have its sum, and are passed over where that is 0, as in most stacks of most questions.
 */
static void add_stack(const struct kiln_forest *f, const int64_t *upto, uint32_t i,
                      struct open *path, struct sums *sums)
{
    const uint32_t *own = f->own + f->first[i];
    uint32_t shared = f->stacks[i].shared, length = kiln_forest_length(f, i);
    uint32_t staying = f->stacks[i + 1].shared;
    int64_t sum = less(upto[1], upto[0]);

    for (uint32_t d = shared; d < staying; d++)
        path[d] = (struct open){own[d - shared], upto[0]};
    if (sum && length) {
        for (uint32_t d = staying > shared ? staying : shared; d < length; d++) {
            uint32_t name = own[d - shared];

            if (!(name & KILN_FOREST_AGAIN))
                add(&sums[name].total, sum);
        }
        add(&sums[own[length - 1 - shared] & KILN_FOREST_NAME].self, sum);
    }
    for (uint32_t d = staying; d < shared; d++) {
        if (!(path[d].name & KILN_FOREST_AGAIN))
            add(&sums[path[d].name].total, less(upto[1], path[d].before));
    }
}

static int add_sums(struct kiln_merging *m, struct kiln_merge_source *s, uint32_t name,
                    int64_t self, int64_t total)
{
    uint32_t number;
    int r = 0;

    if (!self && !total)
        return 0;
    r = kiln_merging_name(m, s, name, &number);
    if (r < 0)
        return r;
    add(&m->names[number].self, self);
    add(&m->names[number].total, total);
    return 0;
}

static int list_sums(const struct kiln_forest *f, const struct sums *sums,
                     struct kiln_merge_function **ret_list, uint32_t *ret_n)
{
    struct kiln_merge_function *list;
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n_names; i++)
        n += sums[i].self || sums[i].total;
    list = kiln_malloc(((size_t)n + 1) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    *ret_n = n;
    n = 0;
    for (uint32_t i = 0; i < f->n_names; i++) {
        if (sums[i].self || sums[i].total)
            list[n++] = (struct kiln_merge_function){i, sums[i].self, sums[i].total};
    }
    *ret_list = list;
    return 0;
}

int kiln_merging_list(struct kiln_merging *m, const struct kiln_forest *f, const int64_t *upto,
                      struct kiln_merge_function **ret_list, uint32_t *ret_n)
{
    struct sums *sums = kiln_calloc((size_t)f->n_names + 1, sizeof(*sums));
    struct open *path = kiln_calloc((size_t)f->depth + 1, sizeof(*path));
    int r = sums && path ? 0 : -ENOMEM;

    for (uint32_t i = 0; r == 0 && i < f->n_stacks; i++) {
        if (i % CHECK_EVERY == 0)
            r = kiln_leash_check(m->fund->leash);
        add_stack(f, upto + i, i, path, sums);
    }
    if (r == 0)
        r = list_sums(f, sums, ret_list, ret_n);
    kiln_free(sums);
    kiln_free(path);
    return r;
}

static int add_list(struct kiln_merging *m, struct kiln_merge_source *s,
                    const struct kiln_merge_function *list, uint32_t n)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = add_sums(m, s, list[i].name, list[i].self, list[i].total);
    return r;
}

static int add_forest(struct kiln_merging *m, struct kiln_merge_source *s)
{
    struct kiln_merge_function *list = NULL;
    uint32_t n = 0;
    int r = kiln_merging_list(m, s->forest, s->upto, &list, &n);

    if (r == 0)
        r = add_list(m, s, list, n);
    kiln_free(list);
    return r;
}

int kiln_merging_functions(struct kiln_merging *m)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < m->n_sources; i++) {
        struct kiln_merge_source *s = &m->sources[i];

        r = kiln_leash_check(m->fund->leash);
        if (r < 0)
            break;
        r = s->functions ? add_list(m, s, s->functions, s->n_functions) : add_forest(m, s);
    }
    return r;
}

/* ---- the flame ---- */

static int add_name(struct kiln_flame *flame, const struct kiln_flame_name *name)
{
    struct kiln_flame_name *made = &flame->names[flame->n_names];

    made->name = kiln_arena_copy(&flame->arena, name->name);
    made->file = kiln_arena_copy(&flame->arena, name->file);
    made->module = kiln_arena_copy(&flame->arena, name->module);
    made->kind = kiln_arena_copy(&flame->arena, name->kind);
    made->inlined = name->inlined;
    if (!made->name.ptr || !made->file.ptr || !made->module.ptr || !made->kind.ptr)
        return -ENOMEM;
    flame->n_names++;
    return 0;
}

int kiln_flame_name(struct kiln_merging *m, struct kiln_flame *flame, uint32_t name, uint32_t *ret)
{
    const struct kiln_function_name *from = m->names[name].name;
    int r = 0;

    if (m->names[name].number == 0) {
        r = add_name(flame, &(struct kiln_flame_name){from->name, from->file, from->module,
                                                      from->kind, from->inlined});
        if (r == 0)
            m->names[name].number = flame->n_names - 1;
    }
    *ret = m->names[name].number;
    return r;
}

int kiln_flame_other(struct kiln_flame *flame)
{
    const struct kiln_flame_name other = {KILN_STR("other"), KILN_STR(""), KILN_STR(""),
                                          KILN_STR(""), false};
    int r = 0;

    if (flame->other == 0) {
        r = add_name(flame, &other);
        if (r == 0)
            flame->other = flame->n_names - 1;
    }
    return r;
}

static int by_self(const void *a, const void *b, void *names)
{
    const struct kiln_flame_function *x = a, *y = b;
    const struct kiln_flame_name *n = names;

    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return kiln_str_cmp(n[x->name].name, n[y->name].name);
}

static int list_functions(struct kiln_merging *m, struct kiln_flame *flame)
{
    int r = 0;

    flame->functions = kiln_calloc((size_t)m->n_names + 1, sizeof(*flame->functions));
    if (!flame->functions)
        return -ENOMEM;
    for (uint32_t i = 0; r == 0 && i < m->n_names; i++) {
        struct kiln_flame_function *f = &flame->functions[flame->n_functions];

        if (!m->names[i].self && !m->names[i].total)
            continue;
        f->self = m->names[i].self;
        f->total = m->names[i].total;
        r = kiln_flame_name(m, flame, i, &f->name);
        flame->n_functions++;
    }
    return r;
}

static void sort_functions(struct kiln_flame *flame)
{
    if (flame->n_functions)
        qsort_r(flame->functions, flame->n_functions, sizeof(*flame->functions), by_self,
                flame->names);
}

/* Names that the flame may have: those of summaries are mostly the same. */
static uint64_t count_names(const struct kiln_merging *m)
{
    uint64_t n = (uint64_t)3 + m->n_rolled_names, most = 0;
    const struct kiln_wide_names *table = NULL;

    for (uint32_t i = 0; i < m->n_sources; i++) {
        const struct kiln_merge_source *s = &m->sources[i];

        if (s->wide_names && (!table || s->wide_names == table)) {
            table = s->wide_names;
            most = s->forest->n_names > most ? s->forest->n_names : most;
        } else {
            n += s->forest->n_names;
        }
    }
    return n + most;
}

static int fill(struct kiln_merging *m, uint32_t nodes_max, bool functions,
                struct kiln_flame *flame)
{
    static const struct kiln_flame_name total = {{"total", 5}, {"", 0}, {"", 0}, {"", 0}, false};
    uint64_t n_names = count_names(m);
    int r = 0;

    for (uint32_t i = 0; i < m->n_sources; i++)
        add(&flame->total, m->sources[i].upto[m->sources[i].forest->n_stacks]);
    if (functions)
        r = kiln_merging_functions(m);
    if (r < 0)
        return r;
    flame->names = kiln_malloc((functions && !nodes_max ? m->n_names + (uint64_t)3 : n_names) *
                               sizeof(*flame->names));
    if (!flame->names)
        return -ENOMEM;
    r = add_name(flame, &total);
    if (r == 0 && functions)
        r = list_functions(m, flame);
    if (r == 0 && nodes_max)
        r = kiln_merging_cut(m, nodes_max, flame);
    return r;
}

static int make_flame(struct kiln_merging *m, uint32_t nodes_max, bool functions,
                      struct kiln_flame **ret_flame)
{
    struct kiln_flame *flame = kiln_calloc(1, sizeof(*flame));
    int r;

    if (!flame)
        return -ENOMEM;
    flame->budget.limit = SIZE_MAX;
    kiln_arena_init(&flame->arena, &flame->budget);
    r = fill(m, nodes_max, functions, flame);
    if (r < 0) {
        kiln_flame_free(flame);
        return r;
    }
    *ret_flame = flame;
    return 0;
}

int kiln_merging_flame(struct kiln_merging *m, uint32_t nodes_max, bool functions,
                       struct kiln_flame **ret_flame)
{
    int r = make_flame(m, nodes_max, functions, ret_flame);

    if (r == 0)
        sort_functions(*ret_flame);
    return r;
}

/* Where some values are negative: what all come to without their signs, for then nothing less is
 * known of what a total hides.  Else 0. */
static int64_t mixed_sums(const struct kiln_merging *m)
{
    bool any = false;
    int64_t sum = 0;

    for (uint32_t i = 0; i < m->n_sources; i++) {
        const struct kiln_merge_source *s = &m->sources[i];

        for (uint32_t k = 0; k < s->forest->n_stacks; k++) {
            int64_t value = less(s->upto[k + 1], s->upto[k]);

            any = any || value < 0;
            sum = kiln_sat_add(sum, value < 0 ? -value : value);
        }
    }
    return any ? sum : 0;
}

int kiln_merging_unsorted(struct kiln_merging *m, uint32_t nodes_max, struct kiln_flame **ret_flame)
{
    int64_t most = mixed_sums(m);
    int r = make_flame(m, nodes_max, true, ret_flame);

    if (r < 0)
        return r;
    (*ret_flame)->error_bound = m->cut_bound && most ? most : m->cut_bound;
    (*ret_flame)->functions_bound = most;
    return r;
}

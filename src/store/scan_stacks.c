/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks chosen by their functions: each name of a forest is asked about once, then one pass over
 * the stacks tells of each what its path has.
 */
#include <errno.h>

#include "base/regex.h"
#include "store/scan_int.h"

/* What a name, or a path down to some depth, has. */
enum { HAS_WITH = 1, HAS_WITHOUT = 2, HAS_WITH_RE = 4, HAS_WITHOUT_RE = 8, OFF_SITE = 16 };

static bool is_one_of(struct kiln_str name, const struct kiln_str *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (kiln_str_eq(name, list[i]))
            return true;
    }
    return false;
}

static int ask(struct kiln_regex *regex, struct kiln_str name, uint8_t bit, uint8_t *bits)
{
    int r = regex ? kiln_regex_matches(regex, name) : 0;

    if (r > 0)
        *bits |= bit;
    return r < 0 ? r : 0;
}

static int judge_names(const struct kiln_scan *scan, const struct kiln_forest *f, uint8_t *bits)
{
    const struct kiln_stack_choice *c = &scan->q->stacks;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < f->n_names; i++) {
        struct kiln_str name = f->names[i].name;

        if (is_one_of(name, c->with, c->n_with))
            bits[i] |= HAS_WITH;
        if (is_one_of(name, c->without, c->n_without))
            bits[i] |= HAS_WITHOUT;
        r = ask(c->with_regex, name, HAS_WITH_RE, &bits[i]);
        if (r == 0)
            r = ask(c->without_regex, name, HAS_WITHOUT_RE, &bits[i]);
        if (r == 0 && i % 1024 == 0)
            r = kiln_leash_check(scan->q->leash);
    }
    return r;
}

static bool counts(const struct kiln_stack_choice *c, uint8_t bits, uint32_t length)
{
    if ((c->n_with && !(bits & HAS_WITH)) || (c->with_regex && !(bits & HAS_WITH_RE)))
        return false;
    return !(bits & (HAS_WITHOUT | HAS_WITHOUT_RE | OFF_SITE)) && length >= c->n_call_site;
}

/* `path` has room for what the path down to each depth has. */
static void judge_stacks(const struct kiln_stack_choice *c, const struct kiln_forest *f,
                         const uint8_t *names, uint8_t *path, uint8_t *by_rank)
{
    for (uint32_t i = 0; i < f->n_stacks; i++) {
        uint32_t depth = f->stacks[i].shared, length = kiln_forest_length(f, i);

        for (; depth < length; depth++) {
            uint32_t name = kiln_forest_name(f, i, depth);
            uint8_t bits = (uint8_t)(names[name] | (depth ? path[depth - 1] : 0));

            if (depth < c->n_call_site && !kiln_str_eq(f->names[name].name, c->call_site[depth]))
                bits |= OFF_SITE;
            path[depth] = bits;
        }
        by_rank[i] = counts(c, length ? path[length - 1] : 0, length);
    }
}

/* `stacks` are the `n` of the forest, by number; NULL: the first ones.  Others do not count. */
static int mark(struct kiln_scan *scan, const struct kiln_forest *f, uint32_t n_stacks,
                const uint32_t *stacks, uint32_t n)
{
    uint8_t *names = kiln_calloc((size_t)f->n_names + 1, 1);
    uint8_t *path = kiln_calloc((size_t)f->depth + 1, 1);
    uint8_t *by_rank = kiln_calloc((size_t)f->n_stacks + 1, 1);
    struct kiln_scan_memo *m = &scan->memo;
    int r = names && path && by_rank ? 0 : -ENOMEM;

    if (r == 0)
        r = judge_names(scan, f, names);
    if (r == 0)
        r = kiln_grow(&m->budget, (void **)&m->stacks, &m->cap_stacks, (uint64_t)n_stacks + 1, 1,
                      UINT32_MAX);
    if (r == 0) {
        judge_stacks(&scan->q->stacks, f, names, path, by_rank);
        memset(m->stacks, 0, n_stacks);
        for (uint32_t i = 0; i < n; i++)
            m->stacks[stacks ? stacks[i] - 1 : i] = by_rank[f->rank[i]];
    }
    kiln_free(names);
    kiln_free(path);
    kiln_free(by_rank);
    return r;
}

int kiln_scan_mark_stacks(struct kiln_scan *scan, const struct kiln_scan_source *source,
                          const uint32_t *stacks, uint32_t n, struct kiln_err *err)
{
    struct kiln_forest *forest;
    int r = kiln_scan_forest(scan, source, stacks, n, &forest, err);

    if (r < 0)
        return r;
    r = mark(scan, forest, source->n_stacks, stacks, n);
    kiln_forest_unref(forest);
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that come in any order, sorted by the numbers of their names from the root down: a
 * quicksort on one name at a time.  A run of stacks that are equal down to some depth falls into
 * those whose next name is less, equal or greater than that of one drawn from their middle; the
 * equal ones go on one deeper.
 */
#include "base/err.h"
#include "store/forest.h"

struct run {
    uint32_t first, n, depth;
};

struct sorter {
    const uint32_t *names, *starts;
    uint32_t *order;
    struct run *runs;
    uint32_t n_runs, cap_runs, cap_order;
    struct kiln_budget budget;
};

/* The name at a depth, and 1; 0 below the leaf. */
static uint32_t key(const struct sorter *s, uint32_t stack, uint32_t depth)
{
    uint32_t at = s->starts[stack] + depth;

    return at < s->starts[stack + 1] ? s->names[at] + 1 : 0;
}

static int push(struct sorter *s, uint32_t first, uint32_t n, uint32_t depth)
{
    int r;

    if (n < 2)
        return 0;
    r = kiln_grow(&s->budget, (void **)&s->runs, &s->cap_runs, (uint64_t)s->n_runs + 1,
                  sizeof(*s->runs), UINT32_MAX);
    if (r == 0)
        s->runs[s->n_runs++] = (struct run){first, n, depth};
    return r;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t t = *a;

    *a = *b;
    *b = t;
}

/* The middle one of three places. */
static uint32_t pivot_of(const struct sorter *s, const struct run *run)
{
    const uint32_t *o = s->order + run->first;
    uint32_t a = key(s, o[0], run->depth), b = key(s, o[run->n / 2], run->depth);
    uint32_t c = key(s, o[run->n - 1], run->depth);

    if ((a <= b) == (b <= c))
        return b;
    return (b <= a) == (a <= c) ? a : c;
}

static int sort_run(struct sorter *s, struct run run)
{
    uint32_t *o = s->order + run.first;
    uint32_t pivot = pivot_of(s, &run);
    uint32_t less = 0, i = 0, greater = run.n;
    int r;

    while (i < greater) {
        uint32_t k = key(s, o[i], run.depth);

        if (k < pivot)
            swap(&o[less++], &o[i++]);
        else if (k > pivot)
            swap(&o[i], &o[--greater]);
        else
            i++;
    }
    r = push(s, run.first, less, run.depth);
    if (r == 0)
        r = push(s, run.first + greater, run.n - greater, run.depth);
    if (r == 0 && pivot)
        r = push(s, run.first + less, greater - less, run.depth + 1);
    return r;
}

static int sort(struct sorter *s, uint32_t n)
{
    int r = kiln_reserve(&s->budget, (void **)&s->order, &s->cap_order, (uint64_t)n + 1,
                         sizeof(*s->order), UINT32_MAX);

    for (uint32_t i = 0; r == 0 && i < n; i++)
        s->order[i] = i;
    if (r == 0)
        r = push(s, 0, n, 0);
    while (r == 0 && s->n_runs)
        r = sort_run(s, s->runs[--s->n_runs]);
    return r;
}

static uint32_t shared_by(const struct sorter *s, uint32_t a, uint32_t b)
{
    uint32_t n = 0, k;

    while ((k = key(s, a, n)) && k == key(s, b, n))
        n++;
    return n;
}

static int add_all(struct kiln_forest_maker *maker, const struct sorter *s, uint32_t n)
{
    struct kiln_forest *f = maker->forest;
    int r = kiln_reserve(&f->budget, (void **)&f->rank, &f->cap_rank, (uint64_t)n + 1,
                         sizeof(*f->rank), UINT32_MAX);

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        uint32_t stack = s->order[i], length = s->starts[stack + 1] - s->starts[stack];
        uint32_t shared = i ? shared_by(s, s->order[i - 1], stack) : 0;

        if (i == 0 || shared < length)
            r = kiln_forest_add(maker, shared, s->names + s->starts[stack] + shared,
                                length - shared);
        if (r == 0)
            f->rank[stack] = f->n_stacks - 1;
    }
    return r;
}

int kiln_forest_of_names(struct kiln_forest_maker *maker, const uint32_t *names,
                         const uint32_t *starts, uint32_t n, struct kiln_forest **ret_forest)
{
    struct sorter s = {.names = names, .starts = starts, .budget = {.limit = SIZE_MAX}};
    int r = sort(&s, n);

    if (r == 0)
        r = add_all(maker, &s, n);
    kiln_array_free(&s.budget, (void **)&s.order, &s.cap_order, sizeof(*s.order));
    kiln_array_free(&s.budget, (void **)&s.runs, &s.cap_runs, sizeof(*s.runs));
    if (r < 0) {
        kiln_forest_maker_done(maker);
        return r;
    }
    return kiln_forest_finish(maker, ret_forest);
}

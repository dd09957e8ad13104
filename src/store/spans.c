/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root of the elements [low, high) is the one in the middle; its subtrees are the two halves.
 */
#include "store/spans.h"

#include <errno.h>
#include <stdlib.h>

static int by_start(const void *a, const void *b)
{
    const struct kiln_span *x = a, *y = b;

    return (x->min_ns > y->min_ns) - (x->min_ns < y->min_ns);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Sets `reach` in a subtree, and returns that of its root. */
static uint64_t set_reach(struct kiln_span *all, uint32_t low, uint32_t high)
{
    uint32_t mid = low + (high - low) / 2;
    uint64_t below;

    if (low == high)
        return 0;
    below = larger(set_reach(all, low, mid), set_reach(all, mid + 1, high));
    return all[mid].reach = larger(all[mid].max_ns, below);
}

int kiln_spans_set(struct kiln_spans *spans, struct kiln_block *const *blocks, uint32_t n)
{
    kiln_spans_done(spans);
    spans->all = kiln_malloc(((size_t)n + 1) * sizeof(*spans->all));
    if (!spans->all)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_block_info *info = kiln_block_info(blocks[i]);

        spans->all[i] = (struct kiln_span){info->min_ns, info->max_ns, 0, blocks[i]};
    }
    spans->n = n;
    qsort(spans->all, n, sizeof(*spans->all), by_start);
    set_reach(spans->all, 0, n);
    return 0;
}

void kiln_spans_done(struct kiln_spans *spans)
{
    kiln_free(spans->all);
    *spans = (struct kiln_spans){0};
}

struct visit {
    const struct kiln_span *all;
    uint64_t time_ns;
    int (*each)(void *context, struct kiln_block *block);
    void *context;
};

static int visit(const struct visit *v, uint32_t low, uint32_t high)
{
    uint32_t mid = low + (high - low) / 2;
    const struct kiln_span *span = &v->all[mid];
    int r;

    if (low == high || span->reach < v->time_ns)
        return 0;
    r = visit(v, low, mid);
    if (r == 0 && span->min_ns <= v->time_ns && span->max_ns >= v->time_ns)
        r = v->each(v->context, span->block);
    if (r == 0 && span->min_ns <= v->time_ns)
        r = visit(v, mid + 1, high);
    return r;
}

int kiln_spans_at(const struct kiln_spans *spans, uint64_t time_ns,
                  int (*each)(void *context, struct kiln_block *block), void *context)
{
    const struct visit v = {spans->all, time_ns, each, context};

    return visit(&v, 0, spans->n);
}

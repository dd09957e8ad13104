/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-ups as sections, all owned by their service: of each group its functions, trees and, last,
 * the group itself; then the names of all.  Values are divided by the group's divisor.
 *
 *   functions  for each name, of hours and then of days: spans it has something in | span (of the
 *              first itself, then the difference to the one before less 1), self, total less self
 *   trees      nodes in preorder, one tree after another: name (of the root 0), levels up from the
 *              node before to the parent (0: it is the parent), self, folded
 *   groups     one page each: divisor, rows, series, hours, days, trees, how many groups before it
 *              the one is whose functions and trees are its own too | series (difference to the
 *              one before) | of each span, hours and then days: its number since 1970 (difference
 *              to the one before of its kind); total; profiles that begin in it; others; rows;
 *              observations; time covered; first time since its start; last time since the first;
 *              profiles with the time they came | of each tree: span, nodes, error bound
 *   names      location (difference to the name before), line, twice, and 1 if symbols may name it;
 *              hash
 */
#include <math.h>
#include <stdlib.h>

#include "store/rollup_group.h"

/* ---- functions ---- */

/* Where the packed functions of a span stand. */
struct cursor {
    const unsigned char *at;
    uint32_t left;
    uint32_t name; /* the next */
};

static void step(struct cursor *c)
{
    c->left--;
    if (c->left)
        c->name += (uint32_t)kiln_rollup_get_varint(&c->at);
}

static void begin(const struct kiln_buf *packed, const struct kiln_rollup_summed *span,
                  struct cursor *c)
{
    *c = (struct cursor){.left = span->n_functions};
    if (c->left == 0)
        return;
    c->at = (const unsigned char *)packed->ptr + span->at;
    c->name = (uint32_t)kiln_rollup_get_varint(&c->at);
}

static void put_function(struct kiln_rollup_work *k, uint32_t name, struct cursor *cursors,
                         uint32_t n)
{
    uint32_t next = 0, count = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (cursors[i].left == 0 || cursors[i].name != name)
            continue;
        kiln_writer_put(k->w, 1, i - next);
        kiln_writer_put(k->w, 2, kiln_rollup_get_varint(&cursors[i].at));
        kiln_writer_put(k->w, 3, kiln_rollup_get_varint(&cursors[i].at));
        step(&cursors[i]);
        next = i + 1;
        count++;
    }
    kiln_writer_put(k->w, 0, count);
    kiln_writer_entry(k->w);
}

static void put_functions(struct kiln_rollup_work *k)
{
    struct cursor cursors[KILN_ROLLUP_SPANS_MAX];

    kiln_writer_section(k->w, KILN_SECTION_ROLLUP_FUNCTIONS, k->service);
    for (uint32_t level = 0; level < KILN_N_ROLLUP_LEVELS; level++) {
        for (uint32_t i = 0; i < k->n_spans[level]; i++)
            begin(&k->packed[level], &k->spans[level][i], &cursors[i]);
        for (uint32_t i = 0; k->n_spans[level] && i < k->naming.n && k->w->error == 0; i++)
            put_function(k, i, cursors, k->n_spans[level]);
        kiln_writer_flush(k->w);
    }
}

/* ---- trees ---- */

static void put_tree(struct kiln_rollup_work *k, uint32_t span, struct kiln_rollup_planted *ret)
{
    const struct kiln_rollup_drawn *d = &k->drawn;

    for (uint32_t i = 0; i < d->n && k->w->error == 0; i++) {
        kiln_writer_put(k->w, 0, d->names[i]);
        kiln_writer_put(k->w, 1, d->ups[i]);
        kiln_writer_put(k->w, 2, (uint64_t)d->self[i] / k->divisor);
        kiln_writer_put(k->w, 3, (uint64_t)d->folded[i] / k->divisor);
        kiln_writer_entry(k->w);
    }
    kiln_writer_flush(k->w);
    *ret = (struct kiln_rollup_planted){span, d->n, (uint64_t)d->error_bound / k->divisor};
}

static uint32_t nodes_of(const struct kiln_rollup_summed *span)
{
    const struct kiln_rollup_limits *l = &kiln_rollup_limits;
    uint64_t n = span->basis.n_rows / l->node_rows;

    if (span->basis.n_rows < l->tree_rows)
        return 0;
    n = n < l->nodes_min ? l->nodes_min : n;
    return n > l->nodes_max ? l->nodes_max : (uint32_t)n;
}

/* The tree of a span, and smaller ones for questions over many; returns how many trees there are
 * then.  Where memory ends there are no more. */
static uint32_t put_span_trees(struct kiln_rollup_work *k, const struct kiln_rollup_summed *span,
                               uint32_t number, uint32_t n)
{
    static const uint32_t parts[] = {1, 4, 32};
    uint32_t nodes = nodes_of(span);

    if (nodes == 0 || kiln_rollup_span_tree(k, span, nodes) < 0)
        return n;
    nodes = k->drawn.n; /* if it has so many */
    for (size_t i = 0; i < KILN_ARRAY_LEN(parts) && k->w->error == 0; i++) {
        if (i && (nodes / parts[i] < kiln_rollup_limits.nodes_coarse || nodes / parts[i] == 0 ||
                  kiln_rollup_prune(&k->drawn, nodes / parts[i], k->budget) < 0))
            break;
        if (n == 0)
            kiln_writer_section(k->w, KILN_SECTION_ROLLUP_NODES, k->service);
        put_tree(k, number, &k->trees[n++]);
    }
    return n;
}

static uint32_t put_trees(struct kiln_rollup_work *k)
{
    uint32_t n = 0, number = 0;

    for (uint32_t level = 0; level < KILN_N_ROLLUP_LEVELS; level++) {
        for (uint32_t i = 0; i < k->n_spans[level]; i++)
            n = put_span_trees(k, &k->spans[level][i], number++, n);
    }
    return n;
}

/* ---- groups ---- */

static int by_at(const void *a, const void *b)
{
    const struct kiln_keyed *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Their runs are in the order of hours; the keys of this group are not needed any more. */
static uint32_t put_series(struct kiln_rollup_work *k)
{
    struct kiln_keyed *keyed = k->keyed + k->first_run;
    uint32_t n = k->end_run - k->first_run, n_series = 0;

    for (uint32_t i = 0; i < n; i++)
        keyed[i].at = k->m->runs[k->order[k->first_run + i]].series;
    qsort(keyed, n, sizeof(*keyed), by_at);
    for (uint32_t i = 0; i < n; i++) {
        if (i && keyed[i].at == keyed[i - 1].at)
            continue;
        kiln_writer_put(k->w, 1, i ? keyed[i].at - keyed[i - 1].at : keyed[i].at);
        n_series++;
    }
    return n_series;
}

static void put_span(struct kiln_rollup_work *k, const struct kiln_rollup_summed *span,
                     uint64_t before, uint64_t hours)
{
    const struct kiln_rollup_basis *b = &span->basis;
    uint64_t numbers[] = {span->number - before,
                          (uint64_t)span->total / k->divisor,
                          b->n_profiles,
                          b->n_continued,
                          b->n_rows,
                          (uint64_t)llround(b->count),
                          b->covered_ns,
                          b->first_ns - span->number * hours * kiln_rollup_limits.hour_ns,
                          b->last_ns - b->first_ns,
                          b->n_time_set};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(numbers); i++)
        kiln_writer_put(k->w, 2 + i, numbers[i]);
}

static void put_group(struct kiln_rollup_work *k)
{
    struct kiln_block_writer *w = k->w;
    uint32_t n_series;

    kiln_writer_section(w, KILN_SECTION_ROLLUP, k->service);
    n_series = put_series(k);
    kiln_writer_put(w, 0, k->divisor);
    kiln_writer_put(w, 0, k->n_rows);
    kiln_writer_put(w, 0, n_series);
    kiln_writer_put(w, 0, k->n_spans[KILN_ROLLUP_HOURS]);
    kiln_writer_put(w, 0, k->n_spans[KILN_ROLLUP_DAYS]);
    kiln_writer_put(w, 0, k->n_trees);
    kiln_writer_put(w, 0, k->n_written - k->last_group);
    for (uint32_t level = 0; level < KILN_N_ROLLUP_LEVELS; level++) {
        for (uint32_t i = 0; i < k->n_spans[level]; i++)
            put_span(k, &k->spans[level][i], i ? k->spans[level][i - 1].number : 0,
                     level == KILN_ROLLUP_HOURS ? 1 : 24);
    }
    for (uint32_t i = 0; i < k->n_trees; i++) {
        kiln_writer_put(w, 12, k->trees[i].span);
        kiln_writer_put(w, 12, k->trees[i].n_nodes);
        kiln_writer_put(w, 12, k->trees[i].error_bound);
    }
    w->n_entries = k->n_spans[KILN_ROLLUP_HOURS] + k->n_spans[KILN_ROLLUP_DAYS];
    kiln_writer_flush(w);
}

void kiln_rollup_write_group(struct kiln_rollup_work *k, bool is_like_last)
{
    if (!is_like_last) {
        put_functions(k);
        k->n_trees = put_trees(k);
        k->last_group = k->n_written;
        k->last_first_run = k->first_run;
        k->last_end_run = k->end_run;
        k->last_divisor = k->divisor;
        memcpy(k->last_n_spans, k->n_spans, sizeof(k->n_spans));
    }
    if (k->w->error)
        return;
    put_group(k);
    k->n_written++;
}

/* ---- names ---- */

void kiln_rollup_write_names(struct kiln_rollup_work *k)
{
    const struct kiln_rollup_naming *naming = &k->naming;
    uint32_t before = 0;

    kiln_writer_section(k->w, KILN_SECTION_ROLLUP_NAMES, k->service);
    for (uint32_t i = 0; i < naming->n && k->w->error == 0; i++) {
        kiln_writer_put(k->w, 0, naming->names[i].location - before);
        kiln_writer_put(k->w, 1, (uint64_t)naming->names[i].line << 1 | naming->lacks_symbols);
        kiln_writer_put(k->w, 2, naming->names[i].hash);
        before = naming->names[i].location;
        kiln_writer_entry(k->w);
    }
    kiln_writer_flush(k->w);
}

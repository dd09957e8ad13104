/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything a question wants, added up: a sum for each stack while the rows go by (store/scan.h),
 * and at the end of a source its forest, if one is needed.
 *
 * Means of levels take two runs: the first counts the profiles of each process, the second weighs
 * each profile by that.  The means of one stack in all sources are added before they are rounded,
 * and everything else is made of the rounded ones, so that it still adds up: all sources become one
 * profile (store/merge_profile.h) first.
 *
 * Where a source is whole, what it comes to is kept (store/ready.h), and found by the next
 * question.
 *
 * Sums wrap where they pass 64 bits; nothing real does.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"
#include "store/merge_int.h"
#include "store/merge_profile.h"
#include "store/merge_roll.h"
#include "store/merge_wide.h"
#include "store/ready.h"
#include "store/scan_int.h"

#define STACK_BYTES 8u /* of a question: its sum */

/* How many profiles a process has; a table by its hash. */
struct processes {
    struct kiln_budget budget;
    struct kiln_intern index;
    struct {
        uint64_t hash;
        uint64_t n;
    } * all;
    uint32_t n, cap;
};

struct run {
    struct kiln_scan *scan;
    const struct kiln_question *q;
    const struct kiln_merge_wants *wants;
    struct kiln_merging merging;
    struct kiln_merge_profile *profile; /* NULL: not wanted */
    struct kiln_merge_rolls rolls;
    struct kiln_merge_wide wide; /* if the scan is */
    struct processes processes;
    struct kiln_merge_sums_so_far so_far;
    int64_t nodes_bound, functions_bound;
    bool is_pruned;
    /* of the source at hand, by number of a stack less 1 */
    int64_t *sums;
    double *means; /* only of levels */
    double source_count;
    uint32_t n_stacks;
};

/* ---- processes ---- */

static int find_process(struct processes *p, const struct kiln_scan_profile *profile, uint32_t *ret)
{
    uint64_t hash;
    int r = kiln_scan_process(profile, &hash);

    if (r < 0)
        return r;
    for (struct kiln_probe probe = kiln_intern_probe(&p->index, hash);
         kiln_intern_next(&p->index, &probe);) {
        if (p->all[probe.entry].hash == hash) {
            *ret = probe.entry;
            return 0;
        }
    }
    r = kiln_grow(&p->budget, (void **)&p->all, &p->cap, (uint64_t)p->n + 1, sizeof(*p->all),
                  UINT32_MAX - 1);
    if (r == 0)
        r = kiln_intern_add(&p->index, &p->budget, hash, p->n);
    if (r < 0)
        return r;
    p->all[p->n].hash = hash;
    p->all[p->n].n = 0;
    *ret = p->n++;
    return 0;
}

static int count_profile(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct run *run = context;
    uint32_t i;
    int r = find_process(&run->processes, p, &i);

    (void)err;
    if (r == 0)
        run->processes.all[i].n++;
    return r;
}

static void forget_processes(void *context)
{
    struct run *run = context;
    struct processes *p = &run->processes;

    kiln_array_free(&p->budget, (void **)&p->all, &p->cap, sizeof(*p->all));
    kiln_intern_done(&p->index, &p->budget);
    p->n = 0;
}

/* ---- rows ---- */

static void drop_sums(struct run *run)
{
    kiln_free(run->sums);
    kiln_free(run->means);
    run->sums = NULL;
    run->means = NULL;
}

static int begin(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct run *run = context;

    (void)err;
    drop_sums(run);
    run->source_count = 0;
    run->n_stacks = source->n_stacks;
    run->sums = kiln_calloc((size_t)source->n_stacks + 1, sizeof(*run->sums));
    if (run->q->average)
        run->means = kiln_calloc((size_t)source->n_stacks + 1, sizeof(*run->means));
    return run->sums && (run->means || !run->q->average) ? 0 : -ENOMEM;
}

/* Adds the values times the scale to the sums of their stacks; their plain sum. */
static uint64_t add_values(uint64_t *restrict sums, const struct kiln_scan_run *rows,
                           uint64_t scale)
{
    const uint64_t *stacks = rows->stacks, *values = rows->values;
    uint64_t raw = 0;

    if (!values) {
        for (uint32_t i = 0; i < rows->n; i++)
            sums[stacks[i] - 1] += scale;
        return rows->n;
    }
    for (uint32_t i = 0; i < rows->n; i++) {
        raw += values[i];
        sums[stacks[i] - 1] += values[i] * scale;
    }
    return raw;
}

static int add_means(struct run *run, const struct kiln_scan_profile *p,
                     const struct kiln_scan_run *rows)
{
    uint64_t scale = (uint64_t)p->weight.scale;
    uint32_t process;
    double n;
    int r = find_process(&run->processes, p, &process);

    if (r < 0)
        return r;
    n = (double)run->processes.all[process].n;
    for (uint32_t i = 0; i < rows->n; i++) {
        uint64_t value = scale * (rows->values ? rows->values[i] : 1);

        run->means[rows->stacks[i] - 1] += (double)(int64_t)value / n;
    }
    return 0;
}

/* Observations behind the rows of a profile. */
static double count_rows(const struct kiln_scan_profile *p, const struct kiln_scan_run *rows,
                         int64_t raw, bool has_negative)
{
    double count = 0;

    if (rows->timed || !rows->values || p->weight.unit == 0)
        return rows->n;
    if (!has_negative)
        return (double)raw / p->weight.unit;
    for (uint32_t i = 0; i < rows->n; i++)
        count += kiln_weight_count(&p->weight, false, (int64_t)rows->values[i]);
    return count;
}

static bool has_negative(const struct kiln_scan_run *rows)
{
    uint64_t any = 0;

    for (uint32_t i = 0; rows->values && i < rows->n; i++)
        any |= rows->values[i];
    return any >> 63;
}

static int add_profile(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct run *run = context;
    int r = 0;

    (void)err;
    for (uint32_t i = 0; r == 0 && i < p->n_runs; i++) {
        const struct kiln_scan_run *rows = &p->runs[i];
        uint64_t raw;

        raw = add_values((uint64_t *)run->sums, rows, (uint64_t)p->weight.scale);
        run->source_count += count_rows(p, rows, (int64_t)raw, has_negative(rows));
        if (run->means)
            r = add_means(run, p, rows);
    }
    if (r == 0 && run->profile && p->n_runs)
        r = kiln_merge_profile_saw(run->profile, p);
    return r;
}

/* ---- sources ---- */

/* The stacks that have a sum; their numbers. */
static int list_stacks(const struct run *run, uint32_t **ret_stacks, uint32_t *ret_n)
{
    uint32_t *stacks, n = 0;

    for (uint32_t i = 0; i < run->n_stacks; i++)
        n += run->sums[i] != 0;
    stacks = kiln_malloc(((size_t)n + 1) * sizeof(*stacks));
    if (!stacks)
        return -ENOMEM;
    *ret_n = n;
    for (uint32_t i = 0, k = 0; i < run->n_stacks; i++) {
        if (run->sums[i])
            stacks[k++] = i + 1;
    }
    *ret_stacks = stacks;
    return 0;
}

/* Keeps what a source that is whole comes to.  Takes forest and sums over. */
static int add_whole(struct run *run, const struct kiln_scan_source *source, struct kiln_forest *f,
                     int64_t *sums)
{
    struct kiln_ready *ready;
    int r;

    kiln_merging_add_up(sums, f->n_stacks);
    r = kiln_ready_new(source, f, sums, &ready);
    if (r < 0) {
        kiln_forest_unref(f);
        return r;
    }
    ready->count = run->source_count;
    if (run->wants->functions)
        r = kiln_merging_list(&run->merging, f, sums, &ready->functions, &ready->n_functions);
    if (r < 0) {
        kiln_cached_unref(&ready->cached);
        kiln_forest_unref(f);
        return r;
    }
    kiln_ready_keep(&run->scan->store->cache, source, f, ready);
    return kiln_merging_add_ready(&run->merging, f, ready);
}

/* A source that was whole before. */
static int add_known(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct run *run = context;
    struct kiln_ready *ready;
    struct kiln_forest *f;
    uint32_t n;
    int r = kiln_scan_forest(run->scan, source, NULL, 0, &f, err);

    if (r < 0)
        return r;
    ready = kiln_ready_find(&run->scan->store->cache, source, f, run->wants->functions);
    if (!ready) {
        kiln_forest_unref(f);
        return 0;
    }
    n = f->n_stacks;
    r = kiln_scan_add_piece(run->scan, &ready->whole.piece);
    if (r < 0) {
        kiln_forest_unref(f);
        kiln_cached_unref(&ready->cached);
        return r;
    }
    run->so_far.count += ready->count;
    run->so_far.total = (int64_t)((uint64_t)run->so_far.total + (uint64_t)ready->upto[n]);
    r = kiln_merging_add_ready(&run->merging, f, ready);
    return r < 0 ? r : 1;
}

/* The sums in the order of ranks. */
static int add_by_rank(struct run *run, const struct kiln_scan_source *source,
                       struct kiln_forest *f, const uint32_t *stacks, uint32_t n)
{
    uint64_t *by_rank = kiln_calloc((size_t)f->n_stacks + 1, sizeof(*by_rank));

    if (!by_rank) {
        kiln_forest_unref(f);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        by_rank[f->rank[i]] += (uint64_t)run->sums[stacks ? stacks[i] - 1 : i];
    if (!run->profile) { /* nobody else asks for them */
        kiln_free(run->sums);
        run->sums = NULL;
    }
    return source && source->whole ? add_whole(run, source, f, (int64_t *)by_rank)
                                   : kiln_merging_add(&run->merging, f, (int64_t *)by_rank);
}

static int add_forest(struct run *run, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct kiln_forest *forest;
    uint32_t *stacks = NULL, n = run->n_stacks;
    int r = 0;

    if (source->head)
        r = list_stacks(run, &stacks, &n);
    if (r == 0)
        r = kiln_scan_forest(run->scan, source, stacks, n, &forest, err);
    if (r == 0)
        r = add_by_rank(run, source, forest, stacks, n);
    kiln_free(stacks);
    return r;
}

static int end(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct run *run = context;
    const struct kiln_merge_sums sums = {run->sums, run->means, run->n_stacks};
    uint64_t total = 0;
    bool any = false;
    int r = 0;

    for (uint32_t i = 0; i < run->n_stacks; i++) {
        total += (uint64_t)run->sums[i];
        any |= run->sums[i] != 0;
    }
    run->so_far.total = (int64_t)((uint64_t)run->so_far.total + total);
    run->so_far.count += run->source_count;
    if (any && !run->means && (run->wants->nodes_max || run->wants->functions))
        r = add_forest(run, source, err);
    if (r == 0 && run->scan->is_wide)
        r = kiln_merge_wide_added(&run->wide);
    if (r == 0 && run->profile && (any || run->means))
        r = kiln_merge_profile_add(run->profile, source, &sums, err);
    drop_sums(run);
    return r;
}

static int add_rolled(void *context, const struct kiln_scan_rolled *rolled, struct kiln_err *err)
{
    struct run *run = context;
    int r = kiln_merge_roll(&run->rolls, rolled);

    (void)err;
    if (r == 0 && run->scan->is_wide && kiln_merge_wide_added(&run->wide) < 0)
        r = -ECANCELED; /* rows in its place would not help: run->wide.error says why */
    return r;
}

static int begin_block(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct run *run = context;

    return kiln_merge_wide_begin_block(&run->wide, run->scan, source, err);
}

static int end_block(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct run *run = context;

    return kiln_merge_wide_end_block(&run->wide, source, err);
}

static void begin_rolls(struct run *run, struct kiln_store *store)
{
    kiln_merge_rolls_init(&run->rolls, &run->merging);
    run->rolls.store = store;
    run->rolls.q = run->q;
    run->rolls.nodes_max = run->wants->nodes_max;
    run->rolls.functions = run->wants->functions;
}

/* Summaries have both, whatever is asked for now. */
static void begin_wide(struct run *run)
{
    run->wide.store = run->scan->store;
    run->wide.m = &run->merging;
    run->wide.rolls = &run->rolls;
    run->wide.sums = &run->so_far;
    kiln_merge_wide_begin(&run->wide, run->scan->wide_bytes);
    run->rolls.nodes_max = run->wide.nodes_max;
    run->rolls.functions = true;
}

static void restart(void *context)
{
    struct run *run = context;

    drop_sums(run);
    kiln_merging_done(&run->merging);
    kiln_merge_rolls_restart(&run->rolls);
    if (run->scan->is_wide)
        kiln_merge_wide_restart(&run->wide);
    run->so_far = (struct kiln_merge_sums_so_far){0};
    if (run->profile)
        kiln_merge_profile_restart(run->profile);
}

/* ---- the answer ---- */

/* All that was added is in the merge then. */
static int finish_sources(struct run *run)
{
    int64_t sum = 0;
    double count = 0;
    int r;

    if (run->scan->is_wide) {
        r = kiln_merge_wide_finish(&run->wide, &run->nodes_bound, &run->functions_bound,
                                   &run->is_pruned);
    } else {
        r = kiln_merge_rolls_finish(&run->rolls);
        run->nodes_bound = run->rolls.error_bound;
        sum = run->rolls.sum;
        count = run->rolls.count;
    }
    run->so_far.total = (int64_t)((uint64_t)run->so_far.total + (uint64_t)sum);
    run->so_far.count += count;
    return r;
}

static int scan_all(struct run *run, struct kiln_basis *basis, struct kiln_err *err)
{
    const struct kiln_scan_visitor counting = {
        .context = run, .profile = count_profile, .restart = forget_processes};
    struct kiln_scan_visitor adding = {.context = run,
                                       .begin = begin,
                                       .profile = add_profile,
                                       .end = end,
                                       .restart = restart,
                                       .rolled = add_rolled,
                                       .no_trees = run->wants->nodes_max == 0};
    int r = 0;

    /* Others want rows, or no forest. */
    if (!run->profile && (run->wants->nodes_max || run->wants->functions))
        adding.known = add_known;
    if (run->scan->is_wide) {
        adding.known = NULL;
        adding.begin_block = begin_block;
        adding.end_block = end_block;
        adding.no_trees = false;
    }
    if (run->q->average)
        r = kiln_scan_run(run->scan, &counting, NULL, err);
    if (r == 0)
        r = kiln_scan_run(run->scan, &adding, basis, err);
    if (run->wide.error)
        r = run->wide.error;
    if (r == 0)
        r = finish_sources(run);
    basis->count = run->so_far.count;
    return r;
}

/* The one profile of means as the only source. */
static int add_means_profile(struct run *run, struct kiln_batch *batch)
{
    struct kiln_forest_place place = {run->scan->store, NULL, &run->scan->fund, NULL, false};
    struct kiln_head_stacks list = {.batch = batch, .n = batch->dict.n_stacks};
    struct kiln_forest *forest;
    int r = kiln_forest_of_head(&place, &list, &forest);

    if (r < 0)
        return r;
    run->sums = kiln_calloc((size_t)list.n + 1, sizeof(*run->sums));
    if (!run->sums) {
        kiln_forest_unref(forest);
        return -ENOMEM;
    }
    run->so_far.total = 0;
    for (uint32_t i = 0; i < batch->n_samples; i++) {
        const struct kiln_sample *s = &batch->samples[i];

        run->sums[s->stack] = kiln_sample_total(batch, s);
        run->so_far.total = (int64_t)((uint64_t)run->so_far.total + (uint64_t)run->sums[s->stack]);
    }
    return add_by_rank(run, NULL, forest, NULL, list.n);
}

/* Means are of whole sums, profiles of whole stacks: neither can be pruned. */
static bool may_be_wide(const struct run *run)
{
    const struct kiln_merge_wants *wants = run->wants;

    return !run->q->average && !wants->profile && !wants->exact &&
           (wants->nodes_max || wants->functions);
}

static int reserve(struct run *run, bool is_wide, struct kiln_err *err)
{
    const struct kiln_merge_wants *wants = run->wants;
    const struct kiln_scan_needs needs = {.bytes_a_stack = STACK_BYTES,
                                          .forests = wants->nodes_max || wants->functions ||
                                                     wants->profile,
                                          .nodes_max = wants->nodes_max,
                                          .may_be_wide = may_be_wide(run),
                                          .is_wide = is_wide};
    int r = kiln_scan_reserve(run->scan, &needs, err);

    if (r == 0 && run->scan->is_wide)
        begin_wide(run);
    return r;
}

static void set_bounds(const struct run *run, struct kiln_flame *flame)
{
    if (!run->nodes_bound && !run->functions_bound)
        return;
    flame->error_bound = run->nodes_bound;
    flame->functions_bound = run->functions_bound;
    flame->nodes_all = 0;
}

static int answer(struct run *run, bool is_wide, struct kiln_merged *merged, struct kiln_err *err)
{
    const struct kiln_merge_wants *wants = run->wants;
    int r;

    /* Functions are exact there. */
    run->scan->rolls = !wants->profile && !(wants->exact && wants->nodes_max);
    r = reserve(run, is_wide, err);
    if (r == 0 && (wants->profile || run->q->average))
        r = kiln_merge_profile_new(run->scan, run->q, &run->profile, err);
    if (r == 0)
        r = scan_all(run, &merged->basis, err);
    if (r == 0 && run->profile)
        r = kiln_merge_profile_finish(run->profile, &merged->basis, &merged->profile, err);
    if (r == 0 && run->q->average && run->q->n_tenants)
        r = add_means_profile(run, merged->profile);
    if (r == 0 && (wants->nodes_max || wants->functions))
        r = kiln_merging_flame(&run->merging, wants->nodes_max, wants->functions, &merged->flame);
    if (r == 0 && merged->flame)
        set_bounds(run, merged->flame);
    if (!wants->profile) {
        kiln_batch_unref(merged->profile);
        merged->profile = NULL;
    }
    merged->total = run->so_far.total;
    return r;
}

static int merge(struct kiln_store *store, const struct kiln_question *question,
                 const struct kiln_merge_wants *wants, bool is_wide,
                 struct kiln_merged **ret_merged, bool *ret_too_large, struct kiln_err *err)
{
    struct run run = {
        .q = question,
        .wants = wants,
        .merging = {.budget = {.limit = SIZE_MAX}},
        .processes = {.budget = {.limit = SIZE_MAX}},
    };
    struct kiln_merged *merged = kiln_calloc(1, sizeof(*merged));
    int r = merged ? 0 : -ENOMEM;

    begin_rolls(&run, store);
    if (r == 0)
        r = kiln_scan_open(store, question, 0, &run.scan, err);
    if (r == 0) {
        run.merging.fund = &run.scan->fund;
        r = answer(&run, is_wide, merged, err);
        *ret_too_large = r == KILN_E_LIMIT && may_be_wide(&run) && !run.scan->is_wide;
    }
    drop_sums(&run);
    forget_processes(&run);
    kiln_merging_done(&run.merging);
    kiln_merge_rolls_done(&run.rolls);
    kiln_merge_wide_done(&run.wide);
    kiln_merge_profile_free(run.profile);
    kiln_scan_close(run.scan);
    if (r < 0)
        kiln_merged_free(merged);
    else
        *ret_merged = merged;
    return r;
}

/* Not what it may read, nor what others have just now. */
static bool lacked_memory(const struct kiln_leash *leash)
{
    return !leash->was_short && (!leash->bytes_max || leash->bytes_read < leash->bytes_max);
}

int kiln_store_merge(struct kiln_engine *engine, const struct kiln_question *question,
                     const struct kiln_merge_wants *wants, struct kiln_merged **ret_merged,
                     struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    bool too_large = false;
    int r = merge(store, question, wants, kiln_wide_limits.always, ret_merged, &too_large, err);

    /* Estimates may be wrong. */
    if (too_large && lacked_memory(question->leash)) {
        if (err)
            *err = (struct kiln_err){0};
        r = merge(store, question, wants, true, ret_merged, &too_large, err);
    }
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}

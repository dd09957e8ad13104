/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples one by one, as a batch.  The rows go by twice.  The first time each row with a time draws
 * a number, made of its time and its place; where there are more than are wanted, those with the
 * smallest numbers stay, wherever in time they lie.  The second time these are kept, with their
 * threads, and at the end of a source their stacks are carried into one builder.
 *
 * Every process becomes a resource with one profile; samples keep of their attributes what says
 * which thread they are of, as thread.id and thread.name.  Values are in the unit of the type.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sat.h"
#include "core/timed.h"
#include "store/carry.h"
#include "store/fund.h"
#include "store/scan_int.h"

#define LIMIT_DEFAULT 20000u
#define WANTED        UINT32_MAX /* a stack that is not carried yet */

struct moment {
    uint64_t time_ns;
    int64_t value;
    uint32_t stack; /* of the source, less 1; then of the builder */
    uint32_t thread;
};

struct thread {
    struct thread_key {
        uint64_t process;
        uint32_t id, name; /* texts */
    } key;
    uint32_t set; /* of the builder, and one; 0: not made yet */
    uint32_t pad;
};

struct run {
    struct kiln_scan *scan;
    const struct kiln_question *q;
    struct kiln_fund fund;
    struct kiln_builder *b;
    struct kiln_limits limits;
    uint32_t limit;
    /* the first time */
    uint64_t n_all, n_timed;
    double count;
    uint64_t *drawn; /* the smallest so far, and some */
    uint32_t n_drawn, cap_drawn;
    /* the second time */
    uint64_t most; /* that may stay */
    uint64_t n_seen;
    struct moment *moments;
    uint32_t n, cap, first; /* `first` of the source at hand */
    struct kiln_fund_table threads;
    struct kiln_fund_texts texts;
    uint32_t *carried; /* by stack of the source at hand */
    size_t charged;    /* for the builder */
};

/* ---- drawing ---- */

/* Any mixing does; the same rows draw the same numbers. */
static uint64_t draw(uint64_t time_ns, uint64_t place)
{
    uint64_t x = time_ns + place * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static int compare_drawn(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Forgets all but the smallest. */
static void cut_drawn(struct run *run)
{
    if (run->n_drawn <= run->limit)
        return;
    qsort(run->drawn, run->n_drawn, sizeof(*run->drawn), compare_drawn);
    run->n_drawn = run->limit;
    run->most = run->drawn[run->limit - 1];
}

static int offer(struct run *run, uint64_t number)
{
    int r;

    if (number > run->most)
        return 0;
    if (run->n_drawn == 2 * run->limit)
        cut_drawn(run);
    r = kiln_fund_grow(&run->fund, (void **)&run->drawn, &run->cap_drawn,
                       (uint64_t)run->n_drawn + 1, sizeof(*run->drawn));
    if (r == 0)
        run->drawn[run->n_drawn++] = number;
    return r;
}

static int count_profile(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct run *run = context;
    int r = 0;

    (void)err;
    for (uint32_t k = 0; k < p->n_runs; k++) {
        const struct kiln_scan_run *rows = &p->runs[k];

        run->n_all += rows->n;
        for (uint32_t i = 0; i < rows->n; i++)
            run->count += kiln_weight_count(&p->weight, rows->timed,
                                            rows->values ? (int64_t)rows->values[i] : 1);
        for (uint32_t i = 0; r == 0 && rows->times && i < rows->n; i++)
            r = offer(run, draw(rows->times[i], run->n_timed++));
    }
    return r;
}

static void forget_count(void *context)
{
    struct run *run = context;

    run->n_all = run->n_timed = 0;
    run->count = 0;
    run->n_drawn = 0;
    run->most = UINT64_MAX;
}

/* ---- keeping ---- */

static int find_text(struct run *run, const struct kiln_scan_profile *p, uint64_t attrs,
                     const struct kiln_str *keys, uint32_t *ret)
{
    char scratch[KILN_MEANING_SCRATCH];
    struct kiln_str text = KILN_STR("");

    for (uint32_t i = 0; text.len == 0 && i < KILN_THREAD_KEYS; i++)
        text = kiln_scan_label(p, keys[i], attrs, scratch);
    return kiln_fund_texts_get(&run->texts, &run->fund, text, ret);
}

static int find_thread(struct run *run, const struct kiln_scan_profile *p, uint64_t attrs,
                       uint32_t *ret)
{
    struct thread_key key = {0};
    int r = kiln_scan_process(p, &key.process);

    if (r == 0)
        r = find_text(run, p, attrs, kiln_thread_id_keys, &key.id);
    if (r == 0)
        r = find_text(run, p, attrs, kiln_thread_name_keys, &key.name);
    return r < 0 ? r : kiln_fund_table_get(&run->threads, &run->fund, &key, ret);
}

static int keep_rows(struct run *run, const struct kiln_scan_profile *p,
                     const struct kiln_scan_run *rows)
{
    uint64_t attrs = UINT64_MAX;
    uint32_t thread = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < rows->n; i++) {
        int64_t raw = rows->values ? (int64_t)rows->values[i] : 1;

        if (draw(rows->times[i], run->n_seen++) > run->most || run->n == run->limit)
            continue;
        if (rows->attrs[i] != attrs) {
            attrs = rows->attrs[i];
            r = find_thread(run, p, attrs, &thread);
        }
        if (r == 0)
            r = kiln_fund_grow(&run->fund, (void **)&run->moments, &run->cap, (uint64_t)run->n + 1,
                               sizeof(*run->moments));
        if (r == 0)
            run->moments[run->n++] = (struct moment){.time_ns = rows->times[i],
                                                     .value = kiln_sat_mul(raw, p->weight.scale),
                                                     .stack = (uint32_t)rows->stacks[i] - 1,
                                                     .thread = thread};
    }
    return r;
}

static int keep_profile(void *context, const struct kiln_scan_profile *p, struct kiln_err *err)
{
    struct run *run = context;
    int r = 0;

    (void)err;
    for (uint32_t k = 0; r == 0 && k < p->n_runs; k++) {
        if (p->runs[k].times)
            r = keep_rows(run, p, &p->runs[k]);
    }
    return r;
}

static void forget_kept(void *context)
{
    struct run *run = context;

    run->n = run->first = 0;
    run->n_seen = 0;
}

/* ---- stacks ---- */

static int begin(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct run *run = context;

    (void)source;
    (void)err;
    run->first = run->n;
    return 0;
}

static bool wants_stack(void *context, uint32_t stack)
{
    const struct run *run = context;

    return run->carried[stack] == WANTED;
}

static int take_stack(void *context, uint32_t stack, uint32_t carried)
{
    struct run *run = context;

    run->carried[stack] = carried;
    return kiln_builder_error(run->b);
}

/* What the builder has come to is the question's. */
static int charge(struct run *run)
{
    size_t bytes = kiln_batch_bytes(kiln_builder_peek(run->b));
    int r;

    if (bytes <= run->charged)
        return 0;
    r = kiln_fund_take(&run->fund, bytes - run->charged);
    run->charged = bytes;
    return r;
}

static int end(void *context, const struct kiln_scan_source *source, struct kiln_err *err)
{
    struct run *run = context;
    const struct kiln_carrier carrier = {
        .scan = run->scan, .b = run->b, .context = run, .wants = wants_stack, .take = take_stack};
    int r;

    if (run->n == run->first)
        return 0;
    run->carried = kiln_calloc((size_t)source->n_stacks + 1, sizeof(*run->carried));
    if (!run->carried)
        return -ENOMEM;
    for (uint32_t i = run->first; i < run->n; i++)
        run->carried[run->moments[i].stack] = WANTED;
    r = kiln_carry_stacks(&carrier, source, source->n_stacks, err);
    for (uint32_t i = run->first; r == 0 && i < run->n; i++)
        run->moments[i].stack = run->carried[run->moments[i].stack];
    run->first = run->n;
    kiln_free(run->carried);
    run->carried = NULL;
    return r < 0 ? r : charge(run);
}

/* ---- the batch ---- */

static struct kiln_value_type named(struct kiln_builder *b, struct kiln_str type,
                                    struct kiln_str unit)
{
    return (struct kiln_value_type){kiln_builder_string(b, type), kiln_builder_string(b, unit)};
}

static const struct thread *thread_at(const struct run *run, uint32_t thread)
{
    return (const struct thread *)run->threads.all + thread;
}

static int compare_moments(const void *a, const void *b, void *context)
{
    const struct moment *x = a, *y = b;
    uint64_t p = thread_at(context, x->thread)->key.process;
    uint64_t q = thread_at(context, y->thread)->key.process;

    if (p != q)
        return p < q ? -1 : 1;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static uint32_t open_profile(struct run *run, const struct kiln_basis *basis)
{
    struct kiln_profile head = {.time_ns = basis->min_ns, .duration_ns = basis->covered_ns};
    struct kiln_str id = run->q->type, parts[5] = {{0}};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(parts) && id.ptr; i++)
        parts[i] = kiln_str_cut(&id, ':');
    head.sample_type = named(run->b, parts[1], parts[2]);
    head.period_type = named(run->b, parts[3], parts[4]);
    kiln_builder_add_resource(run->b, &(struct kiln_resource){0});
    kiln_builder_add_scope(run->b, &(struct kiln_scope){0});
    return kiln_builder_add_profile(run->b, &head);
}

static uint32_t set_of(struct run *run, uint32_t number)
{
    struct thread *thread = (struct thread *)run->threads.all + number;
    uint32_t attrs[2], n = 0;

    if (thread->set)
        return thread->set - 1;
    if (run->texts.all[thread->key.id].len)
        attrs[n++] =
            kiln_builder_text_attr(run->b, kiln_thread_id_keys[0], run->texts.all[thread->key.id]);
    if (run->texts.all[thread->key.name].len)
        attrs[n++] = kiln_builder_text_attr(run->b, kiln_thread_name_keys[0],
                                            run->texts.all[thread->key.name]);
    thread->set = kiln_builder_set(run->b, attrs, n, NULL) + 1;
    return thread->set - 1;
}

static int build(struct run *run, const struct kiln_basis *basis, struct kiln_batch **ret_batch,
                 struct kiln_err *err)
{
    struct kiln_builder *b = run->b;
    uint32_t profile = 0;

    if (run->n)
        qsort_r(run->moments, run->n, sizeof(*run->moments), compare_moments, run);
    for (uint32_t i = 0; i < run->n; i++) {
        const struct moment *m = &run->moments[i];

        if (i == 0 ||
            thread_at(run, m->thread)->key.process != thread_at(run, m[-1].thread)->key.process)
            profile = open_profile(run, basis);
        kiln_builder_add_sample(b, profile, m->stack, set_of(run, m->thread), 0, &m->value,
                                &m->time_ns, 1);
    }
    run->b = NULL;
    return kiln_builder_finish(b, ret_batch, err);
}

/* ---- the answer ---- */

static int answer(struct run *run, struct kiln_moments *moments, struct kiln_err *err)
{
    const struct kiln_scan_visitor counting = {
        .context = run, .profile = count_profile, .restart = forget_count};
    const struct kiln_scan_visitor keeping = {.context = run,
                                              .begin = begin,
                                              .profile = keep_profile,
                                              .end = end,
                                              .restart = forget_kept};
    const struct kiln_scan_needs needs = {.bytes_a_stack = sizeof(*run->carried), .forests = true};
    int r = kiln_scan_reserve(run->scan, &needs, err);

    if (r == 0)
        r = kiln_scan_run(run->scan, &counting, &moments->basis, err);
    if (r < 0)
        return r;
    cut_drawn(run);
    if (run->n_timed)
        r = kiln_scan_run(run->scan, &keeping, NULL, err);
    if (r == 0)
        r = build(run, &moments->basis, &moments->batch, err);
    moments->n_all = run->n_all;
    moments->n_timed = run->n_timed;
    moments->basis.count = run->count;
    return r;
}

static int run_init(struct run *run, const struct kiln_question *question,
                    const struct kiln_moments_opts *opts)
{
    *run = (struct run){.q = question,
                        .limit = opts->limit ? opts->limit : LIMIT_DEFAULT,
                        .limits = kiln_limits_default,
                        .most = UINT64_MAX};
    if (question->leash->memory_max)
        run->limits.memory_bytes = question->leash->memory_max;
    kiln_fund_init(&run->fund, question->leash);
    kiln_fund_table_init(&run->threads, sizeof(struct thread_key), sizeof(struct thread));
    kiln_fund_texts_init(&run->texts, &run->fund);
    return kiln_builder_new(&run->limits, &run->b);
}

static void run_done(struct run *run)
{
    kiln_builder_free(run->b);
    kiln_free(run->carried);
    kiln_array_free(&run->fund.budget, (void **)&run->drawn, &run->cap_drawn, sizeof(*run->drawn));
    kiln_array_free(&run->fund.budget, (void **)&run->moments, &run->cap, sizeof(*run->moments));
    kiln_fund_table_done(&run->threads, &run->fund);
    kiln_fund_texts_done(&run->texts, &run->fund);
    kiln_fund_done(&run->fund);
}

int kiln_store_moments(struct kiln_engine *engine, const struct kiln_question *question,
                       const struct kiln_moments_opts *opts, struct kiln_moments **ret_moments,
                       struct kiln_err *err)
{
    struct kiln_moments *moments = kiln_calloc(1, sizeof(*moments));
    struct run run;
    int r = run_init(&run, question, opts);

    if (!moments)
        r = -ENOMEM;
    if (r == 0)
        r = kiln_scan_open(kiln_store_of(engine), question, KILN_SCAN_TIMES | KILN_SCAN_ATTRS,
                           &run.scan, err);
    if (r == 0)
        r = answer(&run, moments, err);
    kiln_scan_close(run.scan);
    run_done(&run);
    if (r < 0) {
        kiln_moments_free(moments);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_moments = moments;
    return 0;
}

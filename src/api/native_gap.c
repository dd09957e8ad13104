/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/gap: what each function spends between its wall-clock time and its CPU time, and on
 * what it waits.
 *
 * One question for the CPU time, one for each reason to wait (which are asked for first), all on
 * one leash; their functions are joined by name.  Every wait has one state and one reason, so that
 * the totals of functions add up over them.  Wall-clock time is the sum, but where a service sent
 * its own: then it is asked for too.
 *
 * Whoever waits does so in the kernel, beneath the same few functions of it (do_syscall_64): with
 * what they call, these would stand before all that says who waits, and for what is told by the
 * reason.  So they are left out, unless functions are asked for by themselves, or there is nothing
 * else.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/native_int.h"
#include "base/sat.h"
#include "store/fund.h"

#define STATE    KILN_STR("thread.state")
#define REASON   KILN_STR("wait.reason")
#define RUNNABLE KILN_STR("runnable")

enum { GROUPS_MAX = 24 };

/* What an amount of time is. */
enum column { WALL, CPU, BLOCKED, RUNNING_LATE, COLUMNS };
static const char *const column_names[COLUMNS] = {"wall", "cpu", "blocked", "runnable"};

struct function {
    struct kiln_flame_name name;
    int64_t self[COLUMNS], total[COLUMNS];
    int64_t reasons[GROUPS_MAX]; /* of its total */
};

struct gap {
    struct kiln_native_call *call;
    struct kiln_ask *first; /* whose leash it is */
    struct kiln_fund fund;
    struct kiln_fund_texts texts;  /* names of functions, parallel to `rows` */
    struct kiln_fund_texts places; /* files, modules, kinds; reasons */
    struct function *rows;
    uint32_t n, cap;
    uint32_t n_kernel; /* of these, which are the last and left out */
    struct function overall;
    struct kiln_str reasons[GROUPS_MAX];
    uint32_t n_reasons;
    struct kiln_basis basis;
    bool by_self;
};

/* ---- joining ---- */

static int keep_text(struct gap *g, struct kiln_str text, struct kiln_str *ret)
{
    uint32_t number;
    int r = kiln_fund_texts_get(&g->places, &g->fund, text, &number);

    if (r == 0)
        *ret = g->places.all[number];
    return r;
}

static int copy_name(struct gap *g, const struct kiln_flame_name *from, struct kiln_flame_name *to)
{
    int r = keep_text(g, from->file, &to->file);

    if (r == 0)
        r = keep_text(g, from->module, &to->module);
    return r < 0 ? r : keep_text(g, from->kind, &to->kind);
}

static int row_of(struct gap *g, const struct kiln_flame_name *name, struct function **ret)
{
    uint32_t number;
    int r = kiln_fund_texts_get(&g->texts, &g->fund, name->name, &number);

    if (r == 0 && number == g->n) {
        r = kiln_fund_grow(&g->fund, (void **)&g->rows, &g->cap, (uint64_t)g->n + 1,
                           sizeof(*g->rows));
        if (r == 0) {
            g->rows[number] = (struct function){0};
            r = copy_name(g, name, &g->rows[number].name);
        }
        g->n += r == 0;
    }
    if (r == 0)
        *ret = &g->rows[number];
    return r;
}

static void add_basis(struct kiln_basis *to, const struct kiln_basis *from)
{
    to->n_profiles += from->n_profiles;
    to->n_unsure += from->n_unsure;
    to->count += from->count;
    if (from->max_ns && (!to->max_ns || from->min_ns < to->min_ns))
        to->min_ns = from->min_ns;
    to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
    to->covered_ns = from->covered_ns > to->covered_ns ? from->covered_ns : to->covered_ns;
    to->n_blocks = from->n_blocks > to->n_blocks ? from->n_blocks : to->n_blocks;
    to->n_rolled = from->n_rolled > to->n_rolled ? from->n_rolled : to->n_rolled;
    to->n_damaged = from->n_damaged > to->n_damaged ? from->n_damaged : to->n_damaged;
    to->n_time_set += from->n_time_set;
}

/* What the answer to a question counts as. */
struct share {
    enum column column;
    uint32_t reason; /* of BLOCKED; GROUPS_MAX: none */
};

static void add_to(struct function *f, const struct share *share, int64_t self, int64_t total)
{
    f->self[share->column] = kiln_sat_add(f->self[share->column], self);
    f->total[share->column] = kiln_sat_add(f->total[share->column], total);
    if (share->reason < GROUPS_MAX)
        f->reasons[share->reason] = kiln_sat_add(f->reasons[share->reason], total);
}

static int join(struct gap *g, const struct kiln_merged *merged, const struct share *share)
{
    const struct kiln_flame *flame = merged->flame;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < flame->n_functions; i++) {
        const struct kiln_flame_function *f = &flame->functions[i];
        struct function *row;

        r = row_of(g, &flame->names[f->name], &row);
        if (r == 0)
            add_to(row, share, f->self, f->total);
    }
    add_to(&g->overall, share, 0, merged->total);
    return r;
}

/* ---- asking ---- */

static int open_ask(struct gap *g, struct kiln_ask **ret_ask)
{
    const struct kiln_native_wish wish = {.type = kiln_type_wall.id, .type_wins = true};
    int r = kiln_native_ask(g->call, &wish, ret_ask);

    if (r == 0 && g->first)
        kiln_native_share(g->first, *ret_ask);
    return r;
}

/* The same for one part, whoever has the whole. */
static int open_part(struct gap *g, const struct kiln_str *part, struct kiln_ask **ret_ask)
{
    int r = open_ask(g, ret_ask);

    if (r < 0)
        return r;
    (*ret_ask)->question.parts = part;
    (*ret_ask)->question.n_parts = 1;
    (*ret_ask)->question.n_whole = 0;
    return 0;
}

static int merge_ask(struct gap *g, struct kiln_ask *ask, const struct share *share)
{
    const struct kiln_merge_wants wants = {.functions = true, .exact = g->call->args.exact};
    struct kiln_merged *merged;
    int r = kiln_ask_merge(ask, &wants, &merged, &g->call->err);

    if (r < 0)
        return r;
    r = join(g, merged, share);
    if (share->column == CPU)
        add_basis(&g->basis, &merged->basis);
    kiln_merged_free(merged);
    return r;
}

static int merge_cpu(struct gap *g)
{
    const struct share share = {.column = CPU, .reason = GROUPS_MAX};
    struct kiln_ask *ask;
    int r = open_part(g, &kiln_type_wall.parts[0], &ask);

    if (r < 0)
        return r;
    r = merge_ask(g, ask, &share);
    kiln_native_close(g->call, ask);
    return r;
}

static int add_matchers(struct kiln_ask *ask, struct kiln_str state, struct kiln_str reason)
{
    struct kiln_question *q = &ask->question;
    struct kiln_matcher *all =
        kiln_arena_alloc(&ask->arena, ((size_t)q->n_matchers + 2) * sizeof(*all));

    if (!all)
        return -ENOMEM;
    if (q->n_matchers)
        memcpy(all, q->matchers, q->n_matchers * sizeof(*all));
    all[q->n_matchers] = (struct kiln_matcher){.name = STATE, .value = state};
    all[q->n_matchers + 1] = (struct kiln_matcher){.name = REASON, .value = reason};
    q->matchers = all;
    q->n_matchers += 2;
    return 0;
}

/* The number of a reason, which is kept at its first wait; there is room for all. */
static int reason_of(struct gap *g, struct kiln_str reason, uint32_t *ret)
{
    uint32_t i = 0;

    while (i < g->n_reasons && !kiln_str_eq(g->reasons[i], reason))
        i++;
    *ret = i;
    if (i < g->n_reasons)
        return 0;
    return keep_text(g, reason, &g->reasons[g->n_reasons++]);
}

/* Waits of one state and reason. */
static int merge_group(struct gap *g, struct kiln_str state, struct kiln_str reason)
{
    struct share share = {.column = RUNNING_LATE, .reason = GROUPS_MAX};
    struct kiln_ask *ask;
    int r = 0;

    if (!kiln_str_eq(state, RUNNABLE)) {
        share.column = BLOCKED;
        r = reason_of(g, reason, &share.reason);
    }
    if (r == 0)
        r = open_part(g, &kiln_type_wall.parts[1], &ask);
    if (r < 0)
        return r;
    r = add_matchers(ask, state, reason);
    if (r == 0)
        r = merge_ask(g, ask, &share);
    kiln_native_close(g->call, ask);
    return r;
}

/* Which states and reasons there are; those with the most time, where there are very many. */
static int ask_groups(struct gap *g, struct kiln_timeline **ret)
{
    const struct kiln_native_args *args = &g->call->args;
    const struct kiln_str by[] = {STATE, REASON};
    const struct kiln_timeline_opts opts = {
        .step_ns = args->until_ns - args->from_ns, .by = by, .n_by = 2, .limit = GROUPS_MAX};
    struct kiln_ask *ask;
    int r = open_part(g, &kiln_type_wall.parts[1], &ask);

    if (r < 0)
        return r;
    r = kiln_ask_timeline(ask, &opts, ret, &g->call->err);
    kiln_native_close(g->call, ask);
    return r;
}

static int by_sum(const void *a, const void *b)
{
    const struct kiln_timeline_series *x = a, *y = b;

    return (x->sum < y->sum) - (x->sum > y->sum);
}

static int add_waits(struct gap *g)
{
    struct kiln_timeline *groups;
    int r = ask_groups(g, &groups);

    if (r < 0)
        return r;
    add_basis(&g->basis, &groups->basis);
    if (groups->n_series)
        qsort(groups->series, groups->n_series, sizeof(*groups->series), by_sum);
    for (uint32_t i = 0; r == 0 && i < groups->n_series; i++)
        r = merge_group(g, groups->series[i].labels[0], groups->series[i].labels[1]);
    if (groups->n_dropped)
        kiln_native_note(g->call, "reasons_cut",
                         "%u more reasons to wait are left out: samples have too many of them",
                         groups->n_dropped);
    else if (groups->n_series == 0)
        kiln_native_note(g->call, "no_waits",
                         "nothing is known of waits: there is no off_cpu of "
                         "this selection (kiln agent --off-cpu on)");
    kiln_timeline_free(groups);
    return r;
}

/* ---- what follows from it ---- */

static void sum_up(struct function *f)
{
    for (enum column c = CPU; c < COLUMNS; c++) {
        f->self[WALL] = kiln_sat_add(f->self[WALL], f->self[c]);
        f->total[WALL] = kiln_sat_add(f->total[WALL], f->total[c]);
    }
}

static int add_wall(struct gap *g)
{
    if (g->first->question.n_whole)
        return merge_ask(g, g->first, &(struct share){.column = WALL, .reason = GROUPS_MAX});
    for (uint32_t i = 0; i < g->n; i++)
        sum_up(&g->rows[i]);
    sum_up(&g->overall);
    return 0;
}

static bool is_kernel(const struct function *f)
{
    return kiln_str_eq(f->name.kind, KILN_STR("kernel"));
}

static int compare_gaps(const void *a, const void *b, void *context)
{
    const struct function *x = a, *y = b;
    const struct gap *g = context;
    const int64_t *u = g->by_self ? x->self : x->total, *v = g->by_self ? y->self : y->total;
    int64_t p = u[WALL] - u[CPU], q = v[WALL] - v[CPU];

    if (!g->by_self && is_kernel(x) != is_kernel(y))
        return is_kernel(x) ? 1 : -1;
    if (p != q)
        return p < q ? 1 : -1;
    if (u[WALL] != v[WALL])
        return u[WALL] < v[WALL] ? 1 : -1;
    return kiln_str_cmp(x->name.name, y->name.name);
}

static int gather(struct gap *g)
{
    int r = merge_cpu(g);

    if (r == 0)
        r = add_waits(g);
    if (r == 0)
        r = add_wall(g);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < g->n; i++)
        g->rows[i].name.name = g->texts.all[i];
    if (g->n)
        qsort_r(g->rows, g->n, sizeof(*g->rows), compare_gaps, g);
    while (!g->by_self && g->n_kernel < g->n && is_kernel(&g->rows[g->n - 1 - g->n_kernel]))
        g->n_kernel++;
    if (g->n_kernel == g->n)
        g->n_kernel = 0;
    return 0;
}

/* ---- writing ---- */

static void put_amounts(struct kiln_native_call *call, const char *name,
                        const int64_t amounts[COLUMNS])
{
    kiln_json_put_name(&call->w, name);
    kiln_json_put_object(&call->w);
    for (enum column c = WALL; c < COLUMNS; c++)
        kiln_native_put_i64(call, column_names[c], amounts[c]);
    kiln_native_put_i64(call, "gap", amounts[WALL] - amounts[CPU]);
    kiln_json_end_object(&call->w);
}

static void put_reasons(struct gap *g)
{
    struct kiln_native_call *call = g->call;

    kiln_json_put_name(&call->w, "reasons");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < g->n_reasons; i++) {
        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "reason", g->reasons[i]);
        kiln_native_put_i64(call, "value", g->overall.reasons[i]);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
}

static void put_row(struct gap *g, const struct function *f)
{
    struct kiln_native_call *call = g->call;

    kiln_json_put_object(&call->w);
    kiln_native_put_function(call, &f->name);
    put_amounts(call, "self", f->self);
    put_amounts(call, "total", f->total);
    kiln_json_put_name(&call->w, "reasons");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < g->n_reasons; i++)
        kiln_json_put_i64(&call->w, f->reasons[i]);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
}

static int put_answer(struct gap *g)
{
    struct kiln_native_call *call = g->call;
    uint32_t limit = call->args.limit ? call->args.limit : UINT32_MAX;
    uint32_t all = g->n - g->n_kernel, n = all < limit ? all : limit;
    int r = kiln_native_room(call, g->first, 4096 + (size_t)n * (512 + 16 * (size_t)g->n_reasons));

    if (r < 0)
        return r;
    if (n < all)
        kiln_native_note(call, "rows_cut",
                         "the table shows %u of %u functions (limit=N shows more, 0 all)", n, all);
    if (g->n_kernel)
        kiln_native_note(call, "kernel_left_out",
                         "%u functions of the kernel are left out (sort=self has them)",
                         g->n_kernel);
    kiln_native_begin_question(call, g->first, &g->basis);
    put_amounts(call, "overall", g->overall.total);
    put_reasons(g);
    kiln_native_put_u64(call, "functions", all);
    kiln_json_put_name(&call->w, "rows");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < n; i++)
        put_row(g, &g->rows[i]);
    kiln_json_end_array(&call->w);
    kiln_native_end_answer(call);
    return 0;
}

static int answer(struct gap *g)
{
    int r;

    kiln_fund_init(&g->fund, g->first->question.leash);
    kiln_fund_texts_init(&g->texts, &g->fund);
    kiln_fund_texts_init(&g->places, &g->fund);
    r = gather(g);
    if (r == 0)
        r = put_answer(g);
    kiln_array_free(&g->fund.budget, (void **)&g->rows, &g->cap, sizeof(*g->rows));
    kiln_fund_texts_done(&g->places, &g->fund);
    kiln_fund_texts_done(&g->texts, &g->fund);
    kiln_fund_done(&g->fund);
    return r;
}

int kiln_native_run_gap(struct kiln_native_call *call)
{
    static const char *const sorts[] = {"total", "self", NULL};
    struct gap g = {.call = call};
    struct kiln_ask *first;
    int r = 0;

    if (call->args.sort.len)
        r = kiln_native_choose(call, "sort", call->args.sort, sorts);
    if (r < 0)
        return r;
    g.by_self = r == 1;
    r = open_ask(&g, &first);
    if (r < 0)
        return r;
    g.first = first;
    r = answer(&g);
    kiln_native_close(call, first);
    return r;
}

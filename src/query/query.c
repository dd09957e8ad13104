/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ask is one allocation with an arena for its small arrays.  Order matters on opening: tenants
 * and windows first, for the type may have to be looked for among theirs; the leash before that,
 * for looking is a question too.
 */
#include "query/query.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/regex.h"
#include "query/query_int.h"

#define ASK_MEMORY ((size_t)8 << 20)
#define POOL_BYTES ((size_t)256 << 20)
#define NEW_NS     (5 * 60 * KILN_NS_PER_S) /* of what ended before, nothing new comes */

enum { TRIES_MAX = 4 };

/* ---- queriers ---- */

static void get_metrics(struct kiln_querier *q, struct kiln_metrics *metrics)
{
    static const char *const names[KILN_ASK_OUTCOMES] = {
        [KILN_ASK_ANSWERED] = "answered", [KILN_ASK_REFUSED] = "refused",
        [KILN_ASK_LIMITED] = "limited",   [KILN_ASK_TIMED_OUT] = "timeout",
        [KILN_ASK_CANCELED] = "canceled", [KILN_ASK_FAILED] = "failed",
    };

    for (uint32_t i = 0; i < KILN_ASK_OUTCOMES; i++)
        q->outcomes[i] =
            kiln_metric_get(metrics, KILN_COUNTER, "kiln_queries_total",
                            "Questions, by how they ended.", KILN_LABELS("outcome", names[i]));
    q->seconds = kiln_metric_get(metrics, KILN_HISTOGRAM, "kiln_query_seconds",
                                 "How long questions took, from their words to their answer.",
                                 KILN_LABELS(NULL));
    q->bytes = kiln_metric_get(metrics, KILN_COUNTER, "kiln_query_read_bytes_total",
                               "Bytes of blocks that were read for questions.", KILN_LABELS(NULL));
}

int kiln_querier_new(const struct kiln_querier_opts *opts, struct kiln_querier **ret_querier)
{
    struct kiln_querier *q = kiln_calloc(1, sizeof(*q));

    if (!q)
        return -ENOMEM;
    kiln_pool_init(&q->own_pool, "query", POOL_BYTES, NULL);
    q->engine = opts->engine;
    q->pool = opts->pool ? opts->pool : &q->own_pool;
    q->limits = kiln_query_limits_filled(opts->limits, q->pool->limit / 2);
    q->tenants = opts->tenants;
    q->n_tenants = opts->n_tenants;
    get_metrics(q, opts->metrics);
    *ret_querier = q;
    return 0;
}

void kiln_querier_free(struct kiln_querier *querier)
{
    kiln_free(querier);
}

struct kiln_pool *kiln_querier_pool(const struct kiln_querier *querier)
{
    return querier->pool;
}

uint64_t kiln_querier_asked_ns(const struct kiln_querier *querier)
{
    return atomic_load_explicit(&querier->asked_ns, memory_order_relaxed);
}

const struct kiln_query_limits *kiln_querier_limits(const struct kiln_querier *querier)
{
    return &querier->limits;
}

/* ---- filling ---- */

static void set_leash(struct kiln_ask *ask, const struct kiln_query *query)
{
    const struct kiln_query_limits *limits = &ask->limits;
    uint64_t ms = limits->time_ms;

    if (query->timeout_ms && query->timeout_ms < ms)
        ms = query->timeout_ms;
    ask->leash = (struct kiln_leash){
        .gone = query->gone,
        .deadline_mono_ns = ask->began_mono_ns + ms * KILN_NS_PER_MS,
        .bytes_max = limits->bytes,
        .memory_max = limits->memory_bytes,
        .pool = ask->querier->pool,
    };
    ask->question.leash = &ask->leash;
}

/* "a|b|a" is a and b. */
static int set_tenants(struct kiln_ask *ask, struct kiln_str text, struct kiln_err *err)
{
    struct kiln_question *question = &ask->question;
    struct kiln_str rest = text;

    ask->tenants = kiln_arena_alloc(&ask->arena, KILN_QUERY_TENANTS_MAX * sizeof(*ask->tenants));
    if (!ask->tenants)
        return -ENOMEM;
    do {
        struct kiln_str tenant = kiln_str_trim(kiln_str_cut(&rest, '|'));
        uint32_t i = 0;

        if (tenant.len == 0 && text.len)
            return kiln_err_set(err, KILN_E_MALFORMED, NULL, "one of the tenants has no name");
        while (i < question->n_tenants && !kiln_str_eq(ask->tenants[i], tenant))
            i++;
        if (i == KILN_QUERY_TENANTS_MAX)
            return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %d tenants at once",
                                KILN_QUERY_TENANTS_MAX);
        ask->tenants[i] = tenant;
        question->n_tenants = i == question->n_tenants ? i + 1 : question->n_tenants;
    } while (rest.ptr);
    question->tenants = ask->tenants;
    return 0;
}

static int set_matchers(struct kiln_ask *ask, const struct kiln_query *query, struct kiln_err *err)
{
    struct kiln_selector *selector = &ask->selector;
    int r = 0;

    for (uint32_t i = 0; i < query->n_selectors && r == 0; i++)
        r = kiln_selector_add(selector, query->selectors[i], err);
    if (r < 0 || selector->n_matchers == 0)
        return r;
    ask->matchers = kiln_arena_alloc(&ask->arena, selector->n_matchers * sizeof(*ask->matchers));
    if (!ask->matchers)
        return -ENOMEM;
    memcpy(ask->matchers, selector->matchers, selector->n_matchers * sizeof(*ask->matchers));
    ask->question.matchers = ask->matchers;
    ask->question.n_matchers = selector->n_matchers;
    return 0;
}

static int fill(struct kiln_ask *ask, const struct kiln_query *query, struct kiln_err *err)
{
    int r;

    ask->question.trace_ids = query->trace_ids;
    ask->question.span_ids = query->span_ids;
    ask->question.profile_ids = query->profile_ids;
    ask->question.n_trace_ids = query->n_trace_ids;
    ask->question.n_span_ids = query->n_span_ids;
    ask->question.n_profile_ids = query->n_profile_ids;
    ask->question.stacks = query->stacks;
    ask->limits = kiln_querier_limits_of(ask->querier, query->tenants);
    set_leash(ask, query);
    r = set_tenants(ask, query->tenants, err);
    if (r == 0)
        r = kiln_ask_set_windows(ask, query, err);
    if (r == 0)
        r = set_matchers(ask, query, err);
    if (r == 0)
        r = kiln_ask_set_type(ask, query, err);
    if (r == 0)
        ask->question.average = ask->type.level && !query->sum_levels;
    return r;
}

/* ---- failing ---- */

static enum kiln_ask_outcome outcome_of(int code)
{
    switch (code) {
    case 0:
        return KILN_ASK_ANSWERED;
    case KILN_E_LIMIT:
        return KILN_ASK_LIMITED;
    case -ETIMEDOUT:
        return KILN_ASK_TIMED_OUT;
    case -ECANCELED:
        return KILN_ASK_CANCELED;
    case KILN_E_MALFORMED:
    case KILN_E_PATTERN:
    case KILN_E_RANGE:
    case KILN_E_NOMATCH:
    case KILN_E_AMBIGUOUS:
    case -ENOENT:
        return KILN_ASK_REFUSED;
    default:
        return KILN_ASK_FAILED;
    }
}

/* Whether an expression gave up, and which. */
static bool gave_up(const struct kiln_ask *ask, struct kiln_str *ret_what)
{
    const struct kiln_matcher *m = kiln_selector_gave_up(&ask->selector);
    const struct kiln_stack_choice *stacks = &ask->question.stacks;

    *ret_what = m ? m->value : KILN_STR("of function names");
    return m || (stacks->with_regex && kiln_regex_gave_up(stacks->with_regex)) ||
           (stacks->without_regex && kiln_regex_gave_up(stacks->without_regex));
}

static int too_many_steps(struct kiln_ask *ask, struct kiln_str what, struct kiln_err *err)
{
    ask->outcome = KILN_ASK_LIMITED;
    if (err)
        *err = (struct kiln_err){0};
    return kiln_err_set(err, KILN_E_LIMIT, NULL,
                        "the expression %.*s takes too many steps to match",
                        (int)(what.len < 100 ? what.len : 100), what.ptr);
}

/* A sentence for a code that has none yet, and the outcome it stands for. */
static int failed(struct kiln_ask *ask, int code, struct kiln_err *err)
{
    struct kiln_str what;

    if (gave_up(ask, &what))
        return too_many_steps(ask, what, err);
    ask->outcome = outcome_of(code);
    if (err && strcmp(err->text, kiln_err_text(code)) == 0)
        *err = (struct kiln_err){0}; /* there is more to say than what the code means */
    switch (code) {
    case -ETIMEDOUT:
        return kiln_err_set(
            err, code, NULL,
            "the answer takes longer than %.3g s: ask for less time or fewer series",
            (double)(ask->leash.deadline_mono_ns - ask->began_mono_ns) / 1e9);
    case -ECANCELED:
        return kiln_err_set(err, code, NULL, "nobody waits for the answer any more");
    case KILN_E_LIMIT:
        return kiln_err_set(err, code, NULL,
                            "the question needs more than a question may take: ask for less time "
                            "or fewer series");
    default:
        return kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
    }
}

/* ---- opening, closing ---- */

int kiln_ask_open(struct kiln_querier *querier, const struct kiln_query *query,
                  struct kiln_ask **ret_ask, struct kiln_err *err)
{
    struct kiln_ask *ask = kiln_calloc(1, sizeof(*ask));
    int r;

    if (!ask)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    ask->querier = querier;
    ask->began_mono_ns = kiln_clock_mono_ns();
    ask->budget.limit = ASK_MEMORY;
    kiln_arena_init(&ask->arena, &ask->budget);
    r = fill(ask, query, err);
    if (r < 0) {
        r = failed(ask, r, err);
        kiln_ask_close(ask);
        return r;
    }
    if (!query->end_ns || query->end_ns + NEW_NS > kiln_clock_unix_ns())
        atomic_store_explicit(&querier->asked_ns, ask->began_mono_ns, memory_order_relaxed);
    *ret_ask = ask;
    return 0;
}

void kiln_ask_close(struct kiln_ask *ask)
{
    struct kiln_querier *q;

    if (!ask)
        return;
    q = ask->querier;
    kiln_metric_add(q->outcomes[ask->outcome], 1);
    kiln_metric_observe(q->seconds, (double)(kiln_clock_mono_ns() - ask->began_mono_ns) / 1e9);
    kiln_metric_add(q->bytes, (int64_t)ask->leash.bytes_read);
    kiln_leash_spend(&ask->leash);
    kiln_selector_done(&ask->selector);
    kiln_arena_done(&ask->arena);
    kiln_free(ask);
}

/* ---- asking ---- */

/* What the engine said, in the light of what happened on the way: an answer for which an expression
 * gave up is none. */
static int judge(struct kiln_ask *ask, int code, struct kiln_err *err)
{
    struct kiln_str what;

    return code < 0 || gave_up(ask, &what) ? failed(ask, code, err) : 0;
}

/*
 * A question takes more on its way than it reserved at first.  Where others have that just now, it
 * waits in line, with nothing in its hands, until there is twice as much as it came to, and begins
 * again with that.  True: do.
 */
static bool begin_again(struct kiln_ask *ask, int code, uint32_t *tries, struct kiln_err *err)
{
    struct kiln_leash *leash = ask->question.leash;
    size_t want = leash->memory_peak, most = leash->memory_max;

    kiln_leash_spend(leash);
    if (code != KILN_E_LIMIT || !leash->was_short || leash->memory || (*tries)++ == TRIES_MAX)
        return false;
    most = most && most < leash->pool->limit ? most : leash->pool->limit;
    want = want < most / 2 ? want * 2 : most;
    leash->was_short = false;
    if (kiln_leash_save(leash, want, NULL) < 0)
        return false;
    if (err)
        *err = (struct kiln_err){0};
    return true;
}

int kiln_ask_merge(struct kiln_ask *ask, const struct kiln_merge_wants *wants,
                   struct kiln_merged **ret_merged, struct kiln_err *err)
{
    struct kiln_engine *engine = ask->querier->engine;
    struct kiln_merged *merged = NULL;
    uint32_t tries = 0;
    int r;

    do
        r = engine->ops->merge(engine, &ask->question, wants, &merged, err);
    while (begin_again(ask, r, &tries, err));
    r = judge(ask, r, err);
    if (r < 0)
        kiln_merged_free(merged);
    else
        *ret_merged = merged;
    return r;
}

int kiln_ask_timeline(struct kiln_ask *ask, const struct kiln_timeline_opts *opts,
                      struct kiln_timeline **ret_timeline, struct kiln_err *err)
{
    struct kiln_engine *engine = ask->querier->engine;
    struct kiln_timeline *timeline = NULL;
    uint32_t tries = 0;
    int r;

    do
        r = engine->ops->timeline(engine, &ask->question, opts, &timeline, err);
    while (begin_again(ask, r, &tries, err));
    r = judge(ask, r, err);
    if (r < 0)
        kiln_timeline_free(timeline);
    else
        *ret_timeline = timeline;
    return r;
}

int kiln_ask_found(struct kiln_ask *ask, const struct kiln_found_opts *opts,
                   struct kiln_found **ret_found, struct kiln_err *err)
{
    struct kiln_engine *engine = ask->querier->engine;
    struct kiln_found *found = NULL;
    uint32_t tries = 0;
    int r;

    do
        r = engine->ops->found(engine, &ask->question, opts, &found, err);
    while (begin_again(ask, r, &tries, err));
    r = judge(ask, r, err);
    if (r < 0)
        kiln_found_free(found);
    else
        *ret_found = found;
    return r;
}

int kiln_ask_moments(struct kiln_ask *ask, const struct kiln_moments_opts *opts,
                     struct kiln_moments **ret_moments, struct kiln_err *err)
{
    struct kiln_engine *engine = ask->querier->engine;
    struct kiln_moments *moments = NULL;
    uint32_t tries = 0;
    int r;

    do
        r = engine->ops->moments(engine, &ask->question, opts, &moments, err);
    while (begin_again(ask, r, &tries, err));
    r = judge(ask, r, err);
    if (r < 0)
        kiln_moments_free(moments);
    else
        *ret_moments = moments;
    return r;
}

int kiln_ask_labels(struct kiln_ask *ask, const struct kiln_str *names, uint32_t n,
                    struct kiln_labels **ret_labels, struct kiln_err *err)
{
    struct kiln_engine *engine = ask->querier->engine;
    struct kiln_labels *labels = NULL;
    uint32_t tries = 0;
    int r;

    do
        r = engine->ops->labels(engine, &ask->question, names, n, &labels, err);
    while (begin_again(ask, r, &tries, err));
    if (r == 0)
        r = kiln_labels_add_made(labels, names, n, ask->question.n_parts);
    r = judge(ask, r, err);
    if (r < 0)
        kiln_labels_free(labels);
    else
        *ret_labels = labels;
    return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query - questions as people write them, answered by an engine within limits.
 *
 *   kiln_ask_open()    words ─▶ struct kiln_question: selectors parsed, the type resolved, times
 *                      made windows, a leash put on
 *   kiln_ask_merge()   and _timeline, _found, _moments, _labels: ask->question goes to the engine
 *   kiln_ask_close()
 *
 * Every room that answers questions (api/, watch/) asks through here, so that a selector, a time, a
 * type, and a limit mean the same everywhere.
 *
 * Threads: a querier is shared; an ask has one owner.
 */
#ifndef KILN_QUERY_QUERY_H
#define KILN_QUERY_QUERY_H

#include "base/leash.h"
#include "base/metric.h"
#include "core/type.h"
#include "query/selector.h"
#include "store/engine.h"

struct kiln_querier;

/* Of each question; of a tenant, where the configuration says so. */
struct kiln_query_limits {
    uint64_t time_ms;    /* 0: 60,000 */
    uint64_t bytes;      /* of blocks read; 0: 16 GiB */
    size_t memory_bytes; /* 0: half of the pool */
    uint64_t range_ns;   /* longest window; 0: no limit */
    uint32_t nodes_max;  /* of a flame graph; 0: 1,048,576 */
};

/* What a tenant has otherwise; 0: as all. */
struct kiln_query_tenant {
    const char *tenant;
    struct kiln_query_limits limits;
};

struct kiln_querier_opts {
    struct kiln_engine *engine; /* borrowed */
    struct kiln_pool *pool;     /* NULL: 256 MiB */
    struct kiln_query_limits limits;
    const struct kiln_query_tenant *tenants; /* borrowed */
    uint32_t n_tenants;
    struct kiln_metrics *metrics; /* NULL: not measured */
};

KILN_CHECK int kiln_querier_new(const struct kiln_querier_opts *opts,
                                struct kiln_querier **ret_querier);
void kiln_querier_free(struct kiln_querier *querier);
const struct kiln_query_limits *kiln_querier_limits(const struct kiln_querier *querier);
/* What questions, and answers on their way out, are paid from. */
struct kiln_pool *kiln_querier_pool(const struct kiln_querier *querier);
/* When somebody last asked for what happened just then (monotonic); 0: never. */
uint64_t kiln_querier_asked_ns(const struct kiln_querier *querier);
/* Of a question about these tenants, "a" or "a|b": the least that any of them has. */
struct kiln_query_limits kiln_querier_limits_of(const struct kiln_querier *querier,
                                                struct kiln_str tenants);

/* What is asked; texts are borrowed until the ask is closed. */
struct kiln_query {
    struct kiln_str tenants; /* "a", or "a|b" */
    struct kiln_str type;    /* five or three parts, or empty: what the selectors say, or any */
    const struct kiln_str *selectors; /* all must hold */
    uint32_t n_selectors;
    uint64_t start_ns, end_ns;         /* start <= t < end; 0, 0: all times */
    const struct kiln_window *windows; /* instead: any order, may overlap */
    uint32_t n_windows;
    const uint8_t (*trace_ids)[16];
    const uint8_t (*span_ids)[8];
    const uint8_t (*profile_ids)[16];
    uint32_t n_trace_ids, n_span_ids, n_profile_ids;
    struct kiln_stack_choice stacks;
    bool sum_levels;          /* as Pyroscope does; else levels are averaged over time */
    bool needs_type;          /* a type must be said, or only one be there */
    bool type_wins;           /* `type` counts, whatever the selectors say */
    const _Atomic bool *gone; /* net/server.h; NULL: somebody always waits */
    uint64_t timeout_ms;      /* what the client waits for; 0: the limit */
};

enum kiln_ask_outcome {
    KILN_ASK_ANSWERED,
    KILN_ASK_REFUSED, /* the question makes no sense, or names what is not there */
    KILN_ASK_LIMITED, /* bytes, memory, range or steps of an expression */
    KILN_ASK_TIMED_OUT,
    KILN_ASK_CANCELED, /* the client went away */
    KILN_ASK_FAILED,
    KILN_ASK_OUTCOMES,
};

struct kiln_ask {
    struct kiln_question question; /* for the engine */
    struct kiln_type type;         /* the resolved one; all empty where none was said */
    /* the rest is the ask's own */
    enum kiln_ask_outcome outcome;
    struct kiln_querier *querier;
    struct kiln_query_limits limits;
    struct kiln_leash leash;
    struct kiln_selector selector;
    struct kiln_window *windows;
    struct kiln_str *tenants;
    struct kiln_matcher *matchers; /* of the selector, without those that said the type */
    uint64_t began_mono_ns;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/*
 * KILN_E_MALFORMED, KILN_E_PATTERN, KILN_E_RANGE (end before start), KILN_E_NOMATCH (three parts
 * fit no type; only where types are resolved), -ENOENT (nor is there any other), KILN_E_AMBIGUOUS
 * (`err` lists the candidates), KILN_E_LIMIT.  On failure there is nothing to close.
 */
KILN_CHECK int kiln_ask_open(struct kiln_querier *querier, const struct kiln_query *query,
                             struct kiln_ask **ret_ask, struct kiln_err *err);
/* Also counts it: kiln_queries_total, kiln_query_seconds, bytes, memory. */
void kiln_ask_close(struct kiln_ask *ask);

/*
 * The engine's answers to ask->question, and its codes; `err` always has a sentence.  KILN_E_LIMIT
 * too where an expression of the selectors or of the stacks took too many steps: what it did not
 * match is unknown, so there is no answer.
 */
KILN_CHECK int kiln_ask_merge(struct kiln_ask *ask, const struct kiln_merge_wants *wants,
                              struct kiln_merged **ret_merged, struct kiln_err *err);
KILN_CHECK int kiln_ask_timeline(struct kiln_ask *ask, const struct kiln_timeline_opts *opts,
                                 struct kiln_timeline **ret_timeline, struct kiln_err *err);
KILN_CHECK int kiln_ask_found(struct kiln_ask *ask, const struct kiln_found_opts *opts,
                              struct kiln_found **ret_found, struct kiln_err *err);
KILN_CHECK int kiln_ask_moments(struct kiln_ask *ask, const struct kiln_moments_opts *opts,
                                struct kiln_moments **ret_moments, struct kiln_err *err);
KILN_CHECK int kiln_ask_labels(struct kiln_ask *ask, const struct kiln_str *names, uint32_t n,
                               struct kiln_labels **ret_labels, struct kiln_err *err);

/* ---- the type of an id ---- */

/* A five-part id (a sixth one, "delta", is dropped) as a type, whose texts are borrowed from `id`.
 * KILN_E_MALFORMED. */
KILN_CHECK int kiln_query_type(struct kiln_str id, struct kiln_type *ret_type);

#endif /* KILN_QUERY_QUERY_H */

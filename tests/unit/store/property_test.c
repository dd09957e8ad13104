/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random stores, random questions: what the engine answers is what the oracle says, which looks at
 * one observation after the other; and totals are what was appended, to the unit.
 *
 * KILN_PROPERTY_STORES is how many stores there are; KILN_TEST_SEED makes one of them alone.
 */
#include <stdlib.h>

#include "answers_equal.h"
#include "oracle.h"
#include "store/rollup.h"
#include "store/wide.h"
#include "test.h"
#include "world.h"

#define STORES    16u
#define STEPS     10u
#define QUESTIONS 4u /* after each step, of each kind */

static uint64_t n_rolled, n_bounded; /* answers that came from roll-ups; not exact */
static uint64_t n_wide, n_pruned;    /* of wide queries; with a bound of nodes or functions */

/* Roll-ups answer within their bound. */
static void check_rolled(struct world *w, const struct kiln_question *q,
                         const struct kiln_merge_wants *wants, const struct kiln_merged *merged)
{
    struct kiln_merge_wants all = {.nodes_max = wants->nodes_max ? UINT32_MAX : 0,
                                   .functions = wants->functions};
    struct kiln_merged *truth = NULL;

    n_rolled++;
    n_bounded += merged->flame && merged->flame->error_bound;
    CHECK_OK(kiln_oracle_merge(w->kit.engine, q, &all, &truth, NULL));
    kiln_test_merged_within(merged, truth, wants->nodes_max >= 100000);
    kiln_merged_free(truth);
}

/* Wide queries with any limits answer within their bounds. */
static void check_wide(struct world *w, const struct kiln_question *q,
                       const struct kiln_merge_wants *wants, const struct kiln_merged *merged)
{
    struct kiln_merge_wants all = {.nodes_max = wants->nodes_max ? UINT32_MAX : 0,
                                   .functions = wants->functions};
    struct kiln_merged *truth = NULL;

    n_wide++;
    n_pruned += merged->flame->error_bound || merged->flame->functions_bound;
    CHECK_OK(kiln_oracle_merge(w->kit.engine, q, &all, &truth, NULL));
    kiln_test_merged_pruned(merged, truth, wants->nodes_max >= 100000);
    kiln_merged_free(truth);
}

static void limit_wide(struct world *w)
{
    if (!kiln_wide_limits.always)
        return;
    kiln_wide_limits.nodes_max = 1 + world_roll(w, world_roll(w, 2) ? 8 : 100);
    kiln_wide_limits.functions_max = 1 + world_roll(w, world_roll(w, 2) ? 4 : 100);
    kiln_wide_limits.summaries_max = 1 + world_roll(w, 4);
    kiln_wide_limits.bytes_max = world_roll(w, 2) ? 1 : SIZE_MAX;
}

static void ask_merge(struct world *w, const struct kiln_question *q)
{
    static const uint32_t nodes[] = {0, 1, 2, 3, 5, 10, 30, 100, 100000};
    struct kiln_merge_wants wants = {.nodes_max = nodes[world_roll(w, KILN_ARRAY_LEN(nodes))],
                                     .functions = world_roll(w, 2),
                                     .profile = world_roll(w, 3) == 0,
                                     .exact = world_roll(w, 3) == 0};
    struct kiln_merged *merged = NULL, *truth = NULL;
    struct kiln_engine *engine = w->kit.engine;

    if (q->average)
        wants.functions = true;
    limit_wide(w);
    CHECK_OK(engine->ops->merge(engine, q, &wants, &merged, NULL));
    if (world_roll(w, 2)) { /* again: of what is kept now */
        kiln_merged_free(merged);
        CHECK_OK(engine->ops->merge(engine, q, &wants, &merged, NULL));
    }
    CHECK(!wants.exact || !merged->flame || merged->flame->error_bound == 0);
    if (kiln_wide_limits.always && merged->flame && !q->average && !wants.profile && !wants.exact) {
        check_wide(w, q, &wants, merged);
    } else if (merged->basis.n_rolled) {
        check_rolled(w, q, &wants, merged);
    } else {
        CHECK_OK(kiln_oracle_merge(engine, q, &wants, &truth, NULL));
        kiln_test_merged_equal(merged, truth, q->average);
    }
    kiln_merged_free(merged);
    kiln_merged_free(truth);
}

static void ask_timeline(struct world *w, const struct kiln_question *q)
{
    struct kiln_str by[2] = {world_label(w), world_label(w)};
    struct kiln_timeline_opts opts = {.step_ns = 1 + world_roll(w, world_roll(w, 2) ? 30000 : 1000),
                                      .by = by,
                                      .n_by = world_roll(w, 3),
                                      .mean = world_roll(w, 4) == 0,
                                      .exemplars = world_roll(w, 2),
                                      .span_exemplars = world_roll(w, 3) == 0};
    struct kiln_timeline *timeline = NULL, *truth = NULL;
    struct kiln_engine *engine = w->kit.engine;

    if (!q->average && !opts.mean && world_roll(w, 3) == 0)
        opts.limit = 1 + world_roll(w, 3);
    CHECK_OK(engine->ops->timeline(engine, q, &opts, &timeline, NULL));
    CHECK_OK(kiln_oracle_timeline(engine, q, &opts, &truth, NULL));
    kiln_test_timeline_equal(timeline, truth, opts.n_by);
    kiln_timeline_free(timeline);
    kiln_timeline_free(truth);
}

static void ask_found(struct world *w, const struct kiln_question *q)
{
    struct kiln_found_opts opts = {.spans = world_roll(w, 2),
                                   .order =
                                       world_roll(w, 2) ? KILN_FOUND_LARGEST : KILN_FOUND_NEWEST,
                                   .limit = world_roll(w, 2) ? 1 + world_roll(w, 8) : 0};
    struct kiln_found *found = NULL, *truth = NULL;
    struct kiln_engine *engine = w->kit.engine;

    CHECK_OK(engine->ops->found(engine, q, &opts, &found, NULL));
    CHECK_OK(kiln_oracle_found(engine, q, &opts, &truth, NULL));
    kiln_test_found_equal(found, truth);
    kiln_found_free(found);
    kiln_found_free(truth);
}

/* Everything that the oracle finds in each window is told. */
static void check_windows(struct world *w, const struct kiln_question *q,
                          const struct kiln_str *names, uint32_t n,
                          const struct kiln_labels *labels)
{
    for (uint32_t i = 0; i < q->n_windows; i++) {
        struct kiln_question one = *q;
        struct kiln_labels *truth = NULL;

        one.windows = &q->windows[i];
        one.n_windows = 1;
        CHECK_OK(kiln_oracle_labels(w->kit.engine, &one, names, n, &truth, NULL));
        kiln_test_labels_within(truth, labels, n ? n : 1);
        kiln_labels_free(truth);
    }
}

/* Labels may be told of all a block has, where it only touches the time. */
static void ask_labels(struct world *w, const struct kiln_question *q)
{
    struct kiln_str names[3] = {world_label(w), world_label(w), world_label(w)};
    uint32_t n = world_roll(w, 4);
    struct kiln_labels *labels = NULL, *whole = NULL;
    struct kiln_engine *engine = w->kit.engine;
    struct kiln_question always = *q;

    always.n_windows = 0;
    CHECK_OK(engine->ops->labels(engine, q, names, n, &labels, NULL));
    CHECK_OK(kiln_oracle_labels(engine, &always, names, n, &whole, NULL));
    if (q->n_windows == 0)
        kiln_test_labels_equal(labels, whole, n ? n : 1);
    kiln_test_labels_within(labels, whole, n ? n : 1);
    check_windows(w, q, names, n, labels);
    kiln_labels_free(labels);
    kiln_labels_free(whole);
}

/* Everything of a type, in a window or always, is what was appended. */
static void check_total(struct world *w)
{
    struct kiln_merge_wants wants = {.nodes_max = 1 + world_roll(w, 50), .functions = true};
    uint32_t tenant = world_roll(w, WORLD_TENANTS);
    struct kiln_window window = {world_time(w), 0};
    struct kiln_leash leash = {0};
    struct kiln_question q = {.tenants = &world_tenants[tenant],
                              .n_tenants = 1,
                              .windows = &window,
                              .n_windows = world_roll(w, 2),
                              .type = world_type(w),
                              .leash = &leash};
    struct kiln_merged *merged = NULL;

    window.end_ns = q.n_windows ? window.start_ns + 1 + world_roll(w, 50000) : 0;
    CHECK_OK(w->kit.engine->ops->merge(w->kit.engine, &q, &wants, &merged, NULL));
    CHECK_EQ(merged->total,
             world_total(w, tenant, q.type, q.n_windows ? window.start_ns : 0, window.end_ns));
    CHECK_EQ(merged->flame->total, merged->total);
    CHECK_EQ(merged->flame->nodes[0].total, merged->total);
    kiln_merged_free(merged);
}

static void try_store(uint64_t seed, bool rolls, bool names)
{
    struct world_question ask;
    struct world w;

    world_init(&w, seed);
    w.rolls = rolls;
    w.names = names;
    for (uint32_t step = 0; step < STEPS; step++) {
        world_step(&w);
        world_step(&w);
        check_total(&w);
        if (names)
            world_check_names(&w, world_roll(&w, WORLD_TENANTS));
        for (uint32_t i = 0; i < QUESTIONS; i++) {
            world_ask(&w, &ask);
            ask_merge(&w, &ask.q);
            ask_timeline(&w, &ask.q);
            ask_found(&w, &ask.q);
            ask_labels(&w, &ask.q);
            world_asked(&ask);
        }
    }
    world_done(&w);
}

static void try_stores(bool rolls, bool names)
{
    const char *only = getenv("KILN_TEST_SEED"), *many = getenv("KILN_PROPERTY_STORES");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    uint64_t n = only ? 1 : many ? strtoull(many, NULL, 10) : STORES;

    for (uint64_t seed = first; seed < first + n; seed++) {
        printf("KILN_TEST_SEED=%llu\n", (unsigned long long)seed);
        fflush(stdout);
        try_store(seed, rolls, names);
    }
}

TEST(property, any_answer_about_any_store_is_that_of_the_oracle)
{
    try_stores(false, false);
    CHECK_EQ(n_rolled, 0);
}

static void try_rolled(bool names)
{
    const struct kiln_rollup_limits usual = kiln_rollup_limits;

    kiln_rollup_limits = (struct kiln_rollup_limits){.node_rows = 1,
                                                     .nodes_min = 3,
                                                     .nodes_max = 12,
                                                     .nodes_coarse = 2,
                                                     .range_ns = 1,
                                                     .hour_ns = 4000};
    try_stores(true, names);
    kiln_rollup_limits = usual;
    printf("%llu answers from roll-ups, %llu with a bound\n", (unsigned long long)n_rolled,
           (unsigned long long)n_bounded);
    CHECK(getenv("KILN_TEST_SEED") || kiln_wide_limits.always || (n_rolled && n_bounded));
}

TEST(property, with_roll_ups_functions_stay_exact_and_trees_within_their_bound)
{
    try_rolled(false);
}

TEST(property, names_that_come_at_any_time_are_in_every_answer)
{
    n_rolled = n_bounded = 0;
    try_stores(false, true);
    CHECK_EQ(n_rolled, 0);
}

TEST(property, names_that_come_at_any_time_are_in_roll_ups_or_these_are_not_used)
{
    n_rolled = n_bounded = 0;
    try_rolled(true);
}

static void try_wide(bool rolls, bool names)
{
    const struct kiln_wide_limits usual = kiln_wide_limits;

    n_wide = n_pruned = 0;
    kiln_wide_limits.always = true;
    if (rolls)
        try_rolled(names);
    else
        try_stores(false, names);
    kiln_wide_limits = usual;
    printf("%llu wide answers, %llu with a bound\n", (unsigned long long)n_wide,
           (unsigned long long)n_pruned);
    CHECK(getenv("KILN_TEST_SEED") || (n_wide && n_pruned));
}

TEST(property, wide_answers_have_exact_totals_and_all_else_within_their_bounds)
{
    try_wide(false, false);
}

TEST(property, wide_answers_from_names_that_come_at_any_time_are_within_their_bounds)
{
    try_wide(false, true);
}

TEST(property, wide_answers_from_roll_ups_are_within_both_bounds)
{
    try_wide(true, false);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random stores whose merged blocks have roll-ups of everything, with hours so short that questions
 * have many: functions are what the oracle says, and no node of a tree is too large, or too small
 * by more than the answer admits.
 */
#include <stdlib.h>

#include "oracle.h"
#include "store/rollup.h"
#include "test.h"
#include "world.h"

#define STORES    24u
#define STEPS     10u
#define QUESTIONS 8u

static struct kiln_str name_of(const struct kiln_flame *f, uint32_t node)
{
    return f->names[f->nodes[node].name].name;
}

static bool is_other(const struct kiln_flame *f, uint32_t node)
{
    return f->other && f->nodes[node].name == f->other;
}

/* The child of a node with this name; 0: none. */
static uint32_t find_child(const struct kiln_flame *f, uint32_t node, struct kiln_str name)
{
    for (uint32_t i = node + 1; i < f->nodes[node].end; i = f->nodes[i].end) {
        if (!is_other(f, i) && kiln_str_eq(name_of(f, i), name))
            return i;
    }
    return 0;
}

/* Every node of a is in b, and its total no larger than there, nor smaller by more than `bound`. */
static void check_within(const struct kiln_flame *a, uint32_t x, const struct kiln_flame *b,
                         uint32_t y, int64_t bound)
{
    CHECK(a->nodes[x].total <= b->nodes[y].total);
    CHECK(a->nodes[x].total >= b->nodes[y].total - bound);
    CHECK(a->nodes[x].self <= b->nodes[y].self);
    for (uint32_t i = x + 1; i < a->nodes[x].end; i = a->nodes[i].end) {
        uint32_t k = is_other(a, i) ? 0 : find_child(b, y, name_of(a, i));

        CHECK(k || is_other(a, i));
        if (k)
            check_within(a, i, b, k, bound);
    }
}

/* What is larger than the bound is there. */
static void check_whole(const struct kiln_flame *a, uint32_t x, const struct kiln_flame *b,
                        uint32_t y, int64_t bound)
{
    for (uint32_t k = y + 1; k < b->nodes[y].end; k = b->nodes[k].end) {
        uint32_t i = find_child(a, x, name_of(b, k));

        CHECK(i || b->nodes[k].total <= bound);
        if (i)
            check_whole(a, i, b, k, bound);
    }
}

static const struct kiln_flame_function *find_function(const struct kiln_flame *f,
                                                       struct kiln_str name)
{
    static const struct kiln_flame_function none;

    for (uint32_t i = 0; i < f->n_functions; i++) {
        if (kiln_str_eq(f->names[f->functions[i].name].name, name))
            return &f->functions[i];
    }
    return &none;
}

static void check_functions(const struct kiln_flame *a, const struct kiln_flame *b)
{
    for (uint32_t i = 0; i < a->n_functions; i++) {
        const struct kiln_flame_function *y = find_function(b, a->names[a->functions[i].name].name);

        CHECK_EQ(a->functions[i].self, y->self);
        CHECK_EQ(a->functions[i].total, y->total);
    }
}

/* Returns how many blocks were answered by their roll-ups. */
static uint32_t ask(struct world *w, const struct kiln_question *q)
{
    struct kiln_merge_wants wants = {.nodes_max = world_roll(w, 3) ? 100000 : 0, .functions = true};
    struct kiln_merged *merged = NULL, *truth = NULL;
    struct kiln_engine *engine = w->kit.engine;
    uint32_t n;

    CHECK_OK(engine->ops->merge(engine, q, &wants, &merged, NULL));
    CHECK_OK(kiln_oracle_merge(engine, q, &wants, &truth, NULL));
    CHECK_EQ(merged->total, truth->total);
    CHECK_EQ(merged->flame->total, truth->flame->total);
    CHECK(merged->basis.count >= truth->basis.count - 0.5 * 300 &&
          merged->basis.count <= truth->basis.count + 0.5 * 300);
    CHECK(merged->basis.min_ns <= truth->basis.min_ns);
    CHECK(merged->basis.max_ns >= truth->basis.max_ns);
    check_functions(merged->flame, truth->flame);
    check_functions(truth->flame, merged->flame);
    if (wants.nodes_max) {
        int64_t bound = merged->flame->error_bound;

        check_within(merged->flame, 0, truth->flame, 0, bound);
        check_whole(merged->flame, 0, truth->flame, 0, bound);
    }
    n = merged->basis.n_rolled;
    CHECK(n <= merged->basis.n_blocks);
    kiln_merged_free(merged);
    kiln_merged_free(truth);
    return n;
}

static uint32_t try_store(uint64_t seed)
{
    struct world_question question;
    struct kiln_question q;
    struct world w;
    uint32_t n = 0;

    world_init(&w, seed);
    for (uint32_t step = 0; step < STEPS; step++) {
        world_step(&w);
        world_step(&w);
        CHECK_OK(kiln_store_compact(w.kit.engine, step % 3 == 0, NULL));
        for (uint32_t i = 0; i < QUESTIONS; i++) {
            world_ask(&w, &question);
            q = question.q;
            q.average = false;
            if (i % 2) { /* what roll-ups can answer */
                q.n_trace_ids = q.n_span_ids = q.n_profile_ids = q.n_matchers = 0;
                q.stacks = (struct kiln_stack_choice){0};
            }
            n += ask(&w, &q);
            world_asked(&question);
        }
    }
    world_done(&w);
    return n;
}

TEST(rollup_property, answers_from_roll_ups_are_exact_or_within_their_bound)
{
    const char *only = getenv("KILN_TEST_SEED"), *many = getenv("KILN_PROPERTY_STORES");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    uint64_t n = only ? 1 : many ? strtoull(many, NULL, 10) : STORES;
    struct kiln_rollup_limits usual = kiln_rollup_limits;
    uint32_t rolled = 0;

    for (uint64_t seed = first; seed < first + n; seed++) {
        printf("KILN_TEST_SEED=%llu\n", (unsigned long long)seed);
        fflush(stdout);
        kiln_rollup_limits = (struct kiln_rollup_limits){.rows_min = 1,
                                                         .tree_rows = 1,
                                                         .node_rows = 1,
                                                         .nodes_min = 1 + (uint32_t)seed % 30,
                                                         .nodes_max = 1 + (uint32_t)seed % 30,
                                                         .nodes_coarse = 3,
                                                         .hour_ns = 100 + 300 * (seed % 10)};
        rolled += try_store(seed);
        kiln_rollup_limits = usual;
    }
    CHECK(only || rolled > 100);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions of every kind while profiles come, heads are cut and blocks are merged: each sees
 * everything that was acknowledged before it, once.
 */
#include <pthread.h>

#include "answers.h"
#include "base/clock.h"
#include "drawn.h"
#include "test.h"
#include "traffic.h"

#define NOW       (UINT64_C(1700000000) * KILN_NS_PER_S)
#define APPENDERS 2
#define ASKERS    3
#define EACH      500

static void *append(void *context)
{
    struct traffic_thread *w = context;

    for (uint32_t i = 0; i < EACH; i++) {
        char stacks[96];
        struct kiln_drawn p = {.stacks = stacks,
                               .time_ns = NOW + w->number * 1000u + i,
                               .resource = "service.name=shop"};
        struct kiln_batch *batch;

        snprintf(stacks, sizeof(stacks), "main;f%u 1@%llu color=c%u ^%u.1\nmain 2\n", i % 7,
                 (unsigned long long)p.time_ns, i % 3, 1 + i % 5);
        batch = kiln_test_batch(&p, 1);
        atomic_fetch_add(&w->t->begun, 3);
        EXPECT(w->t, traffic_append(w->t, batch) == 0);
        atomic_fetch_add(&w->t->acknowledged, 3);
        kiln_batch_unref(batch);
    }
    atomic_fetch_sub(&w->t->running, 1);
    return NULL;
}

static int64_t merged_total(struct traffic *t, const struct kiln_question *q)
{
    struct kiln_merge_wants wants = {.nodes_max = 4, .functions = true};
    struct kiln_merged *merged = NULL;
    int64_t total = 0;

    EXPECT(t, t->kit.engine->ops->merge(t->kit.engine, q, &wants, &merged, NULL) == 0);
    if (merged) {
        EXPECT(t, merged->flame->nodes[0].total == merged->total);
        total = merged->total;
    }
    kiln_merged_free(merged);
    return total;
}

static int64_t timeline_total(struct traffic *t, const struct kiln_question *q, uint32_t n_by)
{
    const struct kiln_str by = KILN_STR("color");
    struct kiln_timeline_opts opts = {.step_ns = 50, .by = &by, .n_by = n_by, .exemplars = true};
    struct kiln_timeline *timeline = NULL;
    int64_t total = 0;

    EXPECT(t, t->kit.engine->ops->timeline(t->kit.engine, q, &opts, &timeline, NULL) == 0);
    for (uint32_t i = 0; timeline && i < timeline->n_series; i++)
        total += (int64_t)timeline->series[i].sum;
    kiln_timeline_free(timeline);
    return total;
}

static int64_t found_total(struct traffic *t, const struct kiln_question *q)
{
    struct kiln_found_opts opts = {.limit = 10 * APPENDERS * EACH};
    struct kiln_found *found = NULL;
    int64_t total = 0;

    EXPECT(t, t->kit.engine->ops->found(t->kit.engine, q, &opts, &found, NULL) == 0);
    for (uint32_t i = 0; found && i < found->n_rows; i++)
        total += found->rows[i].value;
    kiln_found_free(found);
    return total;
}

/* Of each profile one sample has a time, of value 1, and one has none: as much as three. */
static int64_t moments_total(struct traffic *t, const struct kiln_question *q)
{
    struct kiln_moments_opts opts = {.limit = 10 * APPENDERS * EACH};
    struct kiln_moments *moments = NULL;
    int64_t total = 0;

    EXPECT(t, t->kit.engine->ops->moments(t->kit.engine, q, &opts, &moments, NULL) == 0);
    if (moments) {
        EXPECT(t, moments->n_all == 2 * moments->n_timed);
        EXPECT(t, moments->batch->n_samples == moments->n_timed);
        total = 3 * (int64_t)moments->n_timed;
    }
    kiln_moments_free(moments);
    return total;
}

static void ask_labels(struct traffic *t, const struct kiln_question *q, bool any)
{
    const struct kiln_str name = KILN_STR("color");
    struct kiln_labels *labels = NULL;

    EXPECT(t, t->kit.engine->ops->labels(t->kit.engine, q, &name, 1, &labels, NULL) == 0);
    EXPECT(t, !labels || !any || labels->n_rows >= 2);
    kiln_labels_free(labels);
}

static void *ask(void *context)
{
    struct traffic_thread *w = context;
    struct traffic *t = w->t;

    for (uint32_t i = w->number; atomic_load(&t->running); i++) {
        static const struct kiln_str tenant = {"anonymous", 9};
        struct kiln_leash leash = {0};
        struct kiln_question q = {.tenants = &tenant, .n_tenants = 1, .leash = &leash};
        int64_t least = atomic_load(&t->acknowledged), total;

        if (i % 6 == 4) {
            ask_labels(t, &q, least > 0);
            continue;
        }
        total = i % 6 == 0   ? merged_total(t, &q)
                : i % 6 == 1 ? timeline_total(t, &q, 0)
                : i % 6 == 2 ? timeline_total(t, &q, 1)
                : i % 6 == 3 ? found_total(t, &q)
                             : moments_total(t, &q);
        EXPECT(t, total >= least && total <= atomic_load(&t->begun));
    }
    return NULL;
}

TEST(answers, every_answer_has_each_profile_once_whatever_goes_on)
{
    struct traffic t = {.running = APPENDERS};
    struct traffic_thread workers[APPENDERS + ASKERS];
    pthread_t threads[APPENDERS + ASKERS + 1];
    struct kiln_question q = kiln_test_question();

    kit_init(&t.kit, NOW);
    for (uint32_t i = 0; i < APPENDERS + ASKERS; i++) {
        workers[i] = (struct traffic_thread){&t, i};
        CHECK_OK(pthread_create(&threads[i], NULL, i < APPENDERS ? append : ask, &workers[i]));
    }
    CHECK_OK(pthread_create(&threads[APPENDERS + ASKERS], NULL, traffic_cut, &t));
    for (uint32_t i = 0; i <= APPENDERS + ASKERS; i++)
        pthread_join(threads[i], NULL);
    CHECK(!atomic_load(&t.failed));
    CHECK_EQ(merged_total(&t, &q), 3 * APPENDERS * EACH);
    CHECK_EQ(timeline_total(&t, &q, 1), 3 * APPENDERS * EACH);
    CHECK_EQ(found_total(&t, &q), 3 * APPENDERS * EACH);
    CHECK_EQ(moments_total(&t, &q), 3 * APPENDERS * EACH);
    kit_done(&t.kit);
}

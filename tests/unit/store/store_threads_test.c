/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends, questions, cuts and merges at once: every question sees each profile that was
 * acknowledged before it exactly once, and none twice.
 */
#include <pthread.h>

#include "base/clock.h"
#include "drawn.h"
#include "test.h"
#include "traffic.h"

#define NOW       (UINT64_C(1700000000) * KILN_NS_PER_S)
#define APPENDERS 3
#define EACH      300

static void *append(void *context)
{
    struct traffic_thread *a = context;

    for (uint32_t i = 0; i < EACH; i++) {
        char stacks[64];
        struct kiln_drawn p = {.stacks = stacks,
                               .time_ns = NOW + a->number * 1000u + i,
                               .resource = "service.name=shop"};
        struct kiln_batch *batch;

        snprintf(stacks, sizeof(stacks), "main;f%u 1\n", i % 7);
        batch = kiln_test_batch(&p, 1);
        atomic_fetch_add(&a->t->begun, 1);
        EXPECT(a->t, traffic_append(a->t, batch) == 0);
        atomic_fetch_add(&a->t->acknowledged, 1);
        if (i % 5 == 0) /* again: nothing changes */
            EXPECT(a->t, traffic_append(a->t, batch) == 0);
        kiln_batch_unref(batch);
    }
    atomic_fetch_sub(&a->t->running, 1);
    return NULL;
}

static void *ask(void *context)
{
    struct traffic *t = context;

    while (atomic_load(&t->running)) {
        int64_t least = atomic_load(&t->acknowledged);
        struct kiln_selection selection = {.tenant = KILN_STR("anonymous")};
        struct kiln_err err = {0};
        struct kiln_batch *batch;
        int64_t most;

        if (t->kit.engine->ops->select(t->kit.engine, &selection, 0, &batch, &err) < 0) {
            fprintf(stderr, "select: %s: %s\n", err.where, err.text);
            atomic_store(&t->failed, true);
            continue;
        }
        most = atomic_load(&t->begun);
        EXPECT(t, batch->n_profiles >= least && batch->n_profiles <= most);
        kiln_batch_unref(batch);
        EXPECT(t, (int64_t)kit_stats(&t->kit).profiles >= least);
    }
    return NULL;
}

/* The same of a merge, which reads the head while it grows. */
static void *add_up(void *context)
{
    static const struct kiln_str tenant = {"anonymous", 9};
    static const struct kiln_str with = {"main", 4};
    static const struct kiln_merge_wants wants = {.nodes_max = 5, .functions = true};
    struct traffic *t = context;

    for (uint32_t i = 0; atomic_load(&t->running); i++) {
        int64_t least = atomic_load(&t->acknowledged);
        struct kiln_leash leash = {0};
        struct kiln_question q = {.tenants = &tenant, .n_tenants = 1, .leash = &leash};
        struct kiln_merged *merged = NULL;

        if (i % 2) {
            q.stacks.with = &with;
            q.stacks.n_with = 1;
        }
        if (t->kit.engine->ops->merge(t->kit.engine, &q, &wants, &merged, NULL) < 0) {
            atomic_store(&t->failed, true);
            continue;
        }
        EXPECT(t, merged->total >= least && merged->total <= atomic_load(&t->begun));
        EXPECT(t, merged->flame->nodes[0].total == merged->total);
        EXPECT(t, merged->basis.n_damaged == 0);
        kiln_merged_free(merged);
    }
    return NULL;
}

TEST(store, every_question_sees_each_profile_once_whatever_goes_on)
{
    struct traffic t = {.running = APPENDERS};
    struct traffic_thread appenders[APPENDERS];
    pthread_t threads[APPENDERS + 3];
    struct kiln_batch *all;

    kit_init(&t.kit, NOW);
    kit_close(&t.kit);
    t.kit.opts.no_background = false;
    t.kit.opts.cut_raw_bytes = (uint64_t)1 << 20;
    kit_open(&t.kit);
    for (uint32_t i = 0; i < APPENDERS; i++) {
        appenders[i] = (struct traffic_thread){&t, i};
        CHECK_OK(pthread_create(&threads[i], NULL, append, &appenders[i]));
    }
    CHECK_OK(pthread_create(&threads[APPENDERS], NULL, ask, &t));
    CHECK_OK(pthread_create(&threads[APPENDERS + 1], NULL, traffic_cut, &t));
    CHECK_OK(pthread_create(&threads[APPENDERS + 2], NULL, add_up, &t));
    for (uint32_t i = 0; i < APPENDERS + 3; i++)
        pthread_join(threads[i], NULL);
    CHECK(!atomic_load(&t.failed));
    all = kit_select(&t.kit, 0, 0);
    CHECK_EQ(all->n_profiles, APPENDERS * EACH);
    kiln_batch_unref(all);
    kit_reopen(&t.kit);
    CHECK_EQ(kit_stats(&t.kit).profiles, APPENDERS * EACH);
    kit_done(&t.kit);
}

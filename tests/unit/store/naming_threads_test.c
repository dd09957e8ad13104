/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names come and go while profiles come, heads are cut, blocks are merged and questions are asked:
 * no sample is lost or doubled, and in the end everything has its name.
 */
#include <pthread.h>

#include "answers.h"
#include "base/clock.h"
#include "nameless.h"
#include "test.h"
#include "traffic.h"

#define NOW       (UINT64_C(1700000000) * KILN_NS_PER_S)
#define ADDRESSES 16u
#define EACH      300u

static const struct kiln_str tenant = {"anonymous", 9};

static void *append(void *context)
{
    struct traffic *t = context;

    for (uint32_t i = 0; i < EACH; i++) {
        char stacks[64];
        struct kiln_nameless p = {
            .stacks = stacks, .build_id = i % 2 ? "abc" : "abd", .time_ns = NOW + i};
        struct kiln_batch *batch;

        snprintf(stacks, sizeof(stacks), "start;main@%x;%x 1\n", 0x1000 + i % ADDRESSES,
                 0x2000 + i % ADDRESSES);
        batch = kiln_test_nameless(&p);
        atomic_fetch_add(&t->begun, 1);
        EXPECT(t, traffic_append(t, batch) == 0);
        atomic_fetch_add(&t->acknowledged, 1);
        kiln_batch_unref(batch);
    }
    atomic_fetch_sub(&t->running, 1);
    return NULL;
}

/* As somebody would who looks names up. */
static int name_all(void *context, const struct kiln_unnamed *u)
{
    static const struct kiln_symbol_frame frames[] = {
        {.name = {"inner", 5}, .file = {"i.c", 3}, .line = 1},
        {.name = {"outer", 5}, .file = {"o.c", 3}, .line = 2},
    };
    struct traffic *t = context;
    struct kiln_engine *engine = t->kit.engine;

    for (uint32_t i = 0; i < u->n; i++) {
        struct kiln_symbol symbol = {
            .address = u->addresses[i], .size = 1, .frames = frames, .n = 2};

        EXPECT(t, engine->ops->put_symbols(engine, tenant, u->build_id, &symbol, 1, NULL) == 0);
    }
    return 0;
}

static void *name(void *context)
{
    struct traffic *t = context;
    struct kiln_engine *engine = t->kit.engine;

    for (uint32_t i = 0; atomic_load(&t->running); i++) {
        EXPECT(t, engine->ops->unnamed(engine, tenant, name_all, t, NULL) == 0);
        if (i % 8 == 7)
            EXPECT(t, engine->ops->drop_symbols(engine, tenant, KILN_STR("abd"), NULL) == 0);
    }
    return NULL;
}

static void *ask(void *context)
{
    struct traffic *t = context;
    struct kiln_engine *engine = t->kit.engine;

    while (atomic_load(&t->running)) {
        struct kiln_merge_wants wants = {.nodes_max = 100, .functions = true, .profile = true};
        int64_t least = atomic_load(&t->acknowledged);
        struct kiln_merged *merged = NULL;
        struct kiln_leash leash = {0};
        struct kiln_question q = {.tenants = &tenant, .n_tenants = 1, .leash = &leash};

        EXPECT(t, engine->ops->merge(engine, &q, &wants, &merged, NULL) == 0);
        EXPECT(t, merged && merged->total >= least && merged->total <= atomic_load(&t->begun));
        kiln_merged_free(merged);
    }
    return NULL;
}

TEST(naming, names_come_while_everything_else_goes_on)
{
    static void *(*const mains[])(void *) = {append, name, ask, ask, traffic_cut};
    pthread_t threads[KILN_ARRAY_LEN(mains)];
    const struct kiln_merge_wants tree = {.nodes_max = 100};
    struct kiln_question q = kiln_test_question();
    struct traffic t = {.running = 1};
    char whole[128];

    kit_init(&t.kit, NOW);
    for (size_t i = 0; i < KILN_ARRAY_LEN(mains); i++)
        CHECK_OK(pthread_create(&threads[i], NULL, mains[i], &t));
    for (size_t i = 0; i < KILN_ARRAY_LEN(mains); i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(t.kit.engine->ops->unnamed(t.kit.engine, tenant, name_all, &t, NULL));
    CHECK(!atomic_load(&t.failed));
    snprintf(whole, sizeof(whole),
             "total %u 0\n  start %u 0\n    outer %u 0\n      inner %u 0\n        outer %u 0\n"
             "          inner %u %u\n",
             EACH, EACH, EACH, EACH, EACH, EACH, EACH);
    CHECK_TEXT(kiln_test_merge(t.kit.engine, &q, &tree), whole);
    kit_done(&t.kit);
}

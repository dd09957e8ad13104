/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends while the applier stands still: they wait for it, and from some number on are refused.
 */
#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "drawn.h"
#include "store/store_int.h"
#include "store_kit.h"
#include "test.h"

#define NOW (UINT64_C(1700000000) * KILN_NS_PER_S)

struct sent {
    struct kiln_append append;
    _Atomic int code; /* 1: not told yet */
};

static void told(struct kiln_append *append, int code)
{
    atomic_store(&((struct sent *)append->context)->code, code);
}

static void send(struct store_kit *kit, struct sent *sent, uint64_t time_ns)
{
    struct kiln_drawn p = {
        .stacks = "main;read 1\n", .time_ns = time_ns, .resource = "service.name=shop"};

    *sent = (struct sent){.append = {.batch = kiln_test_batch(&p, 1),
                                     .tenant = "anonymous",
                                     .received_ns = NOW,
                                     .done = told,
                                     .context = sent},
                          .code = 1};
    kit->engine->ops->append(kit->engine, &sent->append);
}

/* Waits until so many are durable: then every earlier one was told of, if it is told so early. */
static void wait_for(struct store_kit *kit, uint64_t n)
{
    while (kiln_wal_durable(kiln_store_of(kit->engine)->wal) < n ||
           kiln_store_lag(kiln_store_of(kit->engine)).n < n)
        sched_yield();
}

enum { MOST = 64 };

TEST(lag, appends_wait_for_the_applier_and_then_are_refused)
{
    struct sent sent[MOST + 1];
    struct kiln_tenant *tenant;
    struct store_kit kit;

    kit_init(&kit, NOW);
    kit_close(&kit);
    kit.opts.lag_wait_ns = 1;
    kit.opts.lag_max_ns = 1;
    kit_open(&kit);
    CHECK_OK(kiln_tenant_get(kiln_store_of(kit.engine), KILN_STR("anonymous"), &tenant));
    pthread_mutex_lock(&tenant->lock);
    for (uint64_t i = 0; i < MOST; i++) {
        send(&kit, &sent[i], NOW + i);
        wait_for(&kit, i + 1);
    }
    CHECK_EQ(sent[0].code, 0); /* the applier was not behind */
    for (uint32_t i = 1; i < MOST - 1; i++)
        CHECK_EQ(sent[i].code, 1);
    send(&kit, &sent[MOST], NOW + MOST);
    CHECK_EQ(sent[MOST].code, -EAGAIN);
    CHECK_TEXT(sent[MOST].append.err.text,
               "the store has more batches waiting to be added than it adds in two seconds");
    pthread_mutex_unlock(&tenant->lock);
    kiln_store_settle(kit.engine);
    while (atomic_load(&sent[MOST - 1].code) == 1)
        sched_yield();
    for (uint32_t i = 0; i < MOST; i++)
        CHECK_EQ(sent[i].code, 0);
    CHECK_EQ(kiln_store_lag(kiln_store_of(kit.engine)).age_ns, 0);
    CHECK_TEXT(kit_drawing(&kit, 0, 0), "main;read 64\n");
    for (uint32_t i = 0; i <= MOST; i++)
        kiln_batch_unref(sent[i].append.batch);
    kit_done(&kit);
}

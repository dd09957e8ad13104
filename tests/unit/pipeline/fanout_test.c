/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "core/reopen.h"
#include "drawn.h"
#include "pipeline/fanout.h"
#include "pipeline/processors/changer.h"
#include "test.h"

/* A consumer that keeps a delivery until it is told how to end it. */
struct keeper {
    struct kiln_consumer consumer; /* first */
    struct kiln_delivery *kept;
};

static void keep(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    ((struct keeper *)consumer)->kept = delivery;
}

static void end(struct keeper *keeper, int code, uint32_t rejected)
{
    kiln_delivery_end(keeper->kept, &(struct kiln_outcome){.code = code, .rejected = rejected});
}

struct told {
    int times, code;
    uint32_t rejected;
};

static void tell(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct told *told = delivery->context;

    told->times++;
    told->code = outcome->code;
    told->rejected = outcome->rejected;
}

/* How a delivery to three ends when each of them ends with these codes. */
static struct told ended_with(int a, int b, int c)
{
    struct keeper keepers[3] = {
        {{.consume = keep}, NULL}, {{.consume = keep}, NULL}, {{.consume = keep}, NULL}};
    struct kiln_consumer *next[3] = {&keepers[0].consumer, &keepers[1].consumer,
                                     &keepers[2].consumer};
    struct told told = {0};
    struct kiln_delivery delivery = {.body = KILN_STR("bytes"), .done = tell, .context = &told};
    struct kiln_consumer *fanout;
    uint64_t live = kiln_mem_live();

    CHECK_OK(kiln_fanout_new(next, 3, &fanout));
    fanout->consume(fanout, &delivery);
    for (int i = 0; i < 3; i++)
        CHECK(keepers[i].kept->body.ptr == delivery.body.ptr);
    end(&keepers[1], b, 0);
    end(&keepers[2], c, 0);
    CHECK_EQ(told.times, 0);
    end(&keepers[0], a, 0);
    CHECK_EQ(told.times, 1);
    kiln_fanout_free(fanout);
    CHECK_EQ(kiln_mem_live(), live);
    return told;
}

TEST(fanout, ends_once_and_well_when_all_did)
{
    CHECK_EQ(ended_with(0, 0, 0).code, 0);
}

TEST(fanout, ends_as_the_worst_which_is_one_to_try_again)
{
    CHECK_EQ(ended_with(0, KILN_E_MALFORMED, 0).code, KILN_E_MALFORMED);
    CHECK_EQ(ended_with(KILN_E_MALFORMED, 0, -EAGAIN).code, -EAGAIN);
    CHECK_EQ(ended_with(-ENOSPC, KILN_E_MALFORMED, 0).code, -ENOSPC);
}

/* Copies what it is given, as others have it too. */
static int reopen(void *context, struct kiln_batch **batch, struct kiln_err *err)
{
    struct kiln_builder *b;
    int r = kiln_reopen(*batch, &b, err);

    (void)context;
    *batch = NULL;
    return r < 0 ? r : kiln_builder_finish(b, batch, err) < 0 ? -ENOMEM : 1;
}

/* Two pipelines that change what they get hold a batch each, and the pool knows. */
TEST(fanout, copies_are_charged)
{
    struct keeper keepers[2] = {{{.consume = keep}, NULL}, {{.consume = keep}, NULL}};
    struct kiln_consumer *next[2], *fanout;
    struct kiln_pool pool;
    struct told told = {0};
    struct kiln_delivery delivery = {
        .batch = kiln_test_stacks("main;read 1\n"), .pool = &pool, .done = tell, .context = &told};

    kiln_pool_init(&pool, "test", 1 << 20, NULL);
    for (int i = 0; i < 2; i++)
        CHECK_OK(
            kiln_changer_new(&(struct kiln_processor_opts){.id = "x", .next = &keepers[i].consumer},
                             &(struct kiln_change){.change = reopen}, &next[i]));
    CHECK_OK(kiln_fanout_new(next, 2, &fanout));
    fanout->consume(fanout, &delivery);
    for (int i = 0; i < 2; i++)
        CHECK(keepers[i].kept->charged > 0);
    CHECK_EQ(pool.used, keepers[0].kept->charged + keepers[1].kept->charged);
    end(&keepers[0], 0, 0);
    CHECK_EQ(pool.used, keepers[1].kept->charged);
    end(&keepers[1], 0, 0);
    CHECK_EQ(pool.used, 0);
    CHECK_EQ(told.code, 0);
    kiln_fanout_free(fanout);
    for (int i = 0; i < 2; i++)
        kiln_changer_free(next[i]);
    CHECK_EQ(kiln_mem_live(), 0);
}

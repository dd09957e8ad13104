/* SPDX-License-Identifier: Apache-2.0 */
#include "store/exporter.h"

#include <errno.h>

#include "drawn.h"
#include "test.h"

/* An engine that answers what it is told to. */
struct fake {
    struct kiln_engine engine;
    int code;
    uint32_t rejected;
    const char *tenant;
    size_t body_len, recipe_len;
};

static void fake_append(struct kiln_engine *engine, struct kiln_append *append)
{
    struct fake *fake = (struct fake *)engine;

    fake->tenant = append->tenant;
    fake->body_len = append->body.len;
    fake->recipe_len = append->recipe.len;
    append->rejected = fake->rejected;
    kiln_err_set(&append->err, fake->code ? fake->code : KILN_E_RANGE, NULL, "because");
    append->done(append, fake->code);
}

static const struct kiln_engine_ops fake_ops = {.append = fake_append};

static void keep_outcome(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    *(struct kiln_outcome *)delivery->context = *outcome;
}

static struct kiln_outcome deliver(struct fake *fake)
{
    struct kiln_outcome outcome = {.code = 1};
    struct kiln_delivery delivery = {.batch = kiln_test_stacks("a 1\n"),
                                     .tenant = "shop",
                                     .body = KILN_STR("bytes"),
                                     .recipe = KILN_STR("recipe"),
                                     .done = keep_outcome,
                                     .context = &outcome};
    struct kiln_consumer *exporter;

    fake->engine.ops = &fake_ops;
    CHECK_OK(kiln_store_exporter_new(&fake->engine, &exporter));
    exporter->consume(exporter, &delivery);
    kiln_store_exporter_free(exporter);
    CHECK(delivery.batch == NULL);
    return outcome;
}

TEST(exporter, hands_a_delivery_on_and_its_outcome_back)
{
    struct fake fake = {.rejected = 3};
    struct kiln_outcome outcome = deliver(&fake);

    CHECK_EQ(outcome.code, 0);
    CHECK_EQ(outcome.rejected, 3);
    CHECK_TEXT(outcome.err.text, "because");
    CHECK_TEXT(fake.tenant, "shop");
    CHECK_EQ(fake.body_len, 5);
    CHECK_EQ(fake.recipe_len, 6);
}

TEST(exporter, says_when_it_is_worth_trying_again)
{
    static const int codes[] = {-EAGAIN, -ENOSPC, -EIO, -ESHUTDOWN};

    for (size_t i = 0; i < KILN_ARRAY_LEN(codes); i++) {
        struct fake fake = {.code = codes[i]};
        struct kiln_outcome outcome = deliver(&fake);

        CHECK_EQ(outcome.code, codes[i]);
        CHECK(outcome.retry_after_s > 0);
        CHECK_TEXT(outcome.err.text, "because");
    }
    CHECK_EQ(deliver(&(struct fake){.code = KILN_E_LIMIT}).retry_after_s, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "core/redact.h"
#include "drawn.h"
#include "pipeline/pipeline.h"
#include "stacks.h"
#include "test.h"

/* What came out at the end: a drawing, whether the bytes were still there, the outcome. */
struct end {
    struct kiln_consumer consumer; /* first */
    char *drawing;
    bool has_body;
    struct kiln_outcome outcome;
    size_t charged;
};

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct end *end = (struct end *)consumer;

    end->drawing = stacks_of_batch(delivery->batch);
    CHECK_EQ(delivery->body.len > 0, delivery->recipe.len > 0);
    end->has_body = delivery->body.len > 0;
    end->charged = delivery->charged;
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

static void done(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    struct end *end = delivery->context;

    end->outcome = *outcome;
}

static struct end redact(const char *rules, const char *stacks, struct kiln_pool *pool)
{
    struct end end = {.consumer.consume = consume};
    struct kiln_consumer *processor;
    struct kiln_redact *parsed = NULL;
    struct kiln_err err = {0};
    struct kiln_delivery delivery = {.batch = kiln_test_stacks(stacks),
                                     .body = KILN_STR("bytes"),
                                     .recipe = KILN_STR("recipe"),
                                     .done = done,
                                     .context = &end,
                                     .pool = pool};

    if (rules)
        CHECK_OK(kiln_redact_parse(kiln_str_of(rules), &parsed, &err));
    CHECK_OK(kiln_redact_processor_new(parsed, &end.consumer, NULL, &processor));
    if (pool && kiln_pool_take(pool, kiln_batch_bytes(delivery.batch)) == 0)
        delivery.charged = kiln_batch_bytes(delivery.batch);
    processor->consume(processor, &delivery);
    kiln_redact_processor_free(processor);
    kiln_redact_free(parsed);
    return end;
}

#define NAMES "- {match: name, regex: customer, action: drop}\n"

TEST(redact_processor, what_rules_find_does_not_go_on)
{
    struct kiln_pool pool;
    struct end end;

    kiln_pool_init(&pool, "ingest", 10u << 20, NULL);
    end = redact(NAMES, "main;customer_4711 3\n", &pool);
    CHECK_TEXT(end.drawing, "main;[redacted] 3\n");
    CHECK(!end.has_body);
    CHECK_EQ(end.outcome.code, 0);
    CHECK(end.charged > 0);
    CHECK_EQ(pool.used, 0);
    kiln_free(end.drawing);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* The bytes may say what no sample refers to, and no rule has looked at that. */
TEST(redact_processor, bytes_do_not_go_on_where_nothing_is_found_either)
{
    struct kiln_pool pool;
    struct end end;

    kiln_pool_init(&pool, "ingest", 10u << 20, NULL);
    end = redact(NAMES, "main;read 3\n", &pool);
    CHECK_TEXT(end.drawing, "main;read 3\n");
    CHECK(!end.has_body);
    CHECK(end.charged > 0);
    CHECK_EQ(pool.used, 0);
    kiln_free(end.drawing);
}

TEST(redact_processor, without_rules_all_goes_on_as_it_came)
{
    struct kiln_pool pool;
    struct end end;

    kiln_pool_init(&pool, "ingest", 10, NULL);
    end = redact(NULL, "main;customer_4711 3\n", &pool);
    CHECK_TEXT(end.drawing, "main;customer_4711 3\n");
    CHECK(end.has_body);
    kiln_free(end.drawing);
}

TEST(redact_processor, without_memory_nothing_goes_on)
{
    struct kiln_pool pool;
    struct end end;

    kiln_pool_init(&pool, "ingest", 10, NULL);
    end = redact(NAMES, "main;customer_4711 3\n", &pool);
    CHECK(!end.drawing);
    CHECK_EQ(end.outcome.code, -EAGAIN);
    CHECK_EQ(pool.used, 0);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(redact_processor, what_cannot_be_redacted_is_refused)
{
    struct end end =
        redact("- {match: name, regex: (a+)+$, action: drop}\n",
               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! 3\n", NULL);

    CHECK(!end.drawing);
    CHECK(end.outcome.code < 0);
    CHECK(strstr(end.outcome.err.where, "redaction"));
    CHECK_EQ(kiln_mem_live(), 0);
}

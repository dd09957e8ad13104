/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/mem.h"
#include "drawn.h"
#include "queue_kit.h"
#include "test.h"

/* ---- in memory ---- */

TEST(queue, acknowledges_what_waits_in_memory_and_sends_it)
{
    struct fixture f = {.fake.hold = true};

    start(&f);
    CHECK_EQ(queue_gauge(&f, "otelcol_exporter_queue_capacity"), 3);
    send(&f, "main;read 1\nmain;write 2\n");
    send(&f, "main 3\n");
    send(&f, "main 4\n");
    CHECK_EQ(f.ended, 3);
    CHECK_EQ(f.outcome.code, 0);
    CHECK_EQ(f.fake.n_held, 2); /* consumers */
    CHECK_EQ(queue_gauge(&f, "otelcol_exporter_queue_size"), 3);
    CHECK_EQ(queue_gauge(&f, "otelcol_exporter_in_flight_requests"), 2);
    CHECK_EQ(queued(&f), 4);
    check_conservation(&f);
    finish(&f.fake, take_held(&f.fake));
    CHECK_EQ(f.fake.n_held, 2);
    CHECK_EQ(queued(&f), 2);
    check_conservation(&f);
    f.fake.hold = false;
    finish(&f.fake, take_held(&f.fake));
    finish(&f.fake, take_held(&f.fake));
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 4);
    CHECK_EQ(f.fake.samples, 4);
    finish_fixture(&f);
}

TEST(queue, holds_deliveries_back_when_it_is_full)
{
    struct fixture f = {.fake.hold = true};

    start(&f);
    for (int i = 0; i < 5; i++)
        send(&f, "main 1\n");
    CHECK_EQ(f.ended, 3);
    CHECK_EQ(queue_gauge(&f, "kiln_exporter_waiting_deliveries"), 2);
    finish(&f.fake, take_held(&f.fake));
    CHECK_EQ(f.ended, 4);
    CHECK_EQ(queued(&f), 3);
    check_conservation(&f);
    f.fake.hold = false;
    finish(&f.fake, take_held(&f.fake));
    finish(&f.fake, take_held(&f.fake));
    CHECK_EQ(f.ended, 5);
    CHECK_EQ(queue_gauge(&f, "kiln_exporter_waiting_deliveries"), 0);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 5);
    CHECK_EQ(failed(&f), 0);
    finish_fixture(&f);
}

/* What was taken stays, and nobody is left waiting. */
TEST(queue, can_be_let_go_of)
{
    struct fixture f = {.fake.hold = true};

    start(&f);
    for (int i = 0; i < 5; i++)
        send(&f, "main 1\n");
    kiln_sendq_let_go(f.queue);
    CHECK_EQ(f.ended, 5);
    CHECK_EQ(f.outcome.code, -ESHUTDOWN); /* which is to be tried again */
    CHECK_EQ(queued(&f), 3);
    kiln_sendq_go_on(f.queue);
    stop(&f, 0);
    finish_fixture(&f);
}

TEST(queue, refuses_when_it_is_full_only_if_told_so)
{
    struct fixture f = {.fake.hold = true, .opts.refuse_when_full = true};

    start(&f);
    for (int i = 0; i < 4; i++)
        send(&f, "main 1\nidle 1\n");
    CHECK_EQ(f.ended, 4);
    CHECK_EQ(f.outcome.code, -EAGAIN); /* which receivers make a retryable status of */
    CHECK(f.outcome.retry_after_s > 0);
    CHECK_EQ(failed(&f), 2);
    stop(&f, 0);
    CHECK_EQ(dropped(&f, "shutdown"), 6);
    finish_fixture(&f);
}

TEST(queue, is_measured_in_items_or_bytes)
{
    struct fixture f = {
        .fake.hold = true,
        .opts = {.sizer = KILN_SIZE_ITEMS, .size = 3, .refuse_when_full = true},
    };

    start(&f);
    send(&f, "main 1\nidle 1\n");
    CHECK_EQ(queue_gauge(&f, "otelcol_exporter_queue_size"), 2);
    send(&f, "main 1\nidle 1\n");
    CHECK_EQ(f.outcome.code, -EAGAIN);
    send(&f, "main 1\n");
    CHECK_EQ(f.outcome.code, 0);
    CHECK_EQ(queue_gauge(&f, "otelcol_exporter_queue_size"), 3);
    stop(&f, 0);
    finish_fixture(&f);

    f = (struct fixture){.fake.hold = true, .opts = {.sizer = KILN_SIZE_BYTES, .size = 1}};
    start(&f);
    send(&f, "main 1\n"); /* too large for the queue, and alone in it */
    CHECK_EQ(f.ended, 1);
    CHECK(queue_gauge(&f, "otelcol_exporter_queue_size") > 20);
    send(&f, "main 1\n");
    CHECK_EQ(f.ended, 1);
    stop(&f, 0);
    CHECK_EQ(f.ended, 2);
    CHECK_EQ(f.outcome.code, -ESHUTDOWN);
    CHECK_EQ(failed(&f), 1);
    finish_fixture(&f);
}

TEST(queue, takes_no_more_memory_than_there_is)
{
    struct kiln_pool pool;
    struct fixture f = {.fake.hold = true, .opts = {.size = 1000, .pool = &pool}};

    kiln_pool_init(&pool, "queue", 1000, NULL);
    start(&f);
    for (int i = 0; i < 50; i++)
        send(&f, "main 1\n");
    CHECK(f.ended > 2 && f.ended < 50);
    CHECK(pool.used > 500 && pool.peak <= 1000);
    CHECK_EQ(queue_gauge(&f, "kiln_exporter_waiting_deliveries"), 50 - f.ended);
    f.fake.hold = false;
    finish(&f.fake, take_held(&f.fake));
    finish(&f.fake, take_held(&f.fake));
    stop(&f, PATIENCE_NS);
    CHECK_EQ(f.ended, 50);
    CHECK_EQ(sent(&f), 50);
    CHECK_EQ(pool.used, 0);
    finish_fixture(&f);
    pool.limit = 10; /* less than a request: one may be there alone */
    f = (struct fixture){.opts = {.size = 1000, .pool = &pool}};
    start(&f);
    send(&f, "main 1\n");
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 1);
    finish_fixture(&f);
}

/* ---- results ---- */

TEST(queue, tells_the_result_to_who_waits_for_it)
{
    struct fixture f = {.opts.wait_for_result = true, .fake.hold = true, .fake.rejected = 2};

    start(&f);
    send(&f, "main 1\n");
    CHECK_EQ(f.ended, 0);
    finish(&f.fake, take_held(&f.fake));
    CHECK_EQ(f.ended, 1);
    CHECK_EQ(f.outcome.code, 0);
    CHECK_EQ(f.outcome.rejected, 2);
    CHECK_EQ(queue_counter(&f, "kiln_exporter_rejected_profiles_total"), 2);
    CHECK_EQ(f.fake.n_sends, 1); /* what was taken in part is not sent again */
    f.fake.n_fates = 2;
    f.fake.fates[1] = KILN_EXPORT_UNWANTED;
    send(&f, "main 1\n");
    finish(&f.fake, take_held(&f.fake));
    CHECK_EQ(f.outcome.code, -EINVAL);
    CHECK_TEXT(f.outcome.err.text, "because");
    send(&f, "main 1\n");
    stop(&f, 0);
    CHECK_EQ(f.ended, 3);
    CHECK_EQ(f.outcome.code, -EAGAIN);
    CHECK_EQ(sent(&f), 1);
    CHECK_EQ(dropped(&f, "refused"), 1);
    CHECK_EQ(dropped(&f, "shutdown"), 1);
    finish_fixture(&f);
}

TEST(queue, splits_what_is_too_large_and_counts_what_cannot_be_split)
{
    struct fixture f = {.opts.size = 100};
    size_t large = REQUEST_MAX;
    char *stacks = malloc(2 * large);

    start(&f);
    memset(stacks, 'x', large); /* a name that no request can hold */
    memcpy(stacks + large, " 1\nmain 1\n", 11);
    send(&f, stacks);
    CHECK_EQ(f.ended, 1);
    CHECK_EQ(f.outcome.code, 0);
    CHECK_EQ(f.outcome.rejected, 1);
    CHECK_EQ(dropped(&f, "too_large"), 1);
    CHECK_EQ(sent(&f), 1);
    for (int i = 0; i < 4; i++) /* four names that fit in pairs */
        snprintf(stacks + i * (large / 3 + 3), large / 3 + 4, "%0*d 1\n", (int)large / 3, i);
    send(&f, stacks);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 5);
    CHECK_EQ(f.fake.n_sends, 3);
    free(stacks);
    finish_fixture(&f);
}

/* ---- other tries ---- */

TEST(queue, tries_again_what_may_be_tried_again_and_drops_the_rest)
{
    struct fixture f = {.opts.consumers = 1,
                        .fake = {.n_fates = 4,
                                 .fates = {KILN_EXPORT_AGAIN, KILN_EXPORT_AGAIN, KILN_EXPORT_SENT,
                                           KILN_EXPORT_UNWANTED}}};

    start(&f);
    send(&f, "main 1\n");
    while (sent(&f) < 1)
        sched_yield();
    CHECK_EQ(f.fake.n_sends, 3);
    send(&f, "main 1\n");
    send(&f, "main 1\n");
    stop(&f, PATIENCE_NS);
    CHECK_EQ(f.fake.n_sends, 5);
    CHECK_EQ(sent(&f), 2);
    CHECK_EQ(dropped(&f, "refused"), 1);
    finish_fixture(&f);
}

TEST(queue, gives_up_after_max_elapsed_time)
{
    struct fixture f = {.opts = {.wait_for_result = true,
                                 .retry = {.initial_ns = KILN_NS_PER_MS,
                                           .max_ns = KILN_NS_PER_MS,
                                           .elapsed_max_ns = 20 * KILN_NS_PER_MS,
                                           .multiplier = 1}},
                        .fake.n_fates = UINT32_MAX};

    for (uint32_t i = 0; i < 16; i++)
        f.fake.fates[i] = KILN_EXPORT_AGAIN;
    f.fake.n_fates = 16;
    f.fake.retry_after_ns = 5 * KILN_NS_PER_MS; /* the server's wish counts: 4 tries at most */
    start(&f);
    send(&f, "main 1\n");
    wait_until_ended(&f, 1);
    CHECK_EQ(f.outcome.code, -EAGAIN);
    CHECK(f.fake.n_sends >= 1 && f.fake.n_sends <= 5);
    CHECK_EQ(dropped(&f, "retries"), 1);
    stop(&f, PATIENCE_NS);
    finish_fixture(&f);
}

TEST(queue, does_not_try_again_where_that_is_off)
{
    struct fixture f = {.opts.retry = {.off = true, .initial_ns = 1},
                        .fake = {.n_fates = 1, .fates = {KILN_EXPORT_AGAIN}}};

    start(&f);
    send(&f, "main 1\n");
    stop(&f, PATIENCE_NS);
    CHECK_EQ(f.fake.n_sends, 1);
    CHECK_EQ(dropped(&f, "retries"), 1);
    finish_fixture(&f);
}

TEST(queue, gives_everything_one_more_try_at_the_end)
{
    struct fixture f = {.opts = {.consumers = 1,
                                 .retry = {.initial_ns = 3600 * KILN_NS_PER_S,
                                           .max_ns = 3600 * KILN_NS_PER_S,
                                           .multiplier = 1}},
                        .fake = {.n_fates = 1, .fates = {KILN_EXPORT_AGAIN}}};

    start(&f);
    send(&f, "main 1\n"); /* waits for an hour */
    send(&f, "main 1\n"); /* behind it */
    CHECK_EQ(sent(&f), 0);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 2);
    finish_fixture(&f);
}

/* ---- batching ---- */

TEST(queue, gathers_deliveries_into_one_request)
{
    struct fixture f = {
        .opts.batching = {
            .on = true, .sizer = KILN_SIZE_ITEMS, .flush_ns = 3600 * KILN_NS_PER_S, .min = 4}};

    start(&f);
    send(&f, "main;read 1\nmain;write 1\n");
    CHECK_EQ(f.ended, 0);
    send(&f, "main;read 1\nmain;write 1\n");
    CHECK_EQ(f.ended, 2);
    CHECK_EQ(f.fake.n_sends, 1);
    CHECK_EQ(sent(&f), 4);
    send(&f, "main 1\n"); /* too few, and time is not up: the end sends it */
    stop(&f, PATIENCE_NS);
    CHECK_EQ(f.ended, 3);
    CHECK_EQ(sent(&f), 5);
    finish_fixture(&f);
}

TEST(queue, gathers_those_apart_whose_metadata_differs)
{
    struct fixture f = {.opts.batching = {.on = true,
                                          .sizer = KILN_SIZE_ITEMS,
                                          .flush_ns = 3600 * KILN_NS_PER_S,
                                          .min = 2,
                                          .apart = {{KILN_STR("x-team")}, 1}}};
    const struct kiln_header a = {KILN_STR("X-Team"), KILN_STR("a")};
    const struct kiln_header b = {KILN_STR("X-Team"), KILN_STR("b")};

    start(&f);
    send_with(&f, &a, "main 1\n");
    send_with(&f, &b, "main 1\n");
    send(&f, "main 1\n"); /* of nobody */
    CHECK_EQ(f.fake.n_sends, 0);
    send_with(&f, &a, "main 1\n");
    CHECK_EQ(f.fake.n_sends, 1);
    CHECK_EQ(f.ended, 2);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(f.fake.n_sends, 3);
    CHECK_EQ(sent(&f), 4);
    CHECK_EQ(f.ended, 4);
    finish_fixture(&f);
}

TEST(queue, sends_what_was_gathered_when_time_is_up_and_splits_it)
{
    struct fixture f = {.opts.batching = {.on = true,
                                          .sizer = KILN_SIZE_ITEMS,
                                          .flush_ns = KILN_NS_PER_MS,
                                          .min = 1000,
                                          .max = 2}};

    start(&f);
    send(&f, "a 1\nb 1\nc 1\n");
    wait_until_ended(&f, 1);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(f.fake.n_sends, 2);
    CHECK_EQ(sent(&f), 3);
    finish_fixture(&f);
}

/* Whoever is merged with a sample that no request can hold is not refused for it. */
TEST(queue, leaves_out_what_is_too_large_for_any_request)
{
    struct fixture f = {.opts.batching = {.on = true,
                                          .sizer = KILN_SIZE_BYTES,
                                          .flush_ns = 3600 * KILN_NS_PER_S,
                                          .min = 600,
                                          .max = 600}};
    char stacks[1100];

    start(&f);
    send(&f, "main;one 1\n");
    CHECK_EQ(f.ended, 0);
    snprintf(stacks, sizeof(stacks), "main;%01000d 1\nmain;two 1\n", 0);
    send(&f, stacks);
    CHECK_EQ(f.ended, 2);
    CHECK_EQ(f.outcome.code, 0);
    CHECK_EQ(f.outcome.rejected, 1);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 2);
    CHECK_EQ(dropped(&f, "too_large"), 1);
    finish_fixture(&f);
}

/* ---- many at once ---- */

static void *send_many(void *fixture)
{
    for (int i = 0; i < 200; i++)
        send(fixture, "main;read 1\nmain;write 1\n");
    return NULL;
}

TEST(queue, loses_nothing_among_many_threads)
{
    struct fixture f = {.opts = {.consumers = 3, .size = 5}};
    pthread_t threads[4];

    for (uint32_t i = 0; i < 16; i++)
        f.fake.fates[i] = i % 3 ? KILN_EXPORT_AGAIN : KILN_EXPORT_SENT;
    f.fake.n_fates = 16;
    start(&f);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, send_many, &f);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    wait_until_ended(&f, 800);
    stop(&f, PATIENCE_NS);
    CHECK_EQ(sent(&f), 1600);
    CHECK_EQ(f.fake.samples, 1600);
    CHECK_EQ(failed(&f), 0);
    finish_fixture(&f);
}

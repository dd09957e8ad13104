/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "codec/collapsed.h"
#include "pipeline/receivers/arrival.h"
#include "starved.h"
#include "test.h"

/* Receivers over a pool, and one arrival whose end is noted. */
struct fixture {
    struct kiln_consumer consumer;
    struct kiln_receivers *receivers;
    struct kiln_pool pool;
    struct kiln_request request;
    struct kiln_arrival arrival;
    int code;
    uint32_t n_decoded;
};

static struct fixture f;

static void finish(struct kiln_arrival *arrival, const struct kiln_outcome *outcome)
{
    (void)arrival;
    f.code = outcome->code;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    (void)consumer;
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

static void start(size_t pool_bytes, size_t content_max)
{
    memset(&f, 0, sizeof(f));
    f.consumer.consume = consume;
    kiln_pool_init(&f.pool, "ingest", pool_bytes, NULL);
    CHECK_OK(kiln_receivers_new(&(struct kiln_receivers_opts){.next = &f.consumer,
                                                              .pool = &f.pool,
                                                              .content_max = content_max},
                                &f.receivers));
    kiln_arrival_init(&f.arrival, f.receivers, KILN_RECEIVER_PPROF, &f.request);
    f.arrival.finish = finish;
}

static void stop(void)
{
    CHECK_EQ(f.pool.used, 0);
    kiln_receivers_free(f.receivers);
    CHECK_EQ(kiln_mem_live(), 0);
}

static int decode(void *context, struct kiln_str content, struct kiln_builder *b,
                  struct kiln_err *err)
{
    (void)context;
    f.n_decoded++;
    return kiln_collapsed_decode(content, b, err);
}

static int take(struct kiln_str data, enum kiln_compression compression, struct kiln_err *err)
{
    return kiln_arrival_take(
        &f.arrival,
        &(struct kiln_source){.data = data, .compression = compression, .decode = decode}, err);
}

/* `n` stacks that have nothing in common, compressed. */
static struct kiln_str stacks(struct kiln_buf *out, uint32_t n)
{
    struct kiln_buf text;

    kiln_buf_init(&text, 64u << 20);
    kiln_buf_init(out, 64u << 20);
    for (uint32_t i = 0; i < n; i++)
        kiln_buf_printf(&text, "m%u;p%u;r%u 1\n", i, i, i);
    CHECK_OK(kiln_compress(KILN_GZIP, 0, kiln_buf_str(&text), out));
    kiln_buf_done(&text);
    return kiln_buf_str(out);
}

TEST(arrival, is_charged_for_its_batch_until_it_ends)
{
    struct kiln_err err = {0};

    start(10u << 20, 0);
    CHECK_OK(take(KILN_STR("main;read 3\n"), KILN_PLAIN, &err));
    CHECK_EQ(f.pool.used, kiln_batch_bytes(f.arrival.delivery.batch));
    CHECK_EQ(f.arrival.n_samples, 1);
    CHECK_TEXT(f.arrival.delivery.tenant, "anonymous");
    kiln_arrival_send(&f.arrival);
    CHECK_EQ(f.code, 0);
    stop();
}

TEST(arrival, gets_more_memory_where_its_batch_needs_it)
{
    struct kiln_buf body;
    struct kiln_err err = {0};

    stacks(&body, 20000); /* text is much smaller than what it says */
    start(256u << 20, 0);
    CHECK_OK(take(kiln_buf_str(&body), KILN_GZIP, &err));
    CHECK(f.n_decoded > 1);
    CHECK_EQ(f.arrival.n_samples, 20000);
    kiln_arrival_refuse(&f.arrival, 0, NULL);
    kiln_buf_done(&body);
    stop();
}

TEST(arrival, is_too_large_where_the_pool_never_has_enough)
{
    struct kiln_buf body;
    struct kiln_err err = {0};

    stacks(&body, 20000);
    start(4u << 20, 0);
    CHECK_EQ(take(kiln_buf_str(&body), KILN_GZIP, &err), KILN_E_LIMIT);
    CHECK(f.pool.peak <= 4u << 20);
    kiln_arrival_refuse(&f.arrival, KILN_E_LIMIT, &err);
    CHECK_EQ(f.code, KILN_E_LIMIT);
    kiln_buf_done(&body);
    stop();
}

TEST(arrival, many_of_one_request_that_grow_large_come_to_an_end)
{
    struct kiln_buf body;
    struct kiln_err err = {0};
    uint64_t spent = 0;
    uint32_t n = 0;

    stacks(&body, 20000);
    start(256u << 20, 1u << 20);
    do {
        kiln_arrival_init(&f.arrival, f.receivers, KILN_RECEIVER_PPROF, &f.request);
        f.arrival.finish = finish;
        f.arrival.spent = &spent;
        f.code = take(kiln_buf_str(&body), KILN_GZIP, &err);
        kiln_arrival_refuse(&f.arrival, f.code, &err);
    } while (f.code == 0 && ++n < 1000);
    CHECK_EQ(f.code, KILN_E_LIMIT);
    CHECK(n > 1 && n < 1000);
    CHECK(strstr(err.text, "all in one request"));
    kiln_buf_done(&body);
    stop();
}

TEST(arrival, waits_where_others_have_the_memory)
{
    struct kiln_err err = {0};

    start(10u << 20, 0);
    CHECK_OK(kiln_pool_take(&f.pool, (10u << 20) - 1000));
    CHECK_EQ(take(KILN_STR("main;read 3\n"), KILN_PLAIN, &err), -EAGAIN);
    CHECK_TEXT(err.text, "there is no memory for this request just now");
    kiln_arrival_refuse(&f.arrival, -EAGAIN, &err);
    kiln_pool_give(&f.pool, (10u << 20) - 1000);
    stop();
}

TEST(arrival, a_size_that_lies_is_no_more_than_a_guess)
{
    struct kiln_buf body;
    struct kiln_err err = {0};

    stacks(&body, 3000);
    memset(body.ptr + body.len - 4, 1, 4); /* gzip: 16 MB */
    start(256u << 20, 1u << 20);
    CHECK(take(kiln_buf_str(&body), KILN_GZIP, &err) < 0);
    CHECK(f.pool.peak <= 8u << 20);
    kiln_arrival_refuse(&f.arrival, KILN_E_CORRUPT, &err);
    kiln_buf_done(&body);
    stop();

    stacks(&body, 3000);
    start(256u << 20, 1000);
    CHECK_EQ(take(kiln_buf_str(&body), KILN_GZIP, &err), KILN_E_LIMIT);
    kiln_arrival_refuse(&f.arrival, KILN_E_LIMIT, &err);
    kiln_buf_done(&body);
    stop();
}

TEST(arrival, without_memory_is_refused_and_leaves_nothing)
{
    struct kiln_starved s = {0};

    start(10u << 20, 0);
    while (kiln_test_starve(&s)) {
        s.r = take(KILN_STR("main;read 3\nmain;write 4\n"), KILN_PLAIN, NULL);
        if (s.r < 0)
            kiln_arrival_refuse(&f.arrival, s.r, NULL);
    }
    CHECK(s.n > 2); /* more than one is made good by the next attempt */
    kiln_arrival_send(&f.arrival);
    stop();
}

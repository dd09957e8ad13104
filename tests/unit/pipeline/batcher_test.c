/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/batcher_int.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "drawn.h"
#include "relay.h"
#include "test.h"

#define HOUR (3600 * KILN_NS_PER_S)

struct setup {
    struct relay_sink sink;
    struct kiln_batcher *batcher;
    struct kiln_consumer *in;
    int64_t live;
};

static void set_up(struct setup *s, struct kiln_batcher_opts opts)
{
    s->sink = (struct relay_sink)RELAY_SINK;
    s->live = kiln_mem_live();
    opts.quiet_ns = opts.quiet_ns ? opts.quiet_ns : HOUR;
    opts.processor = (struct kiln_processor_opts){.id = "batch", .next = &s->sink.consumer};
    CHECK_OK(kiln_batcher_new(&opts, &s->batcher));
    CHECK_OK(kiln_batcher_start(s->batcher));
    s->in = kiln_batcher_consumer(s->batcher);
}

static void tear_down(struct setup *s)
{
    kiln_batcher_stop(s->batcher);
    kiln_batcher_free(s->batcher);
    CHECK_EQ(kiln_mem_live(), s->live);
}

static struct kiln_batch *three(void)
{
    return kiln_test_stacks("main;a 1\nmain;b 1\nmain;c 1\n");
}

TEST(batcher, enough_samples_go_on_as_one_and_end_as_one)
{
    struct relay_post posts[3] = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 9, .timeout_ns = HOUR});
    for (int i = 0; i < 3; i++)
        relay_send(&posts[i], s.in, three(), "a");
    CHECK_EQ(s.sink.n, 1);
    CHECK_TEXT(s.sink.kept[0]->tenant, "a");
    CHECK_EQ(s.sink.kept[0]->batch->n_samples, 9);
    CHECK_EQ(s.sink.kept[0]->batch->n_resources, 1);
    CHECK_EQ(s.sink.kept[0]->body.len, 0);
    CHECK_EQ(posts[0].ended + posts[1].ended + posts[2].ended, 0);
    relay_end(&s.sink, -EAGAIN);
    tear_down(&s);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(posts[i].ended, 1);
        CHECK_EQ(posts[i].outcome.code, -EAGAIN);
    }
}

TEST(batcher, one_alone_goes_on_as_it_came_when_its_time_is_over)
{
    struct relay_post post = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 9, .timeout_ns = 1});
    relay_send(&post, s.in, three(), NULL);
    relay_wait(&s.sink, 1);
    CHECK(s.sink.kept[0] == &post.delivery);
    CHECK_EQ(s.sink.kept[0]->body.len, 5);
    relay_end(&s.sink, 0);
    CHECK_EQ(post.ended, 1);
    tear_down(&s);
}

TEST(batcher, a_quiet_time_ends_the_wait)
{
    struct relay_post post = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 9, .timeout_ns = HOUR, .quiet_ns = 1});
    relay_send(&post, s.in, three(), NULL);
    relay_wait(&s.sink, 1);
    relay_end(&s.sink, 0);
    tear_down(&s);
}

TEST(batcher, nobody_waits_once_all_are_here_that_were_of_late)
{
    struct relay_post posts[3] = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 100, .timeout_ns = HOUR});
    s.batcher->turnout = (struct kiln_turnout){
        .most_before = 3, .began_ns = kiln_clock_mono_ns() + HOUR}; /* and no second is over */
    relay_send(&posts[0], s.in, three(), "a");
    relay_send(&posts[1], s.in, three(), "b");
    CHECK_EQ(s.sink.n, 0);
    relay_send(&posts[2], s.in, three(), "a"); /* whichever tenant's they are */
    relay_wait(&s.sink, 2);
    CHECK_EQ(s.sink.kept[0]->batch->n_samples + s.sink.kept[1]->batch->n_samples, 9);
    CHECK_EQ(s.batcher->turnout.here, 3);
    relay_end(&s.sink, 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(posts[i].ended, 1);
    CHECK_EQ(s.batcher->turnout.here, 0);
    tear_down(&s);
}

/* Posts one more while it is handed the first. */
struct poster {
    struct relay_sink sink; /* first */
    struct kiln_consumer *to;
    struct relay_post *post;
};

static void keep_and_post(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct poster *poster = (struct poster *)consumer;
    struct relay_post *post = poster->post;

    poster->post = NULL;
    if (post)
        relay_send(post, poster->to, three(), NULL);
    relay_keep(consumer, delivery);
}

TEST(batcher, who_comes_while_others_go_on_waits_for_them)
{
    struct poster poster = {.sink = RELAY_SINK};
    struct relay_post posts[4] = {0};
    struct kiln_batcher_opts opts = {.samples = 100, .timeout_ns = HOUR, .quiet_ns = HOUR};
    struct kiln_batcher *batcher;

    opts.processor = (struct kiln_processor_opts){.id = "batch", .next = &poster.sink.consumer};
    poster.sink.consumer.consume = keep_and_post;
    poster.post = &posts[2];
    CHECK_OK(kiln_batcher_new(&opts, &batcher));
    CHECK_OK(kiln_batcher_start(batcher));
    poster.to = kiln_batcher_consumer(batcher);
    batcher->turnout =
        (struct kiln_turnout){.most_before = 2, .began_ns = kiln_clock_mono_ns() + HOUR};
    for (int i = 0; i < 2; i++)
        relay_send(&posts[i], poster.to, three(), NULL);
    relay_wait(&poster.sink, 1);
    relay_send(&posts[3], poster.to, three(), NULL);
    kiln_batcher_stop(batcher);
    CHECK_EQ(poster.sink.n, 2);
    CHECK_EQ(poster.sink.kept[1]->batch->n_samples, 6);
    relay_end(&poster.sink, 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(posts[i].ended, 1);
    kiln_batcher_free(batcher);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(batcher, no_timeout_lets_nobody_wait)
{
    struct relay_post post = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 9, .timeout_ns = 0});
    relay_send(&post, s.in, three(), NULL);
    CHECK_EQ(s.sink.n, 1);
    relay_end(&s.sink, 0);
    tear_down(&s);
}

TEST(batcher, tenants_and_signals_are_kept_apart)
{
    struct relay_post posts[5] = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 6, .timeout_ns = HOUR});
    relay_send(&posts[0], s.in, three(), "a");
    relay_send(&posts[1], s.in, three(), "b");
    CHECK_EQ(s.sink.n, 0);
    relay_send(&posts[2], s.in, NULL, "a");
    CHECK_EQ(s.sink.n, 1);
    CHECK(s.sink.kept[0] == &posts[2].delivery);
    relay_send(&posts[3], s.in, three(), "b");
    CHECK_EQ(s.sink.n, 2);
    CHECK_TEXT(s.sink.kept[1]->tenant, "b");
    kiln_batcher_stop(s.batcher); /* hands on what waits */
    CHECK_EQ(s.sink.n, 3);
    CHECK(s.sink.kept[2] == &posts[0].delivery);
    relay_send(&posts[4], s.in, three(), "a"); /* and nobody waits any more */
    CHECK_EQ(s.sink.n, 4);
    relay_end(&s.sink, 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(posts[i].ended, 1);
    tear_down(&s);
}

/* ---- metadata ---- */

#define TEXT(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
static const struct kiln_header team_a[] = {{TEXT("x-team"), TEXT("a")},
                                            {TEXT("x-other"), TEXT("1")}};
static const struct kiln_header team_b[] = {{TEXT("x-other"), TEXT("1")},
                                            {TEXT("x-team"), TEXT("b")}};
static const struct kiln_header team_none[] = {{TEXT("x-team"), TEXT("")}};

static void send_of(struct setup *s, struct relay_post *post, const struct kiln_header *headers,
                    uint32_t n)
{
    post->delivery = (struct kiln_delivery){
        .batch = three(),
        .tenant = "t",
        .remote = {.headers = headers, .n_headers = n, .address = "127.0.0.1:1"}};
    relay_post(post, s->in);
}

static const struct kiln_metadata_keys by_team = {{TEXT("X-Team")}, 1};

TEST(batcher, metadata_keeps_deliveries_apart_and_goes_on)
{
    struct relay_post posts[8] = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 6, .timeout_ns = HOUR, .keys = by_team});
    send_of(&s, &posts[0], team_a, 2);
    send_of(&s, &posts[1], team_b, 2);
    send_of(&s, &posts[2], team_none, 1);
    send_of(&s, &posts[3], NULL, 0); /* no value is another than an empty one */
    CHECK_EQ(s.sink.n, 0);
    send_of(&s, &posts[4], team_a, 1);
    send_of(&s, &posts[5], team_b, 2);
    send_of(&s, &posts[6], NULL, 0);
    CHECK_EQ(s.sink.n, 3);
    for (uint32_t i = 0; i < 2; i++) {
        const struct kiln_remote *remote = &s.sink.kept[i]->remote;

        CHECK_EQ(s.sink.kept[i]->batch->n_samples, 6);
        CHECK_EQ(remote->n_headers, 1); /* of the others nobody knows whose they are */
        CHECK_STR(remote->headers[0].value, i ? "b" : "a");
        CHECK(!remote->address);
    }
    CHECK_EQ(s.sink.kept[2]->remote.n_headers, 0);
    kiln_batcher_stop(s.batcher);
    CHECK_EQ(s.sink.n, 4);
    CHECK(s.sink.kept[3] == &posts[2].delivery);
    relay_end(&s.sink, 0);
    tear_down(&s);
}

TEST(batcher, who_is_one_kind_of_metadata_too_many_goes_on_alone)
{
    struct relay_post posts[4] = {0};
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){
                   .samples = 6, .timeout_ns = HOUR, .keys = by_team, .keys_max = 2});
    send_of(&s, &posts[0], team_a, 2);
    send_of(&s, &posts[1], team_b, 2);
    CHECK_EQ(s.sink.n, 0);
    send_of(&s, &posts[2], team_none, 1);
    CHECK_EQ(s.sink.n, 1);
    CHECK(s.sink.kept[0] == &posts[2].delivery);
    send_of(&s, &posts[3], team_a, 2);
    CHECK_EQ(s.sink.n, 2);
    CHECK_EQ(s.sink.kept[1]->batch->n_samples, 6);
    kiln_batcher_stop(s.batcher);
    relay_end(&s.sink, 0);
    tear_down(&s);
}

TEST(batcher, what_is_too_much_is_split_and_ends_when_all_parts_did)
{
    struct relay_post posts[2] = {0};
    struct kiln_pool pool;
    struct setup s;
    uint64_t samples = 0;

    kiln_pool_init(&pool, "test", 1 << 20, NULL);
    set_up(&s, (struct kiln_batcher_opts){
                   .samples = 6, .samples_max = 4, .timeout_ns = HOUR, .pool = &pool});
    for (int i = 0; i < 2; i++)
        relay_send(&posts[i], s.in, three(), NULL);
    CHECK_EQ(s.sink.n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(s.sink.kept[i]->batch->n_samples <= 4);
        samples += s.sink.kept[i]->batch->n_samples;
    }
    CHECK_EQ(samples, 6);
    CHECK(pool.used > 0);
    kiln_delivery_end(s.sink.kept[1], &(struct kiln_outcome){.code = -ENOSPC});
    CHECK_EQ(posts[0].ended, 0);
    s.sink.n = 1;
    relay_end(&s.sink, 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(posts[i].outcome.code, -ENOSPC);
    CHECK_EQ(pool.used, 0);
    tear_down(&s);
}

/* Three senders had a profile each, and two were not taken. */
TEST(batcher, rejected_profiles_are_told_once)
{
    struct relay_post posts[3] = {0};
    uint32_t rejected = 0;
    struct setup s;

    set_up(&s, (struct kiln_batcher_opts){.samples = 9, .timeout_ns = HOUR});
    for (int i = 0; i < 3; i++)
        relay_send(&posts[i], s.in, three(), NULL);
    kiln_delivery_end(s.sink.kept[0], &(struct kiln_outcome){.rejected = 2});
    for (int i = 0; i < 3; i++) {
        CHECK(posts[i].outcome.rejected <= 1);
        rejected += posts[i].outcome.rejected;
    }
    CHECK_EQ(rejected, 2);
    tear_down(&s);
}

TEST(batcher, without_memory_they_go_on_one_by_one)
{
    for (uint64_t n = 1; n < 40; n++) {
        struct relay_post posts[3] = {0};
        struct kiln_batch *batches[3] = {three(), three(), three()};
        uint64_t samples = 0;
        struct setup s;

        set_up(&s, (struct kiln_batcher_opts){.samples = 9, .timeout_ns = HOUR});
        kiln_mem_fail_at(n);
        for (int i = 0; i < 3; i++)
            relay_send(&posts[i], s.in, batches[i], NULL);
        kiln_mem_fail_at(0);
        kiln_batcher_stop(s.batcher);
        for (uint32_t i = 0; i < s.sink.n; i++)
            samples += s.sink.kept[i]->batch->n_samples;
        CHECK_EQ(samples, 9);
        relay_end(&s.sink, 0);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(posts[i].ended, 1);
        kiln_batcher_free(s.batcher);
    }
    CHECK_EQ(kiln_mem_live(), 0);
}

/* ---- many at once ---- */

enum { SENDERS = 4, EACH = 200 };

struct sender {
    struct kiln_consumer *to;
    struct relay_post *posts;
};

static void *send_all(void *arg)
{
    struct sender *sender = arg;

    for (int i = 0; i < EACH; i++)
        relay_send(&sender->posts[i], sender->to, three(), i & 1 ? "a" : "b");
    return NULL;
}

/* Ends everything at once and adds up what came. */
struct adder {
    struct kiln_consumer consumer; /* first */
    _Atomic uint64_t samples;
};

static void add(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    ((struct adder *)consumer)->samples += delivery->batch->n_samples;
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

TEST(batcher, senders_at_the_same_time_are_all_told_once)
{
    static struct relay_post posts[SENDERS][EACH];
    struct adder adder = {.consumer.consume = add};
    struct kiln_batcher_opts opts = {.processor = {.id = "batch", .next = &adder.consumer},
                                     .samples = 50,
                                     .samples_max = 60,
                                     .timeout_ns = KILN_NS_PER_MS};
    struct sender senders[SENDERS];
    pthread_t threads[SENDERS];
    struct kiln_batcher *batcher;

    CHECK_OK(kiln_batcher_new(&opts, &batcher));
    CHECK_OK(kiln_batcher_start(batcher));
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){kiln_batcher_consumer(batcher), posts[i]};
        CHECK_OK(kiln_thread_start("sender", send_all, &senders[i], &threads[i]));
    }
    for (int i = 0; i < SENDERS; i++)
        pthread_join(threads[i], NULL);
    kiln_batcher_stop(batcher);
    kiln_batcher_free(batcher);
    CHECK_EQ(adder.samples, SENDERS * EACH * 3);
    for (int i = 0; i < SENDERS * EACH; i++)
        CHECK_EQ(posts[i / EACH][i % EACH].ended, 1);
    CHECK_EQ(kiln_mem_live(), 0);
}

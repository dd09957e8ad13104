/* SPDX-License-Identifier: Apache-2.0 */
/* How long connections of HTTP/2 live, by the rules of grpc-go. */
#include "h2pair.h"

#define HOUR_MS (60 * 60 * 1000u)

static struct pair *setup(struct kiln_keepalive keepalive)
{
    struct pair *p = pair_new();

    p->f.keepalive = keepalive;
    return pair_open(p, &(struct kiln_server_opts){.idle_timeout_ms = HOUR_MS});
}

static void ping(struct pair *p)
{
    uint32_t pongs = p->c.n_pongs;

    CHECK_OK(nghttp2_submit_ping(p->c.session, 0, NULL));
    while (p->c.n_pongs == pongs && !p->c.goaway)
        h2_step(&p->c);
}

static struct h2_stream *hold(struct pair *p)
{
    struct kiln_str body = KILN_STR("abc");
    struct h2_stream *s = h2_ask(&p->c, "POST", "/hold", NULL, &body);

    h2_flush(&p->c);
    net_wait_held(1);
    return s;
}

static void check_calmed(struct pair *p)
{
    CHECK(p->c.goaway);
    CHECK_EQ(p->c.goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
    CHECK_TEXT(p->c.goaway_text, "too_many_pings");
    h2_wait_end(&p->c);
}

TEST(http2_keepalive, two_pings_may_come_too_soon_and_the_third_ends_it)
{
    struct pair *p = setup((struct kiln_keepalive){.ping_min_ms = HOUR_MS, .ping_resting = true});

    for (int i = 0; i < 3; i++) /* before the first there was none */
        ping(p);
    CHECK_EQ(p->c.n_pongs, 3);
    CHECK(!p->c.goaway);
    ping(p);
    check_calmed(p);
    teardown(p);
}

TEST(http2_keepalive, who_gets_answers_may_ping_after_each)
{
    struct pair *p = setup((struct kiln_keepalive){.ping_min_ms = HOUR_MS});

    for (int i = 0; i < 20; i++) {
        struct h2_stream *s = h2_ask(&p->c, "GET", "/hello", NULL, NULL);

        h2_wait(&p->c, s);
        CHECK_EQ(s->status, 200);
        ping(p);
    }
    CHECK(!p->c.goaway);
    teardown(p);
}

TEST(http2_keepalive, pings_that_are_far_enough_apart_are_no_flood)
{
    struct pair *p = setup((struct kiln_keepalive){.ping_min_ms = 1, .ping_resting = true});

    for (int i = 0; i < 20; i++) {
        ping(p);
        usleep(3000);
    }
    CHECK_EQ(p->c.n_pongs, 20);
    CHECK(!p->c.goaway);
    teardown(p);
}

TEST(http2_keepalive, without_a_request_pings_must_be_allowed)
{
    struct pair *p = setup((struct kiln_keepalive){.ping_min_ms = 1});
    struct h2_stream *s = hold(p);

    for (int i = 0; i < 10; i++) {
        ping(p);
        usleep(3000);
    }
    CHECK(!p->c.goaway);
    net_release();
    h2_wait(&p->c, s);
    CHECK_STR(kiln_buf_str(&s->body), "abc");
    for (int i = 0; i < 4; i++) { /* the first is forgiven for the answer */
        CHECK(!p->c.goaway);
        ping(p);
        usleep(3000);
    }
    check_calmed(p);
    teardown(p);
}

TEST(http2_keepalive, what_is_under_way_is_answered_before_who_pings_too_much_goes)
{
    struct pair *p = setup((struct kiln_keepalive){.ping_min_ms = HOUR_MS});
    struct h2_stream *s = hold(p);

    while (!p->c.goaway)
        ping(p);
    CHECK(!s->closed);
    net_release();
    h2_wait(&p->c, s);
    CHECK_STR(kiln_buf_str(&s->body), "abc");
    check_calmed(p);
    teardown(p);
}

TEST(http2_keepalive, who_floods_after_that_is_cut_off)
{
    struct pair *p = setup((struct kiln_keepalive){.ping_min_ms = HOUR_MS});

    hold(p);
    while (!p->c.goaway)
        ping(p);
    while (!p->c.ended) {
        nghttp2_submit_ping(p->c.session, 0, NULL);
        h2_flush(&p->c);
        if (net_readable(p->c.fd, 0))
            h2_step(&p->c);
    }
    teardown(p);
}

TEST(http2_keepalive, a_listener_has_its_own_time_to_rest)
{
    struct pair *p = setup((struct kiln_keepalive){.idle_ms = NET_BEGIN_MS});
    struct h2_stream *s = h2_ask(&p->c, "GET", "/hello", NULL, NULL);

    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    h2_wait_end(&p->c);
    CHECK(p->c.goaway);
    CHECK_EQ(p->c.goaway_error, NGHTTP2_NO_ERROR);
    teardown(p);
}

TEST(http2_keepalive, it_may_rest_for_ever)
{
    struct pair *p = calloc(1, sizeof(*p));

    p->f.keepalive.idle_ms = UINT64_MAX;
    net_start(&p->f, &(struct kiln_server_opts){.idle_timeout_ms = 20});
    h2_open(&p->c, net_connect(p->f.port), NULL);
    for (int i = 0; i < 2; i++) {
        h2_wait(&p->c, h2_ask(&p->c, "GET", "/hello", NULL, NULL));
        CHECK_EQ(p->c.streams[i].status, 200);
        usleep(60000);
    }
    CHECK(!net_readable(p->c.fd, 0));
    teardown(p);
}

TEST(http2_keepalive, who_is_too_old_goes_after_what_is_under_way)
{
    struct pair *p = setup((struct kiln_keepalive){.age_ms = NET_BEGIN_MS});
    struct h2_stream *s = hold(p);

    h2_wait_goaway(&p->c);
    CHECK_EQ(p->c.goaway_error, NGHTTP2_NO_ERROR);
    CHECK_TEXT(p->c.goaway_text, "max_age");
    CHECK(!s->closed);
    net_release();
    h2_wait(&p->c, s);
    CHECK_STR(kiln_buf_str(&s->body), "abc");
    h2_wait_end(&p->c);
    teardown(p);
}

TEST(http2_keepalive, and_at_once_when_the_grace_is_over)
{
    struct pair *p =
        setup((struct kiln_keepalive){.age_ms = NET_BEGIN_MS, .grace_ms = NET_BEGIN_MS});
    struct h2_stream *s = hold(p);

    h2_wait_end(&p->c);
    CHECK(p->c.goaway);
    CHECK_EQ(s->status, 0);
    teardown(p);
}

TEST(http2_keepalive, who_is_silent_is_asked_and_stays_if_he_answers)
{
    struct pair *p =
        setup((struct kiln_keepalive){.ping_after_ms = 10, .ping_timeout_ms = HOUR_MS});

    while (p->c.n_pings < 3)
        h2_step(&p->c);
    h2_wait(&p->c, h2_ask(&p->c, "GET", "/hello", NULL, NULL));
    CHECK_EQ(p->c.streams[0].status, 200);
    teardown(p);
}

TEST(http2_keepalive, and_goes_if_he_does_not)
{
    struct pair *p = setup((struct kiln_keepalive){.ping_after_ms = 10, .ping_timeout_ms = 20});

    net_wait_closed(p->c.fd);
    teardown(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "h2pair.h"

static struct pair *setup(const struct kiln_server_opts *opts, bool no_window)
{
    struct pair *p = pair_new();

    p->c.no_window = no_window;
    return pair_open(p, opts);
}

static char *zeros(size_t size)
{
    return calloc(1, size);
}

TEST(http2, serves_a_request)
{
    struct pair *p = setup(NULL, false);
    struct h2_stream *s = h2_ask(&p->c, "GET", "/hello?x=y", NULL, NULL);

    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    CHECK_STR(kiln_buf_str(&s->body), "hello\n");
    CHECK(strstr(s->fields, "content-length: 6\n"));
    CHECK_EQ(s->error, NGHTTP2_NO_ERROR);
    teardown(p);
}

TEST(http2, the_preface_may_come_byte_by_byte)
{
    struct net_fixture f = {0};
    char in[16];
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send_slowly(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    CHECK_EQ(recv(fd, in, 9, MSG_WAITALL), 9);
    CHECK_EQ(in[3], NGHTTP2_SETTINGS);
    close(fd);
    net_stop(&f);
}

TEST(http2, streams_do_not_wait_for_each_other)
{
    struct pair *p = setup(NULL, false);
    struct kiln_str body = KILN_STR("held");
    struct h2_stream *held = h2_ask(&p->c, "POST", "/hold", NULL, &body);
    struct h2_stream *s[100];

    for (int i = 0; i < 100; i++)
        s[i] = h2_ask(&p->c, "GET", "/hello", NULL, NULL);
    for (int i = 0; i < 100; i++) {
        h2_wait(&p->c, s[i]);
        CHECK_EQ(s[i]->status, 200);
    }
    CHECK(!held->closed);
    net_wait_held(1);
    net_release();
    h2_wait(&p->c, held);
    CHECK_STR(kiln_buf_str(&held->body), "held");
    teardown(p);
}

TEST(http2, a_large_body_goes_up_and_down)
{
    struct pair *p = setup(NULL, false);
    size_t size = 20 << 20;
    char *data = zeros(size);
    struct kiln_str body = {data, size};
    struct h2_stream *s;

    data[size - 1] = 'z';
    s = h2_ask(&p->c, "POST", "/echo", NULL, &body);
    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    CHECK_EQ(s->body.len, size);
    CHECK_EQ(s->body.ptr[size - 1], 'z');
    free(data);
    teardown(p);
}

/* Reads frames until one of these is there; appends the bytes of DATA.  Returns its flags. */
static uint8_t read_data(int fd, struct kiln_buf *body)
{
    unsigned char head[9], payload[16384];

    for (;;) {
        size_t n;

        CHECK_EQ(recv(fd, head, sizeof(head), MSG_WAITALL), sizeof(head));
        n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        CHECK(n <= sizeof(payload));
        CHECK_EQ(n ? recv(fd, payload, n, MSG_WAITALL) : 0, n);
        if (head[3] != NGHTTP2_DATA)
            continue;
        kiln_buf_add(body, payload, n);
        return head[4];
    }
}

TEST(http2, frames_may_be_padded_heads_continued_and_windows_changed)
{
    /* clang-format off */
    static const unsigned char frames[] = {
        0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2,                 /* SETTINGS: windows of two */
        0, 0, 6, 1, 8, 0, 0, 0, 1, 3, 0x83, 0x86, 0, 0, 0,           /* HEADERS, padded, not ended */
        0, 0, 10, 9, 4, 0, 0, 0, 1,                                  /* CONTINUATION */
        0x04, 5, '/', 'e', 'c', 'h', 'o', 0x41, 1, 'x',
        0, 0, 8, 0, 9, 0, 0, 0, 1, 2, 'h', 'e', 'l', 'l', 'o', 0, 0, /* DATA, padded, the end */
    };
    /* clang-format on */
    static const unsigned char wider[] = {0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 100};
    struct net_fixture f = {0};
    struct kiln_buf body;
    int fd;

    kiln_buf_init(&body, 100);
    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send_str(fd, KILN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    net_send_str(fd, (struct kiln_str){(const char *)frames, sizeof(frames)});
    CHECK_EQ(read_data(fd, &body) & NGHTTP2_FLAG_END_STREAM, 0);
    CHECK_STR(kiln_buf_str(&body), "he");
    net_send_str(fd, (struct kiln_str){(const char *)wider, sizeof(wider)});
    while (!(read_data(fd, &body) & NGHTTP2_FLAG_END_STREAM))
        ;
    CHECK_STR(kiln_buf_str(&body), "hello");
    kiln_buf_done(&body);
    close(fd);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

static void with_trailers(struct kiln_request *request)
{
    struct kiln_reply reply = {
        .status = 200,
        .content_type = "application/grpc",
        .body = request->body,
        .trailers = {{KILN_STR("grpc-status"), KILN_STR("7")},
                     {KILN_STR("Grpc-Message"), KILN_STR("no\r\nway")}},
        .n_trailers = 2,
    };

    kiln_request_reply(request, &reply);
}

TEST(http2, trailers_follow_the_body_or_stand_alone)
{
    struct pair *p = calloc(1, sizeof(*p));
    struct kiln_str bodies[] = {KILN_STR("abc"), KILN_STR("")};

    net_routes(&p->f);
    CHECK_OK(
        kiln_router_add(p->f.router, &(struct kiln_route){.path = "/t", .handler = with_trailers}));
    net_start(&p->f, NULL);
    h2_open(&p->c, net_connect(p->f.port), NULL);
    for (int i = 0; i < 2; i++) {
        struct h2_stream *s = h2_ask(&p->c, "POST", "/t", NULL, &bodies[i]);

        h2_wait(&p->c, s);
        CHECK_EQ(s->status, 200);
        CHECK_EQ(s->error, NGHTTP2_NO_ERROR);
        CHECK_EQ(s->body.len, bodies[i].len);
        CHECK(strstr(s->fields, "grpc-status: 7\ngrpc-message: no  way\n"));
    }
    teardown(p);
}

TEST(http2, says_continue_to_who_waits_for_it)
{
    static const char *const expect[] = {"expect", "100-continue"};
    struct pair *p = setup(NULL, false);
    struct kiln_str body = KILN_STR("abc");
    struct h2_stream *s = h2_ask(&p->c, "POST", "/echo", expect, &body);

    h2_wait(&p->c, s);
    CHECK_EQ(strncmp(s->fields, ":status: 100\n:status: 200\n", 26), 0);
    CHECK_STR(kiln_buf_str(&s->body), "abc");
    teardown(p);
}

TEST(http2, head_has_no_body)
{
    struct pair *p = setup(NULL, false);
    struct h2_stream *s = h2_ask(&p->c, "HEAD", "/hello", NULL, NULL);

    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    CHECK_EQ(s->body.len, 0);
    CHECK(strstr(s->fields, "content-length: 6\n"));
    teardown(p);
}

TEST(http2, bodies_that_are_too_large_are_refused_early)
{
    struct pair *p = setup(NULL, false);
    struct kiln_str body = KILN_STR("0123456789a");
    static const char *const length[] = {"content-length", "11"};
    struct h2_stream *said = h2_ask(&p->c, "POST", "/small", length, &body);
    struct h2_stream *unsaid = h2_ask(&p->c, "POST", "/small", NULL, &body);

    said->endless = unsaid->endless = true;
    h2_wait(&p->c, said);
    h2_wait(&p->c, unsaid);
    CHECK_EQ(said->status, 413);
    CHECK_EQ(unsaid->status, 413);
    CHECK_EQ(said->error, NGHTTP2_NO_ERROR);
    CHECK_EQ(unsaid->error, NGHTTP2_NO_ERROR);
    teardown(p);
}

TEST(http2, who_ends_its_body_after_the_refusal_hears_something)
{
    struct pair *p = setup(NULL, false);
    struct kiln_str body = KILN_STR("0123456789a");
    static const char *const length[] = {"content-length", "12"};
    struct h2_stream *s = h2_ask(&p->c, "POST", "/small", length, &body);

    s->endless = true;
    while (s->status == 0)
        h2_step(&p->c);
    CHECK_EQ(s->status, 413);
    s->endless = false;
    s->upload = KILN_STR("0123456789ab");
    CHECK_OK(nghttp2_session_resume_data(p->c.session, s->id));
    while (p->c.n_pings == 0 && !p->c.ended)
        h2_step(&p->c);
    CHECK(s->closed && s->error == NGHTTP2_NO_ERROR);
    CHECK_EQ(p->c.n_pings, 1);
    teardown(p);
}

TEST(http2, a_head_that_is_too_large_is_refused)
{
    struct pair *p = setup(&(struct kiln_server_opts){.header_max = 4096}, false);
    char long_value[5001];
    const char *field[] = {"long", long_value};
    struct h2_stream *s;

    memset(long_value, 'x', 5000);
    long_value[5000] = 0;
    s = h2_ask(&p->c, "GET", "/hello", field, NULL);
    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 431);
    s = h2_ask(&p->c, "GET", "/hello", NULL, NULL);
    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    teardown(p);
}

TEST(http2, unknown_paths_and_methods)
{
    struct pair *p = setup(NULL, false);
    struct h2_stream *none = h2_ask(&p->c, "GET", "/none", NULL, NULL);
    struct h2_stream *method = h2_ask(&p->c, "PUT", "/hello", NULL, NULL);

    h2_wait(&p->c, none);
    h2_wait(&p->c, method);
    CHECK_EQ(none->status, 404);
    CHECK_EQ(method->status, 405);
    CHECK(strstr(method->fields, "allow: GET, HEAD\n"));
    teardown(p);
}

TEST(http2, without_memory_in_the_pool_a_stream_is_refused_and_the_next_served)
{
    struct kiln_pool pool;
    char *bytes = zeros(200000); /* more than what the connection gives back meanwhile */
    struct kiln_str body = {bytes, 200000};
    struct h2_stream *s;
    struct pair *p;
    size_t taken;

    kiln_pool_init(&pool, "test", 1000000, NULL);
    p = setup(&(struct kiln_server_opts){.pool = &pool}, false);
    do /* the connection may be taking its own at the same time */
        taken = pool.limit - atomic_load(&pool.used);
    while (kiln_pool_take(&pool, taken) < 0);
    s = h2_ask(&p->c, "POST", "/echo", NULL, &body);
    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 503);
    CHECK(strstr(s->fields, "retry-after: 1\n"));
    kiln_pool_give(&pool, taken);
    s = h2_ask(&p->c, "POST", "/echo", NULL, &body);
    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    teardown(p);
    free(bytes);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

TEST(http2, a_field_that_is_sent_once_and_meant_often_is_charged_each_time)
{
    enum { STREAMS = 60, FIELD = 3000 };
    char *value = zeros(FIELD + 1);
    const char *field[2] = {"x-long", memset(value, 'a', FIELD)};
    struct kiln_str body = KILN_STR("b");
    struct kiln_pool pool;
    struct pair *p;

    kiln_pool_init(&pool, "test", 10000000, NULL);
    p = setup(&(struct kiln_server_opts){.pool = &pool}, false);
    for (int i = 0; i < STREAMS; i++)
        h2_ask(&p->c, "POST", "/hold", field, &body);
    h2_flush(&p->c);
    net_wait_held(STREAMS);
    CHECK(atomic_load(&pool.used) > STREAMS * FIELD);
    net_release();
    teardown(p);
    free(value);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

TEST(http2, a_body_that_stops_is_given_up)
{
    struct pair *p = setup(&(struct kiln_server_opts){.body_timeout_ms = 20}, false);
    struct kiln_str body = KILN_STR("abc");
    struct h2_stream *s = h2_ask(&p->c, "POST", "/echo", NULL, &body);

    s->endless = true;
    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 408);
    teardown(p);
}

TEST(http2, an_answer_that_nobody_takes_is_given_up)
{
    struct pair *p = setup(&(struct kiln_server_opts){.body_timeout_ms = 20}, true);
    struct h2_stream *s = h2_ask(&p->c, "GET", "/big", NULL, NULL);

    h2_wait(&p->c, s);
    CHECK_EQ(s->error, NGHTTP2_CANCEL);
    teardown(p);
}

TEST(http2, a_connection_that_rests_too_long_is_ended)
{
    struct pair *p = setup(&(struct kiln_server_opts){.idle_timeout_ms = NET_BEGIN_MS}, false);
    struct h2_stream *s = h2_ask(&p->c, "GET", "/hello", NULL, NULL);

    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    h2_wait_end(&p->c);
    CHECK(p->c.goaway && p->c.goaway_error == NGHTTP2_NO_ERROR);
    teardown(p);
}

TEST(http2, pings_are_answered)
{
    struct pair *p = setup(NULL, false);

    CHECK_OK(nghttp2_submit_ping(p->c.session, 0, NULL));
    h2_wait_pong(&p->c);
    CHECK_EQ(p->c.n_pongs, 1);
    teardown(p);
}

TEST(http2, who_only_pings_is_sent_away)
{
    struct pair *p = setup(NULL, false);

    for (int i = 0; i < 3000; i++)
        CHECK_OK(nghttp2_submit_ping(p->c.session, 0, NULL));
    h2_wait_goaway(&p->c);
    CHECK_EQ(p->c.goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
    teardown(p);
}

TEST(http2, who_pings_after_each_answer_is_not)
{
    struct pair *p = setup(NULL, false);

    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 20; i++) {
            struct h2_stream *s = h2_ask(&p->c, "GET", "/hello", NULL, NULL);

            for (int k = 0; k < 4; k++)
                CHECK_OK(nghttp2_submit_ping(p->c.session, 0, NULL));
            h2_wait(&p->c, s);
            CHECK_EQ(s->status, 200);
        }
    }
    CHECK(!p->c.goaway);
    teardown(p);
}

TEST(http2, who_resets_again_and_again_is_sent_away)
{
    struct pair *p = setup(NULL, false);
    uint32_t sent = 0;

    while (!p->c.goaway && !p->c.ended && sent < 5000) {
        nghttp2_nv nv[] = {
            {(uint8_t *)":method", (uint8_t *)"POST", 7, 4, 0},
            {(uint8_t *)":scheme", (uint8_t *)"http", 7, 4, 0},
            {(uint8_t *)":path", (uint8_t *)"/hold", 5, 5, 0},
        };
        int32_t id = nghttp2_submit_headers(p->c.session, 0, -1, NULL, nv, 3, NULL);

        h2_flush(&p->c);
        nghttp2_submit_rst_stream(p->c.session, 0, id, NGHTTP2_CANCEL);
        h2_flush(&p->c);
        sent++;
        if (sent % 100 == 0) {
            nghttp2_submit_ping(p->c.session, 0, NULL);
            h2_wait_pong(&p->c);
        }
    }
    CHECK(p->c.goaway || p->c.ended);
    CHECK(sent < 2000);
    CHECK_EQ(p->c.goaway_error, NGHTTP2_ENHANCE_YOUR_CALM);
    teardown(p);
}

/* As curl does, but it resets once. */
TEST(http2, who_resets_what_was_answered_stays)
{
    struct pair *p = setup(NULL, false);

    for (int i = 0; i < 600 && !p->c.goaway; i++) {
        struct h2_stream *s = h2_ask(&p->c, "GET", "/hello", NULL, NULL);

        h2_wait(&p->c, s);
        CHECK_EQ(s->status, 200);
        for (int k = 0; k < 2; k++)
            CHECK_OK(nghttp2_submit_rst_stream(p->c.session, 0, s->id, NGHTTP2_STREAM_CLOSED));
    }
    CHECK(!p->c.goaway);
    teardown(p);
}

TEST(http2, a_head_without_end_is_cut_off)
{
    static const unsigned char begun[] = {0, 0, 3, 1, 1, 0, 0, 0, 1, 0x82, 0x86, 0x84};
    static const unsigned char more[] = {0, 0, 0, 9, 0, 0, 0, 0, 1};
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send_str(fd, KILN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
    net_send_str(fd, (struct kiln_str){(const char *)begun, sizeof(begun)});
    for (int i = 0; i < 100000; i++)
        net_send_str(fd, (struct kiln_str){(const char *)more, sizeof(more)});
    net_read_all(fd);
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(http2, a_head_that_takes_too_long_ends_the_connection)
{
    static const unsigned char begun[] = {0, 0, 3, 1, 1, 0, 0, 0, 1, 0x82, 0x86, 0x84};
    struct net_fixture f = {0};
    int fd;

    net_start(&f, &(struct kiln_server_opts){.header_timeout_ms = NET_BEGIN_MS});
    fd = net_connect(f.port);
    net_send_str(fd, KILN_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
    net_send_str(fd, (struct kiln_str){(const char *)begun, sizeof(begun)});
    net_read_all(fd);
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
}

TEST(http2, what_is_no_frame_ends_the_connection)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n");
    net_read_all(fd);
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
}

TEST(http2, a_stream_that_was_reset_is_answered_into_the_void)
{
    struct pair *p = setup(NULL, false);
    struct kiln_str body = KILN_STR("abc");
    struct h2_stream *s = h2_ask(&p->c, "POST", "/hold", NULL, &body);

    h2_flush(&p->c);
    net_wait_held(1);
    CHECK_OK(nghttp2_submit_rst_stream(p->c.session, 0, s->id, NGHTTP2_CANCEL));
    CHECK_OK(nghttp2_submit_ping(p->c.session, 0, NULL));
    h2_wait_pong(&p->c);
    net_release();
    s = h2_ask(&p->c, "GET", "/hello", NULL, NULL);
    h2_wait(&p->c, s);
    CHECK_EQ(s->status, 200);
    teardown(p);
}

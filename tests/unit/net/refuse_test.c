/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are not served, and why. */
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"
#define LAST       "connection: close\r\n\r\n"

/* The status that these bytes get, all at once. */
static int status_for(uint16_t port, const char *bytes)
{
    return net_status(net_talk(port, bytes));
}

TEST(refuse, unknown_paths_and_methods)
{
    struct net_fixture f = {0};
    const char *answer;

    net_start(&f, NULL);
    CHECK_EQ(status_for(f.port, HEAD("GET /nothing") LAST), 404);
    answer = net_talk(f.port, HEAD("DELETE /hello") LAST);
    CHECK_EQ(net_status(answer), 405);
    CHECK(strstr(answer, "allow: GET, HEAD\r\n"));
    net_stop(&f);
}

TEST(refuse, two_credentials_or_two_tenants)
{
    struct net_fixture f = {0};

    net_start(&f, NULL);
    CHECK_EQ(status_for(f.port, HEAD("GET /hello") "authorization: a\r\nAuthorization: a\r\n" LAST),
             400);
    CHECK_EQ(status_for(f.port, HEAD("GET /hello") "x-scope-orgid: a\r\nX-Scope-OrgID: b\r\n" LAST),
             400);
    CHECK_EQ(status_for(f.port, HEAD("GET /hello") "authorization: a\r\nx-scope-orgid: b\r\n" LAST),
             200);
    net_stop(&f);
}

TEST(refuse, smuggled_requests_end_the_connection)
{
    static const char *const attempts[] = {
        HEAD("POST /echo") "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD("POST /echo") "content-length: 4\r\ncontent-length: 5\r\n\r\nabcd",
        HEAD("POST /echo") "transfer-encoding: chunked\r\n\r\nzz\r\n",
        HEAD("POST /echo") "transfer-encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        HEAD("POST /echo") "transfer-encoding : chunked\r\n\r\n",
        HEAD("GET /hello") "a: b\r\n folded\r\n\r\n",
        HEAD("GET /hello") "a: b\rc\r\n\r\n",
        "GET /hello HTTP/1.1\nhost: x\n\n",
    };
    struct net_fixture f = {0};

    net_start(&f, NULL);
    for (size_t i = 0; i < KILN_ARRAY_LEN(attempts); i++) {
        struct kiln_buf both;
        const char *answer;

        kiln_buf_init(&both, 4096);
        kiln_buf_puts(&both, attempts[i]);
        kiln_buf_add(&both, HEAD("GET /hello") "\r\n", sizeof(HEAD("GET /hello") "\r\n"));
        answer = net_talk(f.port, both.ptr);
        CHECK_EQ(net_status(answer), 400);
        CHECK(strstr(answer, "connection: close\r\n"));
        CHECK(!strstr(answer, "hello"));
        kiln_buf_done(&both);
    }
    net_stop(&f);
}

TEST(refuse, a_body_that_says_it_is_too_large_is_not_read)
{
    struct net_fixture f = {0};
    const char *answer;
    int fd;

    net_start(&f, NULL);
    CHECK_EQ(status_for(f.port, HEAD("POST /echo") "content-length: 99999999999\r\n\r\n"), 413);
    CHECK_EQ(status_for(f.port, HEAD("POST /small") "expect: 100-continue\r\n"
                                                    "content-length: 11\r\n\r\n"),
             413);
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /small") "content-length: 11\r\n\r\n");
    answer = net_read_answer(fd);
    CHECK_EQ(net_status(answer), 413);
    CHECK(strstr(answer, "more than 10 bytes"));
    net_send(fd, "12345678901" HEAD("GET /hello") "\r\n");
    CHECK_TEXT(net_body(net_read_answer(fd)), "hello\n");
    close(fd);
    net_stop(&f);
}

TEST(refuse, a_body_that_turns_out_too_large)
{
    struct net_fixture f = {0};

    net_start(&f, NULL);
    CHECK_EQ(status_for(f.port, HEAD("POST /small") "transfer-encoding: chunked\r\n\r\n"
                                                    "6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n"),
             413);
    net_stop(&f);
}

TEST(refuse, who_goes_on_sending_still_reads_the_refusal)
{
    struct net_fixture f = {0};
    struct kiln_buf body;
    int fd;

    net_start(&f, NULL);
    kiln_buf_init(&body, 4 << 20);
    CHECK(kiln_buf_reserve(&body, 4 << 20));
    memset(body.ptr, 'x', body.len = 4 << 20);
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /small") "content-length: 4194304\r\n\r\n");
    net_send_str(fd, kiln_buf_str(&body));
    CHECK_EQ(net_status(net_read_answer(fd)), 413);
    close(fd);
    kiln_buf_done(&body);
    net_stop(&f);
}

TEST(refuse, a_head_that_is_too_large)
{
    struct net_fixture f = {0};
    struct kiln_buf head;

    net_start(&f, &(struct kiln_server_opts){.header_max = 8 << 10});
    kiln_buf_init(&head, 1 << 20);
    kiln_buf_puts(&head, HEAD("GET /hello") "long: ");
    for (int i = 0; i < 9000; i++)
        kiln_buf_putc(&head, 'x');
    kiln_buf_putc(&head, 0);
    CHECK_EQ(status_for(f.port, head.ptr), 431);
    head.len--;
    kiln_buf_add(&head, "\r\n\r\n", 5);
    CHECK_EQ(status_for(f.port, head.ptr), 431);
    kiln_buf_done(&head);
    net_stop(&f);
}

TEST(refuse, a_content_encoding_that_nobody_reads)
{
    struct net_fixture f = {0};
    const char *answer;

    net_start(&f, NULL);
    answer = net_talk(f.port,
                      HEAD("POST /echo") "content-encoding: br\r\ncontent-length: 1\r\n" LAST "x");
    CHECK_EQ(net_status(answer), 415);
    CHECK(strstr(answer, "accept-encoding: gzip, zstd\r\n"));
    net_stop(&f);
}

/* ---- the guard, the fallback, the translator ---- */

static int ask(void *context, struct kiln_request *request, enum kiln_access access,
               struct kiln_reply *reply)
{
    (void)context, (void)access;
    snprintf(request->tenant, sizeof(request->tenant), "someone");
    if (kiln_request_header(request, "authorization").len)
        return 0;
    *reply = (struct kiln_reply){.status = 401,
                                 .content_type = "text/plain",
                                 .body = KILN_STR("who are you\n"),
                                 .headers = {{KILN_STR("www-authenticate"), KILN_STR("Bearer")}},
                                 .n_headers = 1};
    return -1;
}

TEST(refuse, the_guard_is_asked_before_the_body_is_there)
{
    struct net_fixture f = {0};
    const char *answer;
    int fd;

    net_routes(&f);
    kiln_router_guard(f.router, (struct kiln_guard){.check = ask});
    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /echo") "content-length: 5\r\n\r\n");
    answer = net_read_answer(fd);
    CHECK_EQ(net_status(answer), 401);
    CHECK(strstr(answer, "www-authenticate: Bearer\r\n"));
    net_send(fd, "12345" HEAD("POST /echo") "authorization: x\r\ncontent-length: 2\r\n\r\nok");
    CHECK_TEXT(net_body(net_read_answer(fd)), "ok");
    close(fd);
    net_stop(&f);
}

/* A guard that cannot tell at once, and then not before somebody else was served. */
static sem_t served;

static int ask_later(void *context, struct kiln_request *request, enum kiln_access access,
                     struct kiln_reply *reply)
{
    (void)context, (void)access, (void)reply;
    return kiln_request_header(request, "authorization").len ? KILN_GUARD_LATER : 0;
}

static int ask_late(void *context, struct kiln_request *request, enum kiln_access access,
                    struct kiln_reply *reply)
{
    (void)context, (void)access;
    sem_wait(&served);
    if (kiln_str_eq(kiln_request_header(request, "authorization"), KILN_STR("good")))
        return 0;
    *reply = (struct kiln_reply){
        .status = 401, .content_type = "text/plain", .body = KILN_STR("who are you\n")};
    return -1;
}

TEST(refuse, a_guard_that_takes_long_holds_nobody_up)
{
    struct net_fixture f = {0};
    const char *answer;
    int slow, quick;

    sem_init(&served, 0, 0);
    net_routes(&f);
    kiln_router_guard(f.router, (struct kiln_guard){.check = ask_later, .late = ask_late});
    net_start(&f, &(struct kiln_server_opts){.workers = 1, .long_workers = 1});
    slow = net_connect(f.port);
    quick = net_connect(f.port);
    for (int good = 0; good < 2; good++) {
        net_send(slow,
                 good ? HEAD("POST /echo") "authorization: good\r\ncontent-length: 2\r\n\r\nok"
                      : HEAD("POST /echo") "authorization: bad\r\ncontent-length: 2\r\n\r\nno");
        net_send(quick, HEAD("GET /hello") "\r\n");
        CHECK_TEXT(net_body(net_read_answer(quick)), "hello\n");
        sem_post(&served);
        answer = net_read_answer(slow);
        CHECK_EQ(net_status(answer), good ? 200 : 401);
        CHECK_TEXT(net_body(answer), good ? "ok" : "who are you\n");
    }
    close(slow);
    close(quick);
    net_stop(&f);
    sem_destroy(&served);
}

static void not_here(struct kiln_request *request)
{
    kiln_request_reply_text(request, 404, "no %.*s, %zu bytes", KILN_STR_ARG(request->path),
                            request->body.len);
}

TEST(refuse, a_fallback_answers_without_waiting_for_the_body)
{
    struct net_fixture f = {0};
    int fd;

    net_routes(&f);
    kiln_router_fallback(f.router, not_here, NULL);
    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /gone") "content-length: 5\r\n\r\n");
    CHECK_TEXT(net_body(net_read_answer(fd)), "no /gone, 0 bytes\n");
    net_send(fd, "12345" HEAD("GET /hello") "\r\n");
    CHECK_TEXT(net_body(net_read_answer(fd)), "hello\n");
    close(fd);
    net_stop(&f);
}

static void translate(const struct kiln_request *request, struct kiln_reply *reply,
                      struct kiln_buf *scratch)
{
    if (!kiln_str_eq(kiln_request_header(request, "content-type"), KILN_STR("application/mine")))
        return;
    kiln_buf_printf(scratch, "my words for %d", reply->status);
    reply->status = 200;
    reply->body = kiln_buf_str(scratch);
}

TEST(refuse, a_router_may_put_refusals_into_other_words)
{
    struct net_fixture f = {0};
    const char *answer;

    net_routes(&f);
    kiln_router_translate(f.router, translate);
    net_start(&f, NULL);
    answer = net_talk(f.port, HEAD("GET /none") "content-type: application/mine\r\n" LAST);
    CHECK_EQ(net_status(answer), 200);
    CHECK_TEXT(net_body(answer), "my words for 404");
    answer = net_talk(f.port, HEAD("POST /small") "content-type: application/mine\r\n"
                                                  "content-length: 11\r\n" LAST "12345678901");
    CHECK_TEXT(net_body(answer), "my words for 413");
    CHECK_EQ(status_for(f.port, HEAD("GET /none") LAST), 404);
    net_stop(&f);
}

/* ---- too much ---- */

TEST(refuse, when_the_pool_is_empty_bodies_wait_outside)
{
    struct net_fixture f = {0};
    struct kiln_pool pool;
    const char *answer;
    size_t taken;
    int fd;

    kiln_pool_init(&pool, "test", 100000, NULL);
    net_start(&f, &(struct kiln_server_opts){.pool = &pool});
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /hold") "content-length: 8\r\n\r\nabcdefgh");
    net_wait_held(1);
    taken = pool.limit - atomic_load(&pool.used);
    CHECK_OK(kiln_pool_take(&pool, taken));
    answer = net_talk(f.port, HEAD("POST /echo") "content-length: 3\r\n" LAST "abc");
    CHECK_EQ(net_status(answer), 503);
    CHECK(strstr(answer, "retry-after: 1\r\n"));
    CHECK_EQ(status_for(f.port, HEAD("GET /hello") LAST), 200);
    kiln_pool_give(&pool, taken);
    CHECK_EQ(status_for(f.port, HEAD("POST /echo") "content-length: 3\r\n" LAST "abc"), 200);
    net_release();
    CHECK_TEXT(net_body(net_read_answer(fd)), "abcdefgh");
    close(fd);
    net_stop(&f);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

TEST(refuse, when_the_pool_runs_out_in_the_middle_of_a_body)
{
    struct net_fixture f = {0};
    struct kiln_pool pool;
    struct kiln_buf body;
    int fd;

    kiln_pool_init(&pool, "test", 500000, NULL);
    net_start(&f, &(struct kiln_server_opts){.pool = &pool});
    kiln_buf_init(&body, 1 << 20);
    CHECK(kiln_buf_reserve(&body, 1 << 20));
    memset(body.ptr, 'x', body.len = 1 << 20);
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /echo") "content-length: 1048576\r\n\r\n");
    net_send_str(fd, kiln_buf_str(&body));
    CHECK_EQ(net_status(net_read_answer(fd)), 503);
    close(fd);
    kiln_buf_done(&body);
    net_stop(&f);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void blocked(struct kiln_request *request)
{
    net_hold(request);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

TEST(refuse, when_the_queue_is_full)
{
    struct net_fixture f = {0};
    int fds[3], n_refused = 0;

    net_routes(&f);
    CHECK_OK(kiln_router_add(f.router, &(struct kiln_route){.path = "/block", .handler = blocked}));
    net_start(&f, &(struct kiln_server_opts){.queue_max = 1, .workers = 1});
    pthread_mutex_lock(&gate);
    fds[0] = net_connect(f.port);
    net_send(fds[0], HEAD("GET /block") LAST);
    net_wait_held(1); /* the only worker is stuck: one more may wait, the next is refused */
    for (int i = 1; i < 3; i++) {
        fds[i] = net_connect(f.port);
        net_send(fds[i], HEAD("GET /hello") LAST);
    }
    /* Whichever of the two was second has its answer while the other waits. */
    CHECK_EQ(net_status(net_read_first(fds + 1, 2)), 503);
    pthread_mutex_unlock(&gate);
    net_release();
    for (int i = 0; i < 3; i++) {
        n_refused += net_status(net_read_all(fds[i])) != 200;
        close(fds[i]);
    }
    CHECK_EQ(n_refused, 1);
    net_stop(&f);
}

TEST(refuse, more_connections_than_allowed)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, &(struct kiln_server_opts){.connections_max = 1});
    fd = net_connect_held(f.port);
    CHECK_EQ(status_for(f.port, ""), 503);
    net_release();
    CHECK_EQ(net_status(net_read_answer(fd)), 200);
    close(fd);
    net_stop(&f);
}

TEST(refuse, a_connection_that_rests_makes_room_for_another)
{
    struct net_fixture f = {0};
    int fds[2];

    net_start(&f, &(struct kiln_server_opts){.connections_max = 2});
    fds[0] = net_connect_held(f.port);
    fds[1] = net_connect(f.port);
    net_send(fds[1], "GET /hello HTTP/1.1\r\nhos");
    CHECK_EQ(status_for(f.port, HEAD("GET /hello") LAST), 200);
    CHECK(net_is_closed(fds[1]));
    net_release();
    CHECK_EQ(net_status(net_read_answer(fds[0])), 200);
    close(fds[0]);
    close(fds[1]);
    net_stop(&f);
}

/* ---- too slow ---- */

TEST(refuse, a_head_that_takes_too_long)
{
    struct net_fixture f = {0};

    net_start(&f, &(struct kiln_server_opts){.header_timeout_ms = NET_BEGIN_MS});
    CHECK_EQ(status_for(f.port, "GET /hello HTTP/1.1\r\nhos"), 408);
    net_stop(&f);
}

TEST(refuse, a_body_that_stops)
{
    struct net_fixture f = {0};

    net_start(&f, &(struct kiln_server_opts){.body_timeout_ms = 20});
    CHECK_EQ(status_for(f.port, HEAD("POST /echo") "content-length: 5\r\n\r\nab"), 408);
    CHECK_EQ(status_for(f.port, HEAD("POST /echo") "transfer-encoding: chunked\r\n\r\n5\r\nab"),
             408);
    net_stop(&f);
}

TEST(refuse, a_body_that_never_ends)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, &(struct kiln_server_opts){.request_timeout_ms = 50});
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /echo") "content-length: 60000000\r\n\r\n");
    while (!net_readable(fd, 1))
        net_send(fd, "x");
    CHECK_EQ(net_status(net_read_answer(fd)), 408);
    close(fd);
    net_stop(&f);
}

TEST(refuse, a_connection_that_rests_too_long_is_ended)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, &(struct kiln_server_opts){.idle_timeout_ms = NET_BEGIN_MS});
    fd = net_connect(f.port);
    CHECK(net_is_closed(fd));
    close(fd);
    fd = net_connect(f.port);
    net_send(fd, HEAD("GET /hello") "\r\n");
    CHECK_EQ(net_status(net_read_answer(fd)), 200);
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
}

TEST(refuse, a_client_that_reads_too_slowly_is_left)
{
    struct net_fixture f = {0};
    int fd, small = 4096;
    char byte;

    net_start(&f, &(struct kiln_server_opts){.request_timeout_ms = 100});
    fd = net_connect(f.port);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    for (int i = 0; i < 200; i++)
        net_send(fd, HEAD("GET /big") "\r\n");
    CHECK_EQ(recv(fd, &byte, 1, 0), 1);
    net_wait_closed(fd);
    close(fd);
    net_stop(&f);
}

TEST(refuse, a_client_that_does_not_read_is_left)
{
    struct net_fixture f = {0};
    struct kiln_pool pool;
    int fd;

    kiln_pool_init(&pool, "test", SIZE_MAX / 2, NULL);
    net_start(&f, &(struct kiln_server_opts){.body_timeout_ms = 50, .pool = &pool});
    fd = net_connect(f.port);
    for (int i = 0; i < 200; i++)
        net_send(fd, HEAD("GET /big") "\r\n");
    net_wait_closed(fd);
    close(fd);
    net_stop(&f);
    CHECK_EQ(atomic_load(&pool.used), 0);
}

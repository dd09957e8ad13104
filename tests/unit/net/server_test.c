/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are served. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"
#define LAST       "connection: close\r\n\r\n"

TEST(server, answers_and_keeps_the_connection)
{
    struct net_fixture f = {0};
    const char *answer;
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, HEAD("GET /hello") "\r\n");
    answer = net_read_answer(fd);
    CHECK_EQ(net_status(answer), 200);
    CHECK_TEXT(net_body(answer), "hello\n");
    CHECK(strstr(answer, "date: "));
    CHECK(!strstr(answer, "connection:"));
    net_send(fd, HEAD("POST /echo") "content-length: 5\r\n\r\nagain");
    CHECK_TEXT(net_body(net_read_answer(fd)), "again");
    close(fd);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(server, requests_may_come_byte_by_byte)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send_slowly(fd, HEAD("POST /echo") "transfer-encoding: chunked\r\n\r\n"
                                           "3;a=b\r\nabc\r\n02\r\nde\r\n0\r\nx: y\r\n\r\n");
    CHECK_TEXT(net_body(net_read_answer(fd)), "abcde");
    close(fd);
    net_stop(&f);
}

TEST(server, pipelined_requests_are_answered_in_order)
{
    struct net_fixture f = {0};
    const char *answer;
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /echo") "content-length: 3\r\n\r\none" HEAD(
                     "POST /echo") "content-length: 3\r\n\r\ntwo\r\n" HEAD("GET /hello") LAST);
    CHECK_TEXT(net_body(net_read_answer(fd)), "one");
    CHECK_TEXT(net_body(net_read_answer(fd)), "two");
    answer = net_read_answer(fd);
    CHECK_TEXT(net_body(answer), "hello\n");
    CHECK(strstr(answer, "connection: close\r\n"));
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
}

TEST(server, a_thousand_pipelined_requests_wait_for_their_turn)
{
    struct net_fixture f = {0};
    struct kiln_buf all;
    int fd;

    net_start(&f, &(struct kiln_server_opts){.queue_max = 1});
    kiln_buf_init(&all, 1 << 20);
    for (int i = 0; i < 1000; i++)
        kiln_buf_printf(&all, HEAD("POST /echo") "content-length: 4\r\n\r\n%04d", i);
    fd = net_connect(f.port);
    net_send_str(fd, kiln_buf_str(&all));
    for (int i = 0; i < 1000; i++) {
        char expected[8];

        snprintf(expected, sizeof(expected), "%04d", i);
        CHECK_TEXT(net_body(net_read_answer(fd)), expected);
    }
    close(fd);
    kiln_buf_done(&all);
    net_stop(&f);
}

TEST(server, a_body_may_be_large)
{
    struct net_fixture f = {0};
    size_t size = 40 << 20;
    char *body = kiln_calloc(1, size);
    char head[200], tail[16];
    size_t n = 0;
    ssize_t got;
    int fd;

    net_start(&f, NULL);
    body[size - 1] = 'z';
    snprintf(head, sizeof(head), HEAD("POST /hold") "content-length: %zu\r\n" LAST, size);
    fd = net_connect(f.port);
    net_send(fd, head);
    net_send_str(fd, (struct kiln_str){body, size});
    net_wait_held(1);
    net_release();
    while ((got = recv(fd, body, size, 0)) > 0) {
        n += (size_t)got;
        tail[0] = body[got - 1];
    }
    CHECK(n > size && n < size + 300 && tail[0] == 'z');
    close(fd);
    kiln_free(body);
    net_stop(&f);
}

TEST(server, head_gets_the_head_of_get)
{
    struct net_fixture f = {0};
    const char *answer;

    net_start(&f, NULL);
    answer = net_talk(f.port, HEAD("HEAD /hello") LAST);
    CHECK_EQ(net_status(answer), 200);
    CHECK(strstr(answer, "content-length: 6\r\n"));
    CHECK_TEXT(net_body(answer), "");
    net_stop(&f);
}

TEST(server, http_1_0_ends_after_one_unless_it_wants_more)
{
    struct net_fixture f = {0};
    const char *answer;
    int fd;

    net_start(&f, NULL);
    answer = net_talk(f.port, "GET /hello HTTP/1.0\r\n\r\n");
    CHECK_TEXT(net_body(answer), "hello\n");
    CHECK(strstr(answer, "connection: close\r\n"));
    fd = net_connect(f.port);
    net_send(fd, "GET /hello HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    CHECK(strstr(net_read_answer(fd), "connection: keep-alive\r\n"));
    net_send(fd, "GET /hello HTTP/1.0\r\n\r\n");
    CHECK_TEXT(net_body(net_read_answer(fd)), "hello\n");
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
}

TEST(server, says_continue_to_who_waits_for_it)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, HEAD("POST /echo") "expect: 100-continue\r\ncontent-length: 2\r\n\r\n");
    CHECK_TEXT(net_read_answer(fd), "HTTP/1.1 100 Continue\r\n\r\n");
    net_send(fd, "ok");
    CHECK_TEXT(net_body(net_read_answer(fd)), "ok");
    close(fd);
    net_stop(&f);
}

TEST(server, paths_are_decoded_and_stars_matched)
{
    struct net_fixture f = {0};

    net_start(&f, NULL);
    CHECK_TEXT(net_body(net_talk(f.port, HEAD("GET /rest/a%20b+c?x=y") LAST)), "a b+c\n");
    CHECK_TEXT(net_body(net_talk(f.port, HEAD("GET http://host/rest/abs?x") LAST)), "abs\n");
    CHECK_EQ(net_status(net_talk(f.port, HEAD("GET /rest/%zz") LAST)), 400);
    CHECK_EQ(net_status(net_talk(f.port, HEAD("GET /rest/%00") LAST)), 400);
    net_stop(&f);
}

TEST(server, a_client_that_has_said_all_may_still_listen)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect_held(f.port);
    shutdown(fd, SHUT_WR);
    net_release();
    CHECK_TEXT(net_body(net_read_answer(fd)), "abc");
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
}

TEST(server, a_client_that_is_gone_is_answered_into_the_void)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect_held(f.port);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(fd);
    net_release();
    CHECK_TEXT(net_body(net_talk(f.port, HEAD("GET /hello") LAST)), "hello\n");
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(server, an_answer_after_the_end_of_the_server_is_thrown_away)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect_held(f.port);
    kiln_server_stop(f.server, 0);
    kiln_server_free(f.server);
    net_release();
    kiln_router_free(f.router);
    CHECK(net_is_closed(fd));
    close(fd);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(server, several_loops_share_the_connections)
{
    struct net_fixture f = {0};
    int fds[8];

    net_start(&f, &(struct kiln_server_opts){.loops = 3, .workers = 3});
    for (int i = 0; i < 8; i++)
        fds[i] = net_connect(f.port);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 8; i++)
            net_send(fds[i], HEAD("POST /echo") "content-length: 2\r\n\r\nhi");
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 8; i++)
            CHECK_TEXT(net_body(net_read_answer(fds[i])), "hi");
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

static void too_early(struct kiln_request *request)
{
    kiln_request_reply_text(request, 503, "too early");
}

TEST(server, a_router_may_answer_instead_of_those_that_are_not_ready)
{
    struct net_fixture f = {0};
    struct kiln_router *instead;
    int fd;

    CHECK_OK(kiln_router_new(&instead));
    CHECK_OK(kiln_router_add(instead, &(struct kiln_route){.path = "*", .handler = too_early}));
    net_start(&f, NULL);
    kiln_server_hold(f.server, instead);
    fd = net_connect(f.port);
    net_send(fd, "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    CHECK_EQ(net_status(net_read_answer(fd)), 503);
    kiln_server_hold(f.server, NULL);
    net_send(fd, "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    CHECK_EQ(net_status(net_read_answer(fd)), 200);
    close(fd);
    net_stop(&f);
    kiln_router_free(instead);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"

/* The body of an answer. */
static const char *body_of(const char *answer)
{
    const char *at = strstr(answer, "\r\n\r\n");

    return at ? at + 4 : "(no answer)";
}

static int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

TEST(server, answers_and_keeps_the_connection)
{
    struct net_fixture f;
    const char *answer;
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(fd, HEAD("GET /hello") "\r\n");
    answer = net_read_answer(fd);
    CHECK_EQ(status_of(answer), 200);
    CHECK_TEXT(body_of(answer), "hello\n");
    CHECK(strstr(answer, "date: "));
    net_send(fd, HEAD("POST /echo") "content-length: 5\r\n\r\nagain");
    CHECK_TEXT(body_of(net_read_answer(fd)), "again");
    close(fd);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(server, requests_may_come_byte_by_byte)
{
    struct net_fixture f;
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send_slowly(fd, HEAD("POST /echo") "transfer-encoding: chunked\r\n\r\n"
                                           "3;a=b\r\nabc\r\n02\r\nde\r\n0\r\nx: y\r\n\r\n");
    CHECK_TEXT(body_of(net_read_answer(fd)), "abcde");
    close(fd);
    net_stop(&f);
}

TEST(server, pipelined_requests_are_answered_in_order)
{
    struct net_fixture f;
    const char *answer;
    int fd;

    net_start(&f, NULL);
    fd = net_connect(f.port);
    net_send(
        fd,
        HEAD("POST /echo") "content-length: 3\r\n\r\none" HEAD(
            "POST /echo") "content-length: 3\r\n\r\ntwo\r\n" HEAD("GET /hello") "connection: "
                                                                                "close\r\n\r\n");
    CHECK_TEXT(body_of(net_read_answer(fd)), "one");
    CHECK_TEXT(body_of(net_read_answer(fd)), "two");
    answer = net_read_answer(fd);
    CHECK_TEXT(body_of(answer), "hello\n");
    CHECK(strstr(answer, "connection: close\r\n"));
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
}

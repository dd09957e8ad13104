/* SPDX-License-Identifier: Apache-2.0 */
/* How a server ends. */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "h2client.h"
#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"

static void *stop_patiently(void *server)
{
    kiln_server_stop(server, 60000);
    return NULL;
}

/* Stops the server in a thread, and returns when it has begun to: `witness`, which rests, ends. */
static pthread_t start_stopping(struct kiln_server *server, int witness)
{
    pthread_t thread;

    CHECK_OK(pthread_create(&thread, NULL, stop_patiently, server));
    CHECK(net_is_closed(witness));
    return thread;
}

/* A connection of HTTP/1.1 that rests after a request. */
static int resting(uint16_t port)
{
    int fd = net_connect(port);

    net_send(fd, HEAD("GET /hello") "\r\n");
    CHECK_EQ(net_status(net_read_answer(fd)), 200);
    return fd;
}

TEST(drain, what_is_under_way_is_answered_and_nothing_new_accepted)
{
    struct net_fixture f = {0};
    const char *answer;
    pthread_t thread;
    int busy, half, witness;

    net_start(&f, NULL);
    witness = resting(f.port);
    busy = net_connect(f.port);
    net_send(busy, HEAD("POST /hold") "content-length: 3\r\n\r\nabc");
    half = net_connect(f.port);
    net_send(half, HEAD("POST /hold") "expect: 100-continue\r\ncontent-length: 4\r\n\r\n");
    net_read_answer(half);
    net_send(half, "de");
    net_wait_held(1);
    thread = start_stopping(f.server, witness);
    net_send(half, "fg");
    net_wait_held(2);
    net_release();
    answer = net_read_answer(busy);
    CHECK_TEXT(net_body(answer), "abc");
    CHECK(strstr(answer, "connection: close\r\n"));
    CHECK(net_is_closed(busy));
    CHECK_TEXT(net_body(net_read_answer(half)), "defg");
    close(busy);
    close(half);
    close(witness);
    pthread_join(thread, NULL);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(drain, http2_hears_goaway_and_gets_its_answers)
{
    struct net_fixture f = {0};
    struct h2_client *c = calloc(1, sizeof(*c));
    struct kiln_str body = KILN_STR("abc");
    struct h2_stream *s;
    pthread_t thread;
    int witness;

    net_start(&f, NULL);
    witness = resting(f.port);
    h2_open(c, net_connect(f.port), NULL);
    s = h2_ask(c, "POST", "/hold", NULL, &body);
    h2_flush(c);
    net_wait_held(1);
    thread = start_stopping(f.server, witness);
    h2_wait_goaway(c);
    CHECK_EQ(c->goaway_error, NGHTTP2_NO_ERROR);
    CHECK(!s->closed);
    net_release();
    h2_wait(c, s);
    CHECK_STR(kiln_buf_str(&s->body), "abc");
    h2_wait_end(c);
    close(c->fd);
    close(witness);
    h2_done(c);
    free(c);
    pthread_join(thread, NULL);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(drain, who_takes_too_long_is_cut_off)
{
    struct net_fixture f = {0};
    int fd;

    net_start(&f, NULL);
    fd = net_connect_held(f.port);
    kiln_server_stop(f.server, 10);
    CHECK(net_is_closed(fd));
    close(fd);
    net_stop(&f);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(drain, a_server_may_be_freed_without_being_started)
{
    struct kiln_server *server;
    struct kiln_router *router;

    CHECK_OK(kiln_router_new(&router));
    CHECK_OK(kiln_server_new(NULL, &server));
    CHECK_OK(kiln_server_listen(
        server, &(struct kiln_listen_opts){.address = "127.0.0.1:0", .router = router}, NULL,
        NULL));
    kiln_server_stop(server, 0);
    kiln_server_free(server);
    kiln_router_free(router);
    CHECK_EQ(kiln_mem_live(), 0);
}

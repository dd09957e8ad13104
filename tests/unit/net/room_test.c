/* SPDX-License-Identifier: Apache-2.0 */
/* Servers whose senders wait while there is no memory for bodies. */
#include <unistd.h>

#include "base/mem.h"
#include "net.h"
#include "test.h"

enum { POOL = 1 << 20 };

static struct kiln_pool pool;

static void start(struct net_fixture *f)
{
    memset(f, 0, sizeof(*f));
    kiln_pool_init(&pool, "bodies", POOL, NULL);
    net_routes(f);
    net_start(f, &(struct kiln_server_opts){.pool = &pool, .waits = true});
}

static void stop(struct net_fixture *f)
{
    net_stop(f);
    CHECK_EQ(pool.used, 0);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(room, requests_without_a_body_are_answered_when_bodies_wait)
{
    struct net_fixture f;
    size_t taken = POOL / 8 * 7;
    int fd;

    start(&f);
    CHECK_OK(kiln_pool_take(&pool, taken));
    fd = net_connect(f.port);
    net_send(fd, "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n");
    CHECK_EQ(net_status(net_read_answer(fd)), 200);
    close(fd);
    kiln_pool_give(&pool, taken);
    stop(&f);
}

TEST(room, a_body_is_read_when_there_is_room_for_it)
{
    static char body[200 << 10];
    struct net_fixture f;
    int fd;

    start(&f);
    CHECK_OK(kiln_pool_take(&pool, POOL - 4096));
    fd = net_connect(f.port);
    net_send(fd, "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 204800\r\n\r\n");
    memset(body, 'x', sizeof(body));
    net_send_str(fd, (struct kiln_str){body, 100 << 10});
    kiln_pool_give(&pool, POOL - 4096);
    net_send_str(fd, (struct kiln_str){body, 100 << 10});
    CHECK_EQ(net_status(net_read_answer(fd)), 200);
    close(fd);
    stop(&f);
}

TEST(room, a_body_that_is_larger_than_all_of_it_is_refused_at_once)
{
    struct net_fixture f;
    int fd;

    start(&f);
    fd = net_connect(f.port);
    net_send(fd, "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1048577\r\n\r\n");
    CHECK_EQ(net_status(net_read_answer(fd)), 413);
    close(fd);
    stop(&f);
}

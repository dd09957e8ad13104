/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "net.h"
#include "test.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: x\r\n"
#define LAST       "connection: close\r\n\r\n"

/* A server that is not started, to listen with. */
struct bench {
    struct kiln_server *server;
    struct kiln_router *router;
    struct kiln_err err;
};

static void setup(struct bench *b)
{
    *b = (struct bench){0};
    CHECK_OK(kiln_router_new(&b->router));
    CHECK_OK(kiln_server_new(NULL, &b->server));
}

static void teardown(struct bench *b)
{
    kiln_server_free(b->server);
    kiln_router_free(b->router);
}

static int listen_on(struct bench *b, const char *address, uint16_t *ret_port)
{
    struct kiln_listen_opts opts = {.address = address, .router = b->router};

    b->err = (struct kiln_err){0};
    return kiln_server_listen(b->server, &opts, ret_port, &b->err);
}

TEST(listen, many_forms_of_addresses)
{
    static const char *const addresses[] = {"127.0.0.1:0", "localhost:0", ":0"};
    struct bench b;

    setup(&b);
    for (size_t i = 0; i < KILN_ARRAY_LEN(addresses); i++) {
        uint16_t port = 0;

        CHECK_OK(listen_on(&b, addresses[i], &port));
        CHECK(port > 0);
    }
    teardown(&b);
}

TEST(listen, what_is_no_address_is_named)
{
    static const char *const addresses[] = {
        "",         "4040",  "localhost", "127.0.0.1:",    ":65536", "127.0.0.1:-1",
        "::1:4040", "a:b:c", "unix:",     "127.0.0.1:http"};
    struct bench b;

    setup(&b);
    for (size_t i = 0; i < KILN_ARRAY_LEN(addresses); i++) {
        CHECK(listen_on(&b, addresses[i], NULL) < 0);
        CHECK_TEXT(b.err.where, addresses[i]);
        CHECK(b.err.text[0]);
    }
    teardown(&b);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(listen, a_port_that_is_taken_is_named)
{
    struct bench b;
    char address[32];
    uint16_t port;

    setup(&b);
    CHECK_OK(listen_on(&b, "127.0.0.1:0", &port));
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    CHECK_EQ(listen_on(&b, address, NULL), -EADDRINUSE);
    CHECK_TEXT(b.err.where, address);
    CHECK(strstr(b.err.text, "already in use"));
    teardown(&b);
}

static void who(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "%s %d %u %d", request->peer.address, request->peer.local,
                            request->peer.uid, request->peer.pid);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    CHECK_OK(connect(fd, (struct sockaddr *)&name, sizeof(name)));
    return fd;
}

TEST(listen, a_unix_socket_knows_who_calls)
{
    char folder[] = "/tmp/kiln-listen-XXXXXX", address[64], expected[64];
    const char *path = address + 5;
    struct stat st;
    struct bench b;
    int fd;

    CHECK(mkdtemp(folder));
    snprintf(address, sizeof(address), "unix:%s/k.sock", folder);
    setup(&b);
    CHECK_OK(kiln_router_add(b.router, &(struct kiln_route){.path = "/who", .handler = who}));
    CHECK_OK(listen_on(&b, address, NULL));
    CHECK_OK(kiln_server_start(b.server, NULL));
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_mode & 0777, 0660);
    fd = connect_unix(path);
    net_send(fd, HEAD("GET /who") LAST);
    snprintf(expected, sizeof(expected), "unix 1 %u %d\n", getuid(), getpid());
    CHECK_TEXT(net_body(net_read_all(fd)), expected);
    close(fd);
    teardown(&b);
    CHECK_EQ(access(path, F_OK), -1);
    rmdir(folder);
}

TEST(listen, on_a_socket_for_every_user_nobody_has_rights_by_who_they_are)
{
    char folder[] = "/tmp/kiln-listen-XXXXXX", address[64];
    const char *path = address + 5;
    struct kiln_listen_opts opts = {.address = address, .for_every_user = true};
    struct stat st;
    char who_is[32];
    struct bench b;
    int fd;

    CHECK(mkdtemp(folder));
    snprintf(address, sizeof(address), "unix:%s/k.sock", folder);
    snprintf(who_is, sizeof(who_is), "unix 0 %u 0\n", (unsigned)geteuid());
    setup(&b);
    opts.router = b.router;
    CHECK_OK(kiln_router_add(b.router, &(struct kiln_route){.path = "/who", .handler = who}));
    CHECK_OK(kiln_server_listen(b.server, &opts, NULL, NULL));
    CHECK_OK(kiln_server_start(b.server, NULL));
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_mode & 0777, 0666);
    fd = connect_unix(path);
    net_send(fd, HEAD("GET /who") LAST);
    CHECK_TEXT(net_body(net_read_all(fd)), who_is);
    close(fd);
    teardown(&b);
    rmdir(folder);
}

TEST(listen, a_socket_file_left_behind_is_replaced_but_not_one_in_use)
{
    char folder[] = "/tmp/kiln-listen-XXXXXX", address[64];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct bench first, second;
    int fd;

    CHECK(mkdtemp(folder));
    snprintf(address, sizeof(address), "unix:%s/k.sock", folder);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/k.sock", folder);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_OK(bind(fd, (struct sockaddr *)&name, sizeof(name)));
    close(fd);
    setup(&first);
    setup(&second);
    CHECK_OK(listen_on(&first, address, NULL));
    CHECK_EQ(listen_on(&second, address, NULL), -EADDRINUSE);
    teardown(&second);
    CHECK_OK(access(name.sun_path, F_OK));
    teardown(&first);
    rmdir(folder);
}

TEST(listen, a_file_that_is_no_socket_is_left_alone)
{
    char path[] = "/tmp/kiln-listen-XXXXXX", address[64];
    int fd = mkstemp(path);
    struct bench b;

    close(fd);
    snprintf(address, sizeof(address), "unix:%s", path);
    setup(&b);
    CHECK_EQ(listen_on(&b, address, NULL), -EADDRINUSE);
    teardown(&b);
    CHECK_OK(access(path, F_OK));
    unlink(path);
}

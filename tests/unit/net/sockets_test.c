/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sockets.h"
#include "test.h"

static int listen_as(struct kiln_sockets *sockets, const char *name, const char *address)
{
    int fd = -1;

    CHECK_OK(kiln_sockets_listen(sockets, name, &(struct kiln_socket_opts){.address = address}, &fd,
                                 NULL));
    return fd;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    close(fd);
    return -1;
}

TEST(sockets, who_connects_between_two_servers_is_served_by_the_next)
{
    struct kiln_sockets *sockets;
    uint16_t port;
    int first, client, second, got;

    CHECK_OK(kiln_sockets_new(&sockets));
    first = listen_as(sockets, "a", "127.0.0.1:0");
    port = kiln_socket_port(first);
    close(first);
    client = connect_to(port);
    CHECK(client >= 0);
    kiln_sockets_turn(sockets);
    second = listen_as(sockets, "a", "127.0.0.1:0");
    CHECK_EQ(kiln_socket_port(second), port);
    poll(&(struct pollfd){second, POLLIN, 0}, 1, 10000);
    got = accept(second, NULL, NULL);
    CHECK(got >= 0);
    close(got), close(second), close(client);
    kiln_sockets_free(sockets);
    CHECK_EQ(connect_to(port), -1);
}

TEST(sockets, any_port_is_another_one_for_every_name)
{
    struct kiln_sockets *sockets;
    int a, b;

    CHECK_OK(kiln_sockets_new(&sockets));
    a = listen_as(sockets, "a", "127.0.0.1:0");
    b = listen_as(sockets, "b", "127.0.0.1:0");
    CHECK(kiln_socket_port(a) != kiln_socket_port(b));
    close(a), close(b);
    kiln_sockets_free(sockets);
}

TEST(sockets, a_port_goes_to_a_new_name_and_not_to_two_at_once)
{
    struct kiln_sockets *sockets;
    struct kiln_err err = {0};
    char address[32];
    int old, fd = -1;

    CHECK_OK(kiln_sockets_new(&sockets));
    old = listen_as(sockets, "free", "127.0.0.1:0");
    snprintf(address, sizeof(address), "127.0.0.1:%u", kiln_socket_port(old));
    kiln_sockets_turn(sockets);
    kiln_sockets_trim(sockets); /* the number is free again */
    close(old);
    close(listen_as(sockets, "before", address));
    CHECK_EQ(kiln_sockets_listen(sockets, "beside", &(struct kiln_socket_opts){.address = address},
                                 &fd, &err),
             -EADDRINUSE);
    kiln_sockets_turn(sockets);
    close(listen_as(sockets, "after", address));
    kiln_sockets_free(sockets);
}

static void tell(void *context, const char *name, const char *address, uint16_t port)
{
    char *out = context;

    snprintf(out + strlen(out), 200 - strlen(out), "%s=%s%s ", name, address, port ? "" : " unix");
}

TEST(sockets, what_nobody_takes_after_a_turn_is_closed)
{
    struct kiln_sockets *sockets;
    char dir[] = "/tmp/kiln-sockets-XXXXXX", address[64], told[200] = "", wanted[200];
    uint16_t port;
    int a;

    CHECK(mkdtemp(dir) != NULL);
    snprintf(address, sizeof(address), "unix:%s/s", dir);
    CHECK_OK(kiln_sockets_new(&sockets));
    a = listen_as(sockets, "a", "127.0.0.1:0");
    port = kiln_socket_port(a);
    close(a);
    close(listen_as(sockets, "u", address));
    kiln_sockets_turn(sockets);
    close(listen_as(sockets, "u", address));
    kiln_sockets_trim(sockets);
    CHECK_EQ(connect_to(port), -1);
    kiln_sockets_each(sockets, tell, told);
    snprintf(wanted, sizeof(wanted), "u=%s unix ", address);
    CHECK_TEXT(told, wanted);
    kiln_sockets_free(sockets);
    CHECK_EQ(access(address + 5, F_OK), -1);
    CHECK_OK(rmdir(dir));
}

/* From one host to another and back, at the same port: as a configuration is changed. */
TEST(sockets, a_port_may_change_its_host)
{
    static const char *const hosts[] = {"0.0.0.0", "127.0.0.1", "localhost", "0.0.0.0"};
    struct kiln_sockets *sockets;
    struct kiln_err err = {0};
    char address[32];
    uint16_t port;
    int fd;

    CHECK_OK(kiln_sockets_new(&sockets));
    fd = listen_as(sockets, "a", "127.0.0.1:0");
    port = kiln_socket_port(fd);
    close(fd);
    for (size_t i = 0; i < KILN_ARRAY_LEN(hosts); i++) {
        snprintf(address, sizeof(address), "%s:%u", hosts[i], port);
        kiln_sockets_turn(sockets);
        fd = listen_as(sockets, "a", address);
        CHECK_EQ(kiln_socket_port(fd), port);
        close(fd);
        /* What was taken since stays. */
        CHECK_EQ(kiln_sockets_listen(sockets, "b", &(struct kiln_socket_opts){.address = address},
                                     &fd, &err),
                 -EADDRINUSE);
    }
    kiln_sockets_free(sockets);
}

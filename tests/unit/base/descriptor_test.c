/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

static int pair[2];

static void make_pair(void)
{
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
}

static void close_pair(void)
{
    close(pair[0]);
    close(pair[1]);
}

static int n_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* A message with so many bytes of `code`, and so many descriptors. */
static void send_raw(int code, size_t bytes, int n)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    int fds[2] = {0, 1};
    struct iovec piece = {&code, bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    if (n) {
        control.head.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, (size_t)n * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
    }
    CHECK_EQ(sendmsg(pair[0], &message, 0), (ssize_t)bytes);
}

TEST(descriptor, is_passed_or_an_error_is)
{
    int fd;

    make_pair();
    CHECK_OK(kiln_descriptor_send(pair[0], pair[1]));
    fd = kiln_descriptor_receive(pair[1]);
    CHECK(fd > pair[1]);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    CHECK_OK(kiln_descriptor_send(pair[0], -ENOENT));
    CHECK_EQ(kiln_descriptor_receive(pair[1]), -ENOENT);
    close(pair[0]);
    CHECK_EQ(kiln_descriptor_receive(pair[1]), -EPIPE);
    close(pair[1]);
}

TEST(descriptor, what_does_not_belong_there_is_closed)
{
    int before, fd;

    make_pair();
    before = n_open();
    send_raw(-ENOENT, sizeof(int), 1);
    CHECK_EQ(kiln_descriptor_receive(pair[1]), -ENOENT);
    CHECK_EQ(n_open(), before);
    send_raw(0, 1, 1);
    CHECK_EQ(kiln_descriptor_receive(pair[1]), -EPIPE);
    CHECK_EQ(n_open(), before);
    send_raw(0, sizeof(int), 0);
    CHECK_EQ(kiln_descriptor_receive(pair[1]), -EPIPE);
    send_raw(0, sizeof(int), 2);
    fd = kiln_descriptor_receive(pair[1]);
    CHECK(fd >= 0);
    CHECK_EQ(n_open(), before + 1);
    close(fd);
    close_pair();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A message is an int, 0 or a negative errno, and with 0 the descriptor as ancillary data. */
#include "base/descriptor.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int kiln_descriptor_send(int to, int fd)
{
    int code = fd < 0 ? fd : 0;
    union control control = {.head = {.cmsg_len = CMSG_LEN(sizeof(fd)),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS}};
    struct iovec piece = {&code, sizeof(code)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    if (fd >= 0) {
        memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    return sendmsg(to, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* The descriptor of a message; -1: it has none. */
static int found_in(struct msghdr *message)
{
    const struct cmsghdr *head = CMSG_FIRSTHDR(message);
    int fd;

    if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
        head->cmsg_len != CMSG_LEN(sizeof(fd)))
        return -1;
    memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    return fd;
}

/* The padding of the buffer, which would take a second descriptor, is left out: the kernel closes
 * what does not fit. */
int kiln_descriptor_receive(int from)
{
    int code = -EPIPE, fd;
    union control control;
    struct iovec piece = {&code, sizeof(code)};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_LEN(sizeof(fd))};
    ssize_t n;

    do
        n = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    fd = n < 0 ? -1 : found_in(&message);
    if (n == sizeof(code) && code >= 0 && fd >= 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return n == sizeof(code) && code < 0 ? code : -EPIPE;
}

/* ---- closing ---- */

static int close_listed(unsigned first, unsigned last)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir))) {
        uint64_t fd;

        if (kiln_str_parse_u64(kiln_str_of(entry->d_name), &fd) == 0 && fd >= first && fd <= last &&
            (int)fd != dirfd(dir))
            close((int)fd);
    }
    closedir(dir);
    return 0;
}

/* Linux has the call since 5.9, glibc since 2.34; filters of older containers refuse it. */
int kiln_descriptors_close(unsigned first, unsigned last)
{
    return syscall(SYS_close_range, first, last, 0) == 0 ? 0 : close_listed(first, last);
}

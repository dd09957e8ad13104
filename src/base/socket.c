/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/socket.h"
#include "base/str.h"

#define BACKLOG 1024

struct target {
    char host[256];
    char port[16];
    bool any; /* no host: every address */
};

static int parse_address(const char *address, struct target *ret, struct kiln_err *err)
{
    const char *colon = strrchr(address, ':');
    const char *host = address, *end = colon;
    uint64_t port = 0;

    if (!colon || kiln_str_parse_u64(kiln_str_of(colon + 1), &port) < 0 || port > 65535)
        return kiln_err_set(err, -EINVAL, address,
                            "an address to listen on looks like 127.0.0.1:4040, [::1]:4040, :4040 "
                            "or unix:/path");
    if (*host == '[' && colon > host + 1 && colon[-1] == ']')
        host++, end--;
    else if (memchr(host, ':', (size_t)(colon - host)))
        return kiln_err_set(err, -EINVAL, address,
                            "an IPv6 address stands in brackets: [::1]:4040");
    if ((size_t)(end - host) >= sizeof(ret->host))
        return kiln_err_set(err, -EINVAL, address, "the name of the host is too long");
    memcpy(ret->host, host, (size_t)(end - host));
    ret->host[end - host] = 0;
    ret->any = end == host;
    snprintf(ret->port, sizeof(ret->port), "%u", (unsigned)port);
    return 0;
}

static int say_why(const char *address, int error, struct kiln_err *err)
{
    if (error == EADDRINUSE)
        return kiln_err_set(err, -error, address,
                            "already in use; is another server running there?");
    if (error == EACCES)
        return kiln_err_set(err, -error, address, "not allowed to listen there");
    if (error == EADDRNOTAVAIL)
        return kiln_err_set(err, -error, address, "this machine has no such address");
    return kiln_err_set(err, -error, address, "cannot listen: %s", kiln_err_text(-error));
}

static int bind_one(const struct addrinfo *info, int *ret_fd)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1, off = 0;
    int error;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        *ret_fd = fd;
        return 0;
    }
    error = errno;
    close(fd);
    return -error;
}

uint16_t kiln_socket_port(int fd)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof(name);

    if (getsockname(fd, (struct sockaddr *)&name, &len) < 0)
        return 0;
    if (name.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
    return name.ss_family == AF_INET ? ntohs(((struct sockaddr_in *)&name)->sin_port) : 0;
}

/* On the loopback alone. */
static int bind_loopback(const struct target *target, int *ret_fd)
{
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)strtoul(target->port, NULL, 10)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct addrinfo info = {
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&four, .ai_addrlen = sizeof(four)};

    return bind_one(&info, ret_fd);
}

/* ":4040" is IPv6 and IPv4 on one socket, or IPv4 alone where there is no IPv6. */
static int bind_any(const struct target *target, int *ret_fd)
{
    uint16_t port = htons((uint16_t)strtoul(target->port, NULL, 10));
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port};
    struct addrinfo info = {
        .ai_family = AF_INET6, .ai_addr = (struct sockaddr *)&six, .ai_addrlen = sizeof(six)};
    int r = bind_one(&info, ret_fd);

    if (r != -EAFNOSUPPORT && r != -EADDRNOTAVAIL)
        return r;
    info = (struct addrinfo){
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&four, .ai_addrlen = sizeof(four)};
    return bind_one(&info, ret_fd);
}

/* Numbers need nobody's help.  A name that is both is taken as IPv4: more clients that say
 * "localhost" mean 127.0.0.1. */
static int look_up(const struct target *target, struct addrinfo **ret_found)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICHOST};
    int r = getaddrinfo(target->host, target->port, &hints, ret_found);

    hints.ai_flags = AI_PASSIVE;
    hints.ai_family = AF_INET;
    if (r)
        r = getaddrinfo(target->host, target->port, &hints, ret_found);
    hints.ai_family = AF_UNSPEC;
    return r ? getaddrinfo(target->host, target->port, &hints, ret_found) : 0;
}

static int listen_tcp(const char *address, bool loopback, int *ret_fd, struct kiln_err *err)
{
    struct addrinfo *found = NULL;
    struct target target = {0};
    int r = parse_address(address, &target, err);

    if (r < 0)
        return r;
    if (target.any) {
        r = loopback ? bind_loopback(&target, ret_fd) : bind_any(&target, ret_fd);
        return r < 0 ? say_why(address, -r, err) : 0;
    }
    r = look_up(&target, &found);
    if (r)
        return kiln_err_set(err, -EADDRNOTAVAIL, address, "%s", gai_strerror(r));
    r = -EADDRNOTAVAIL;
    for (struct addrinfo *info = found; info; info = info->ai_next) {
        r = bind_one(info, ret_fd);
        if (r != -EADDRNOTAVAIL && r != -EAFNOSUPPORT)
            break;
    }
    freeaddrinfo(found);
    return r < 0 ? say_why(address, -r, err) : 0;
}

/* A socket file that nobody listens on any more is in the way after a crash. */
static bool is_stale(const struct sockaddr_un *name)
{
    struct stat st;
    int fd, r;

    if (lstat(name->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    r = connect(fd, (const struct sockaddr *)name, sizeof(*name)) < 0 ? errno : 0;
    close(fd);
    return r == ECONNREFUSED;
}

/* Of the socket itself: not of what a link leads to that another user has put there since.  Threads
 * of libkiln have descriptors of their own, which are not in /proc/self. */
static int set_mode(const char *path, uint32_t mode)
{
    char direct[64];
    struct stat st;
    int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), r = 0;

    if (file < 0)
        return -errno;
    snprintf(direct, sizeof(direct), "/proc/thread-self/fd/%d", file);
    if (fstat(file, &st) < 0)
        r = -errno;
    else if (!S_ISSOCK(st.st_mode))
        r = -EACCES;
    else if (chmod(access(direct, F_OK) == 0 ? direct : path, mode) < 0)
        r = -errno;
    close(file);
    return r;
}

static int listen_unix(const char *address, uint32_t mode, int *ret_fd, struct kiln_err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *path = address + strlen("unix:");
    int fd, r;

    if (*path == 0 || strlen(path) >= sizeof(name.sun_path))
        return kiln_err_set(err, -EINVAL, address, "the path of a socket has 1 to %zu bytes",
                            sizeof(name.sun_path) - 1);
    memcpy(name.sun_path, path, strlen(path) + 1);
    if (is_stale(&name))
        unlink(path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return say_why(address, errno, err);
    /* Nobody may connect before the mode is right: the file gets that of the socket, without a
     * look at the process' umask, which other threads need as it is. */
    r = fchmod(fd, 0) < 0 || bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ? errno : 0;
    if (!r)
        r = -set_mode(path, mode ? mode : 0660);
    if (!r && listen(fd, BACKLOG) < 0)
        r = errno;
    if (r) {
        close(fd);
        return say_why(address, r, err);
    }
    *ret_fd = fd;
    return 0;
}

int kiln_socket_listen(const struct kiln_socket_opts *opts, int *ret_fd, struct kiln_err *err)
{
    if (strncmp(opts->address, "unix:", 5) == 0)
        return listen_unix(opts->address, opts->unix_mode, ret_fd, err);
    return listen_tcp(opts->address, opts->loopback, ret_fd, err);
}

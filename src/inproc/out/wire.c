/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "inproc/out/tls.h"

enum { SLICE_MS = 50, ADDRESSES_MAX = 8 };

struct kiln_in_wire {
    int fd;
    bool local;
    struct kiln_in_tls *tls; /* NULL: plain */
};

/* ---- time ---- */

int kiln_in_deadline_slice_ms(const struct kiln_in_deadline *until)
{
    uint64_t now = kiln_clock_mono_ns(), at = until->at_ns;
    uint64_t end = until->end_ns ? atomic_load(until->end_ns) : 0;

    if (end && end < at)
        at = end;
    if (at <= now)
        return 0;
    at = (at - now) / KILN_NS_PER_MS + 1;
    return at > SLICE_MS ? SLICE_MS : (int)at;
}

/* 0, or -ETIMEDOUT. */
static int wait_for(int fd, short events, const struct kiln_in_deadline *until)
{
    for (;;) {
        int ms = kiln_in_deadline_slice_ms(until);
        struct pollfd one = {.fd = fd, .events = events};
        int n = poll(&one, 1, ms);

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (ms == 0)
            return -ETIMEDOUT;
    }
}

/* ---- addresses ---- */

static int bad_address(const char *server, struct kiln_err *err)
{
    return kiln_err_set(err, -EINVAL, NULL, "\"%.80s\" is no address of a server", server);
}

static bool copy_text(struct kiln_str text, char *to, size_t size)
{
    if (!text.len || text.len >= size)
        return false;
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    return true;
}

/* "host", "host:port", "[::1]:port". */
static bool parse_host(struct kiln_str text, struct kiln_in_address *address)
{
    struct kiln_str host = text, port = KILN_STR_NONE;

    if (text.len && text.ptr[0] == '[') {
        host = (struct kiln_str){text.ptr + 1, text.len - 1};
        port = host;
        host = kiln_str_cut(&port, ']');
        if (!port.ptr || (port.len && port.ptr[0] != ':'))
            return false;
        if (port.len)
            port = (struct kiln_str){port.ptr + 1, port.len - 1};
    } else if (memchr(text.ptr, ':', text.len)) {
        port = text;
        host = kiln_str_cut(&port, ':');
    }
    if (!port.len)
        port = address->tls ? KILN_STR("443") : KILN_STR("80");
    return copy_text(host, address->host, sizeof(address->host)) &&
           copy_text(port, address->port, sizeof(address->port));
}

int kiln_in_address_parse(const char *server, struct kiln_in_address *ret_address,
                          struct kiln_err *err)
{
    struct kiln_in_address address = {0};
    struct kiln_str text = kiln_str_of(server);
    bool good;

    if (kiln_str_starts(text, KILN_STR("unix:"))) {
        address.local = true;
        text.ptr += 5;
        text.len -= 5;
        good = text.len < sizeof(((struct sockaddr_un *)0)->sun_path) &&
               copy_text(text, address.host, sizeof(address.host));
    } else {
        const char *behind = strstr(server, "://");

        address.tls = kiln_str_starts(text, KILN_STR("https://"));
        good = behind && parse_host(kiln_str_of(behind + 3), &address);
    }
    if (!good)
        return bad_address(server, err);
    *ret_address = address;
    return 0;
}

/* ---- opening ---- */

static int connect_one(const struct sockaddr *address, socklen_t len,
                       const struct kiln_in_deadline *until, int *ret_fd)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = 0, r = 0;
    socklen_t size = sizeof(error);

    if (fd < 0)
        return -errno;
    if (connect(fd, address, len) < 0)
        r = errno == EINPROGRESS ? wait_for(fd, POLLOUT, until) : -errno;
    if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0)
        r = -error;
    if (r < 0) {
        close(fd);
        return r;
    }
    if (address->sa_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    *ret_fd = fd;
    return 0;
}

static int connect_local(const struct kiln_in_address *address,
                         const struct kiln_in_deadline *until, int *ret_fd)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    memcpy(to.sun_path, address->host, strlen(address->host) + 1);
    return connect_one((const struct sockaddr *)&to, sizeof(to), until, ret_fd);
}

enum { BY_HAND_MAX = 2 };

static bool to_number(int family, const char *text, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)ret;

    *ret = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
    if (family == AF_INET) {
        four->sin_port = htons(port);
        return inet_pton(AF_INET, text, &four->sin_addr) == 1;
    }
    six->sin6_port = htons(port);
    return inet_pton(AF_INET6, text, &six->sin6_addr) == 1;
}

/*
 * Numbers and "localhost" (RFC 6761), without getaddrinfo(), which loads libraries into the program
 * and reads its environment.  Returns how many; 0: look it up.
 */
static int resolve_by_hand(const struct kiln_in_address *address,
                           struct sockaddr_storage ret[BY_HAND_MAX])
{
    bool is_here = strcasecmp(address->host, "localhost") == 0;
    char *end;
    unsigned long port = strtoul(address->port, &end, 10);
    int n = 0;

    if (*end || port > UINT16_MAX)
        return 0;
    n += to_number(AF_INET6, is_here ? "::1" : address->host, (uint16_t)port, &ret[n]);
    n += to_number(AF_INET, is_here ? "127.0.0.1" : address->host, (uint16_t)port, &ret[n]);
    return n;
}

static int connect_known(const struct sockaddr_storage *found, int n,
                         const struct kiln_in_deadline *until, int *ret_fd)
{
    int r = -EHOSTUNREACH;

    for (int i = 0; i < n && r < 0; i++)
        r = connect_one((const struct sockaddr *)&found[i],
                        found[i].ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                      : sizeof(struct sockaddr_in6),
                        until, ret_fd);
    return r;
}

static int connect_named(const struct kiln_in_address *address,
                         const struct kiln_in_deadline *until, int *ret_fd, struct kiln_err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int r = getaddrinfo(address->host, address->port, &hints, &found);
    int tried = 0;

    if (r != 0)
        return kiln_err_set(err, -EHOSTUNREACH, NULL, "%s: %s", address->host, gai_strerror(r));
    r = -EHOSTUNREACH;
    for (const struct addrinfo *one = found; one && r < 0 && tried < ADDRESSES_MAX; tried++) {
        r = connect_one(one->ai_addr, one->ai_addrlen, until, ret_fd);
        one = one->ai_next;
    }
    freeaddrinfo(found);
    return r;
}

static int connect_host(const struct kiln_in_address *address, const struct kiln_in_deadline *until,
                        int *ret_fd, struct kiln_err *err)
{
    struct sockaddr_storage found[BY_HAND_MAX];
    int n = resolve_by_hand(address, found);

    return n ? connect_known(found, n, until, ret_fd) : connect_named(address, until, ret_fd, err);
}

int kiln_in_wire_open(const struct kiln_in_wire_opts *opts, const struct kiln_in_deadline *until,
                      struct kiln_in_wire **ret_wire, struct kiln_err *err)
{
    struct kiln_in_wire *wire = kiln_calloc(1, sizeof(*wire));
    struct kiln_in_address address;
    int r = wire ? kiln_in_address_parse(opts->server, &address, err) : -ENOMEM;

    if (r < 0) {
        kiln_free(wire);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    wire->fd = -1;
    wire->local = address.local;
    r = address.local ? connect_local(&address, until, &wire->fd)
                      : connect_host(&address, until, &wire->fd, err);
    if (r == 0 && address.tls)
        r = kiln_in_tls_open(wire->fd, address.host, opts, until, &wire->tls, err);
    if (r < 0) {
        kiln_in_wire_close(wire);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_wire = wire;
    return 0;
}

void kiln_in_wire_close(struct kiln_in_wire *wire)
{
    if (!wire)
        return;
    kiln_in_tls_close(wire->tls);
    if (wire->fd >= 0)
        close(wire->fd);
    kiln_free(wire);
}

/* ---- using ---- */

/* One step: bytes, 0 at the end (of reading), -EAGAIN with what to wait for, or an error. */
static int step_write(struct kiln_in_wire *wire, struct kiln_str bytes, short *ret_events)
{
    ssize_t n;

    if (wire->tls)
        return kiln_in_tls_write(wire->tls, bytes, ret_events);
    *ret_events = POLLOUT;
    n = send(wire->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
    return n < 0 ? -errno : (int)n;
}

static int step_read(struct kiln_in_wire *wire, void *to, size_t size, short *ret_events)
{
    ssize_t n;

    if (wire->tls)
        return kiln_in_tls_read(wire->tls, to, size, ret_events);
    *ret_events = POLLIN;
    n = recv(wire->fd, to, size, 0);
    return n < 0 ? -errno : (int)n;
}

enum { PIECE_MAX = 1 << 20 };

int kiln_in_wire_write(struct kiln_in_wire *wire, struct kiln_str bytes,
                       const struct kiln_in_deadline *until)
{
    while (bytes.len) {
        struct kiln_str piece = {bytes.ptr, bytes.len < PIECE_MAX ? bytes.len : PIECE_MAX};
        short events = POLLOUT;
        int n = step_write(wire, piece, &events);

        if (n == -EAGAIN || n == -EINTR) {
            n = wait_for(wire->fd, events, until);
            if (n < 0)
                return n;
            continue;
        }
        if (n <= 0)
            return n < 0 ? n : -EPIPE;
        bytes.ptr += n;
        bytes.len -= (size_t)n;
    }
    return 0;
}

int kiln_in_wire_read(struct kiln_in_wire *wire, void *to, size_t size,
                      const struct kiln_in_deadline *until)
{
    for (;;) {
        short events = POLLIN;
        int n = step_read(wire, to, size < PIECE_MAX ? size : PIECE_MAX, &events);

        if (n != -EAGAIN && n != -EINTR)
            return n;
        n = wait_for(wire->fd, events, until);
        if (n < 0)
            return n;
    }
}

bool kiln_in_wire_is_quiet(const struct kiln_in_wire *wire)
{
    struct pollfd one = {.fd = wire->fd, .events = POLLIN};

    return poll(&one, 1, 0) == 0;
}

int32_t kiln_in_wire_peer(const struct kiln_in_wire *wire)
{
    struct ucred who = {0};
    socklen_t size = sizeof(who);

    if (!wire->local || getsockopt(wire->fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return 0;
    return who.pid;
}

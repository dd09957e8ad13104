/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/keep/self.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "inproc/clock.h"

enum { ANSWER_MAX = 64 << 10, PATIENCE_MS = 500, NS_PER_MS = 1000000 };

/* ---- the answer ---- */

static int read_sampled(struct kiln_json *r, struct kiln_in_self *self)
{
    struct kiln_str name;
    int n = kiln_json_object(r);

    while (n == 0 && (n = kiln_json_member(r, &name)) > 0) {
        if (kiln_str_eq(name, KILN_STR("cpu")))
            n = kiln_json_bool(r, &self->cpu);
        else if (kiln_str_eq(name, KILN_STR("off_cpu")))
            n = kiln_json_bool(r, &self->off_cpu);
        else
            n = kiln_json_skip(r);
    }
    return n;
}

/* "sampled" comes first, then perhaps "names"; what follows may be cut off. */
static int read_body(struct kiln_str body, struct kiln_in_self *self)
{
    struct kiln_str name;
    struct kiln_json r;
    int n;

    kiln_json_init(&r, body, NULL);
    n = kiln_json_object(&r);
    if (n == 0)
        n = kiln_json_member(&r, &name);
    if (n == 1)
        n = kiln_str_eq(name, KILN_STR("sampled")) ? read_sampled(&r, self) : -ENOENT;
    else if (n == 0)
        n = -ENOENT;
    if (n == 0 && kiln_json_member(&r, &name) == 1 && kiln_str_eq(name, KILN_STR("names")) &&
        kiln_json_bool(&r, &self->names) < 0)
        self->names = false;
    kiln_json_done(&r);
    return n;
}

int kiln_in_self_parse(struct kiln_str answer, struct kiln_in_self *ret_self)
{
    static const char well[] = "HTTP/1.1 200 ";
    struct kiln_in_self self = {0};
    const char *body = memmem(answer.ptr, answer.len, "\r\n\r\n", 4);
    int r;

    if (!body || !kiln_str_starts(answer, kiln_str_of(well)))
        return -EPROTO;
    body += 4;
    r = read_body((struct kiln_str){body, (size_t)(answer.ptr + answer.len - body)}, &self);
    if (r < 0)
        return r;
    *ret_self = self;
    return 0;
}

/* ---- asking ---- */

static int open_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, r = 0;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        r = -errno;
    if (r < 0)
        close(fd);
    return r < 0 ? r : fd;
}

static ssize_t receive(int fd, char *to, size_t size)
{
    uint64_t end_ns = kiln_in_now_ns() + (uint64_t)PATIENCE_MS * NS_PER_MS;
    size_t n = 0;

    while (n < size) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        uint64_t now_ns = kiln_in_now_ns();
        ssize_t got;

        if (now_ns >= end_ns || poll(&one, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1) < 0)
            return -ETIMEDOUT;
        got = recv(fd, to + n, size - n, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

int kiln_in_self_ask(const char *socket, struct kiln_in_self *ret_self)
{
    static const char question[] =
        "GET /v1/self HTTP/1.1\r\nhost: kiln\r\nconnection: close\r\n\r\n";
    char *answer;
    ssize_t n;
    int fd, r;

    *ret_self = (struct kiln_in_self){0};
    fd = open_socket(socket);
    if (fd < 0)
        return fd;
    answer = kiln_malloc(ANSWER_MAX);
    if (!answer) {
        close(fd);
        return -ENOMEM;
    }
    n = send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    n = n == sizeof(question) - 1 ? receive(fd, answer, ANSWER_MAX) : -EAGAIN;
    close(fd);
    r = n < 0 ? (int)n : kiln_in_self_parse((struct kiln_str){answer, (size_t)n}, ret_self);
    kiln_free(answer);
    return r;
}

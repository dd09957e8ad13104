/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"
#include "test.h"

#define PATIENCE_S 60
#define ANSWER_MAX (256 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t held_changed = PTHREAD_COND_INITIALIZER;
static struct kiln_request *held[64];
static uint32_t n_held;

static void echo(struct kiln_request *request)
{
    struct kiln_reply reply = {
        .status = 200, .content_type = "application/x-test", .body = request->body};

    kiln_request_reply(request, &reply);
}

static void hello(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "hello");
}

static void big(struct kiln_request *request)
{
    struct kiln_reply reply = {.status = 200, .content_type = "text/plain"};
    char *text = malloc(64000);

    memset(text, 'k', 64000);
    reply.body = (struct kiln_str){text, 64000};
    kiln_request_reply(request, &reply);
    free(text);
}

static void rest(struct kiln_request *request)
{
    kiln_request_reply_text(request, 200, "%.*s", KILN_STR_ARG(request->rest));
}

void net_hold(struct kiln_request *request)
{
    pthread_mutex_lock(&lock);
    held[n_held++] = request;
    pthread_cond_broadcast(&held_changed);
    pthread_mutex_unlock(&lock);
}

void net_wait_held(uint32_t n)
{
    pthread_mutex_lock(&lock);
    while (n_held < n)
        pthread_cond_wait(&held_changed, &lock);
    pthread_mutex_unlock(&lock);
}

void net_release(void)
{
    pthread_mutex_lock(&lock);
    while (n_held)
        echo(held[--n_held]);
    pthread_mutex_unlock(&lock);
}

void net_routes(struct net_fixture *f)
{
    const struct kiln_route routes[] = {
        {.method = "POST", .path = "/echo", .handler = echo},
        {.method = "GET", .path = "/hello", .handler = hello},
        {.method = "GET", .path = "/big", .handler = big},
        {.method = "GET", .path = "/rest/*", .handler = rest},
        {.method = "POST", .path = "/small", .handler = echo, .body_max = 10},
        {.method = "POST", .path = "/hold", .handler = net_hold},
    };

    CHECK_OK(kiln_router_new(&f->router));
    for (size_t i = 0; i < KILN_ARRAY_LEN(routes); i++)
        CHECK_OK(kiln_router_add(f->router, &routes[i]));
}

void net_start(struct net_fixture *f, const struct kiln_server_opts *opts)
{
    struct kiln_err err = {0};

    if (!f->router)
        net_routes(f);
    CHECK_OK(kiln_server_new(opts, &f->server));
    CHECK_OK(kiln_server_listen(f->server,
                                &(struct kiln_listen_opts){.address = "127.0.0.1:0",
                                                           .router = f->router,
                                                           .keepalive = f->keepalive},
                                &f->port, &err));
    CHECK_OK(kiln_server_start(f->server, &err));
}

void net_stop(struct net_fixture *f)
{
    kiln_server_stop(f->server, 0);
    net_release();
    kiln_server_free(f->server);
    kiln_router_free(f->router);
}

int net_connect(uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    CHECK_OK(connect(fd, (struct sockaddr *)&to, sizeof(to)));
    return fd;
}

int net_listen(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)));
    CHECK_OK(bind(fd, (struct sockaddr *)&address, sizeof(address)));
    CHECK_OK(listen(fd, 8));
    CHECK_OK(getsockname(fd, (struct sockaddr *)&address, &size));
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* A server that has enough of us may hang up in the middle: that is for the reader to see. */
void net_send_str(int fd, struct kiln_str bytes)
{
    while (bytes.len) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        bytes.ptr += n;
        bytes.len -= (size_t)n;
    }
}

void net_send(int fd, const char *bytes)
{
    net_send_str(fd, kiln_str_of(bytes));
}

int net_connect_held(uint16_t port)
{
    int fd = net_connect(port);

    net_send(fd, "POST /hold HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc");
    net_wait_held(1);
    return fd;
}

void net_send_slowly(int fd, const char *bytes)
{
    for (; *bytes; bytes++)
        net_send_str(fd, (struct kiln_str){bytes, 1});
}

static char answer[ANSWER_MAX];

const char *net_read_all(int fd)
{
    size_t len = 0;
    ssize_t n;

    while ((n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0)
        len += (size_t)n;
    answer[len] = 0;
    return answer;
}

static size_t wanted(size_t len)
{
    const char *end = strstr(answer, "\r\n\r\n");
    const char *field = end ? strcasestr(answer, "content-length: ") : NULL;

    if (!end)
        return len + 1;
    if (!field || field > end)
        return (size_t)(end - answer) + 4;
    return (size_t)(end - answer) + 4 + strtoul(field + 16, NULL, 10);
}

const char *net_read_answer(int fd)
{
    size_t len = 0;

    answer[0] = 0;
    while (len < wanted(len)) {
        size_t room = wanted(len) - len;
        ssize_t n = recv(fd, answer + len, room, 0);

        if (n <= 0)
            break;
        len += (size_t)n;
        answer[len] = 0;
    }
    return answer;
}

bool net_readable(int fd, int wait_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, wait_ms) > 0;
}

const char *net_read_first(const int *fds, int n)
{
    struct pollfd p[8];

    for (int i = 0; i < n; i++)
        p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    CHECK(poll(p, (nfds_t)n, PATIENCE_S * 1000) > 0);
    for (int i = 0; i < n; i++)
        if (p[i].revents) {
            char peeked[64] = "";

            recv(fds[i], peeked, sizeof(peeked) - 1, MSG_PEEK);
            snprintf(answer, sizeof(answer), "%s", peeked);
            break;
        }
    return answer;
}

void net_wait_closed(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};

    CHECK(poll(&p, 1, PATIENCE_S * 1000) > 0);
}

bool net_is_closed(int fd)
{
    char c;

    return recv(fd, &c, 1, 0) <= 0;
}

const char *net_talk(uint16_t port, const char *bytes)
{
    int fd = net_connect(port);

    net_send(fd, bytes);
    net_read_all(fd);
    close(fd);
    return answer;
}

int net_status(const char *text)
{
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? (int)strtol(text + 9, NULL, 10) : 0;
}

const char *net_body(const char *text)
{
    const char *at = strstr(text, "\r\n\r\n");

    return at ? at + 4 : "(no answer)";
}

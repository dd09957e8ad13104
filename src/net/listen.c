/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses:  host:port   [ipv6]:port   :port (every address)   unix:/path
 *
 * One loop accepts for a listener and deals the connections out to all loops in turn.  Where the
 * process is out of descriptors it tries again a little later.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/server_int.h"

#define BACKLOG        1024
#define ACCEPTS_A_TURN 64
#define COMPLAIN_S     60
#define RETRY_MS       100

/* ---- addresses ---- */

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

static uint16_t port_of(int fd)
{
    struct sockaddr_storage name;
    socklen_t len = sizeof(name);

    if (getsockname(fd, (struct sockaddr *)&name, &len) < 0)
        return 0;
    if (name.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&name)->sin6_port);
    return ntohs(((struct sockaddr_in *)&name)->sin_port);
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

/* A name that is both is taken as IPv4: more clients that say "localhost" mean 127.0.0.1. */
static int look_up(const struct target *target, struct addrinfo **ret_found)
{
    struct addrinfo hints = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int r = getaddrinfo(target->host, target->port, &hints, ret_found);

    hints.ai_family = AF_UNSPEC;
    return r ? getaddrinfo(target->host, target->port, &hints, ret_found) : 0;
}

static int listen_tcp(const char *address, int *ret_fd, struct kiln_err *err)
{
    struct addrinfo *found = NULL;
    struct target target = {0};
    int r = parse_address(address, &target, err);

    if (r < 0)
        return r;
    if (target.any) {
        r = bind_any(&target, ret_fd);
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

static int listen_unix(const char *address, uint32_t mode, int *ret_fd, struct kiln_err *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *path = address + strlen("unix:");
    mode_t mask;
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
    mask = umask(0777); /* nobody may connect before the mode is right */
    r = bind(fd, (struct sockaddr *)&name, sizeof(name)) < 0 ? errno : 0;
    umask(mask);
    if (!r && (chmod(path, mode ? mode : 0660) < 0 || listen(fd, BACKLOG) < 0))
        r = errno;
    if (r) {
        close(fd);
        return say_why(address, r, err);
    }
    *ret_fd = fd;
    return 0;
}

/* ---- accepting ---- */

static void read_peer(int fd, const struct sockaddr_storage *from, struct kiln_peer *peer)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (from->ss_family == AF_UNIX) {
        snprintf(peer->address, sizeof(peer->address), "unix");
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0) {
            peer->local = true;
            peer->uid = cred.uid;
            peer->pid = cred.pid;
        }
        return;
    }
    len = from->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo((const struct sockaddr *)from, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    if (strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.'))
        memmove(host, host + 7, strlen(host + 7) + 1);
    snprintf(peer->address, sizeof(peer->address),
             strchr(host, ':') ? "[%.46s]:%.5s" : "%.46s:%.5s", host, port);
}

static void complain(struct kiln_listener *listener, const char *what)
{
    if (kiln_log_every(&listener->complained, COMPLAIN_S))
        kiln_log(listener->server->opts.log, KILN_LOG_WARN, what, "connections", "%u",
                 atomic_load(&listener->server->n_conns), NULL);
}

/* More connections than allowed: a short word where the protocol lets us say it. */
static void turn_away(struct kiln_listener *listener, int fd)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"
                               "content-length: 0\r\nconnection: close\r\n\r\n";

    if (!listener->tls && send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        shutdown(fd, SHUT_WR);
    close(fd);
    kiln_server_conn_gone(listener->server);
    kiln_server_refused(listener->server, "connections");
    complain(listener, "too many connections, turning some away");
}

static void deal(struct kiln_listener *listener, int fd, const struct kiln_peer *peer)
{
    struct kiln_server *server = listener->server;
    struct kiln_loop *loop = &server->loops[server->next_loop++ % server->opts.loops];
    struct kiln_arrival *arrival;

    if (loop == listener->loop) {
        kiln_conn_open(loop, listener, fd, peer);
        return;
    }
    arrival = kiln_malloc(sizeof(*arrival));
    if (arrival) {
        *arrival = (struct kiln_arrival){.listener = listener, .fd = fd, .peer = *peer};
        if (kiln_loop_post_arrival(loop, arrival))
            return;
    }
    kiln_free(arrival);
    close(fd);
    kiln_server_conn_gone(server);
}

static void pause_accepting(struct kiln_listener *listener)
{
    struct timeval tv = {.tv_usec = RETRY_MS * 1000};

    event_del(&listener->on_accept);
    event_add(&listener->on_retry, &tv);
    complain(listener, "no descriptor for another connection");
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_listener *listener = arg;

    (void)fd, (void)what;
    event_add(&listener->on_accept, NULL);
}

/* True: there may be another. */
static bool accept_one(struct kiln_listener *listener)
{
    struct kiln_server *server = listener->server;
    struct sockaddr_storage from = {.ss_family = AF_UNIX};
    struct kiln_peer peer = {0};
    socklen_t len = sizeof(from);
    int fd = accept4(listener->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(listener);
        return errno == ECONNABORTED || errno == EINTR;
    }
    kiln_metric_add(server->metrics.connections, 1);
    kiln_metric_add(server->metrics.connections_total, 1);
    if (atomic_fetch_add(&server->n_conns, 1) >= server->opts.connections_max &&
        !kiln_conn_evict(listener->loop)) {
        turn_away(listener, fd);
        return true;
    }
    read_peer(fd, &from, &peer);
    deal(listener, fd, &peer);
    return true;
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    struct kiln_listener *listener = arg;
    struct kiln_loop *loop = listener->loop;

    (void)fd, (void)what;
    kiln_loop_begin(loop);
    for (int i = 0; i < ACCEPTS_A_TURN && accept_one(listener); i++)
        ;
    kiln_loop_end(loop);
}

/* ---- listeners ---- */

void kiln_listener_open(struct kiln_listener *listener, struct kiln_loop *loop)
{
    listener->loop = loop;
    event_assign(&listener->on_accept, loop->base, listener->fd, EV_READ | EV_PERSIST, on_accept,
                 listener);
    evtimer_assign(&listener->on_retry, loop->base, on_retry, listener);
    event_add(&listener->on_accept, NULL);
    if (listener->tls)
        kiln_tls_watch(listener->tls, loop->base);
}

void kiln_listener_close(struct kiln_listener *listener)
{
    if (listener->loop) {
        event_del(&listener->on_accept);
        event_del(&listener->on_retry);
        if (listener->tls)
            kiln_tls_unwatch(listener->tls);
        listener->loop = NULL;
    }
    if (listener->fd >= 0)
        close(listener->fd);
    if (listener->fd >= 0 && listener->unix_path)
        unlink(listener->unix_path);
    listener->fd = -1;
}

void kiln_listener_free(struct kiln_listener *listener)
{
    kiln_listener_close(listener);
    kiln_tls_free(listener->tls);
    kiln_free(listener->unix_path);
    kiln_free(listener);
}

static int open_socket(struct kiln_listener *listener, const struct kiln_listen_opts *opts,
                       struct kiln_err *err)
{
    const char *path = opts->address + strlen("unix:");

    if (strncmp(opts->address, "unix:", 5) != 0)
        return listen_tcp(opts->address, &listener->fd, err);
    listener->unix_path = kiln_malloc(strlen(path) + 1);
    if (!listener->unix_path)
        return kiln_err_set(err, -ENOMEM, opts->address, "%s", kiln_err_text(-ENOMEM));
    memcpy(listener->unix_path, path, strlen(path) + 1);
    return listen_unix(opts->address, opts->unix_mode, &listener->fd, err);
}

int kiln_server_listen(struct kiln_server *server, const struct kiln_listen_opts *opts,
                       uint16_t *ret_port, struct kiln_err *err)
{
    struct kiln_listener *listener = kiln_calloc(1, sizeof(*listener));
    int r = 0;

    if (!listener)
        return kiln_err_set(err, -ENOMEM, opts->address, "%s", kiln_err_text(-ENOMEM));
    listener->fd = -1;
    listener->server = server;
    listener->router = opts->router;
    if (opts->tls.cert_file)
        r = kiln_tls_new(&opts->tls, server->opts.log, &listener->tls, err);
    if (r == 0)
        r = open_socket(listener, opts, err);
    if (r < 0) {
        kiln_listener_free(listener);
        return r;
    }
    listener->next = server->listeners;
    server->listeners = listener;
    if (ret_port)
        *ret_port = listener->unix_path ? 0 : port_of(listener->fd);
    return 0;
}

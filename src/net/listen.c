/* SPDX-License-Identifier: Apache-2.0 */
/*
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

#include "base/keeper.h"
#include "base/mem.h"
#include "base/socket.h"
#include "net/server_int.h"

#define ACCEPTS_A_TURN 64
#define COMPLAIN_S     60
#define RETRY_MS       100

/* ---- accepting ---- */

static void read_peer(const struct kiln_listener *listener, int fd,
                      const struct sockaddr_storage *from, struct kiln_peer *peer)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    char host[NI_MAXHOST], port[NI_MAXSERV];

    if (from->ss_family == AF_UNIX) {
        snprintf(peer->address, sizeof(peer->address), "unix");
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0) {
            peer->local = !listener->for_every_user;
            peer->uid = cred.uid;
            peer->pid = peer->local ? cred.pid : 0;
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
    read_peer(listener, fd, &from, &peer);
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
    if (listener->fd >= 0 && listener->unix_path && unlink(listener->unix_path) < 0 &&
        errno == EACCES)
        kiln_keeper_remove(listener->unix_path);
    listener->fd = -1;
}

void kiln_listener_free(struct kiln_listener *listener)
{
    kiln_listener_close(listener);
    kiln_tls_free(listener->tls);
    kiln_free(listener->unix_path);
    kiln_free(listener);
}

/* Whoever opens the file of a socket removes it. */
static int own_path(struct kiln_listener *listener, const char *address, struct kiln_err *err)
{
    const char *path = address + strlen("unix:");

    if (strncmp(address, "unix:", 5) != 0)
        return 0;
    listener->unix_path = kiln_malloc(strlen(path) + 1);
    if (!listener->unix_path)
        return kiln_err_set(err, -ENOMEM, address, "%s", kiln_err_text(-ENOMEM));
    memcpy(listener->unix_path, path, strlen(path) + 1);
    return 0;
}

static int open_socket(struct kiln_listener *listener, const struct kiln_listen_opts *opts,
                       struct kiln_err *err)
{
    struct kiln_socket_opts how = {.address = opts->address,
                                   .unix_mode = opts->for_every_user ? 0666 : opts->unix_mode};
    int r;

    if (opts->sockets)
        return kiln_sockets_listen(opts->sockets, opts->name, &how, &listener->fd, err);
    r = own_path(listener, opts->address, err);
    return r < 0 ? r : kiln_socket_listen(&how, &listener->fd, err);
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
    listener->keepalive = opts->keepalive;
    listener->for_every_user = opts->for_every_user;
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
        *ret_port = kiln_socket_port(listener->fd);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop: [0] of what is polled is the listener, then connections in the order of their places.
 * Where all of those are taken that are served, others have places in which they are told so, and
 * heard out: whoever is closed upon with a request on its way gets a reset, and no answer.
 *
 * Descriptors are the thread's own (inproc/thread/helper.h): it opens and closes them all itself,
 * and nobody else could wake it up by one.  So it looks now and then whether it is to stop.
 */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/socket.h"
#include "inproc/pprof/server_int.h"
#include "inproc/thread/helper.h"

#define RETRY_NS       (100 * KILN_NS_PER_MS)
#define PATIENCE_NS    KILN_NS_PER_S /* with a request that has not come, where others wait */
#define ACCEPTS_A_TURN 16
#define LOOK_MS        250 /* whether it is to stop */

struct polled {
    struct pollfd fds[1 + KILN_IN_PLACES];
    uint32_t slots[1 + KILN_IN_PLACES];
    nfds_t n;
};

/* ---- accepting ---- */

static void drop_conn(struct kiln_in_server *server, uint32_t slot)
{
    struct kiln_in_conn *conn = server->conns[slot];

    server->conns[slot] = NULL;
    kiln_in_conn_free(server, conn);
}

/* Whether something has come that was not read yet. */
static bool has_bytes(const struct kiln_in_conn *conn)
{
    char byte;

    return recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* How much it is in the way: 0 where it has to be let be. */
static uint64_t idleness(const struct kiln_in_conn *conn, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - conn->since_ns;

    if (conn->state == KILN_IN_CONN_READ && has_bytes(conn))
        return 0;
    if (conn->state == KILN_IN_CONN_DRAIN || (conn->state == KILN_IN_CONN_READ && conn->idle))
        return age_ns + UINT64_MAX / 2;
    return conn->state == KILN_IN_CONN_READ && age_ns > PATIENCE_NS ? age_ns : 0;
}

/* A free place, made where there is none but somebody idles; KILN_IN_CONNS: none. */
static uint32_t find_slot(struct kiln_in_server *server)
{
    uint64_t now_ns = kiln_clock_mono_ns(), most = 0;
    uint32_t best = KILN_IN_CONNS;

    for (uint32_t i = 0; i < KILN_IN_CONNS; i++) {
        uint64_t idle;

        if (!server->conns[i])
            return i;
        idle = idleness(server->conns[i], now_ns);
        if (idle > most) {
            most = idle;
            best = i;
        }
    }
    if (best < KILN_IN_CONNS)
        drop_conn(server, best);
    return best;
}

/* A place to be turned away in: a free one, or that of who is there for longest. */
static uint32_t find_door(struct kiln_in_server *server)
{
    uint32_t best = KILN_IN_CONNS;

    for (uint32_t i = KILN_IN_CONNS; i < KILN_IN_PLACES; i++) {
        if (!server->conns[i])
            return i;
        if (server->conns[i]->since_ns < server->conns[best]->since_ns)
            best = i;
    }
    drop_conn(server, best);
    return best;
}

/* True: there may be another. */
static bool accept_one(struct kiln_in_server *server)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    uint32_t slot;
    bool is_full;

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            server->accept_after_ns = kiln_clock_mono_ns() + RETRY_NS;
        return errno == ECONNABORTED || errno == EINTR;
    }
    slot = find_slot(server);
    is_full = slot == KILN_IN_CONNS;
    if (is_full)
        slot = find_door(server);
    server->conns[slot] = kiln_in_conn_open(fd);
    if (is_full && server->conns[slot])
        kiln_in_conn_refuse(server->conns[slot], 503, "too many clients are here");
    return server->conns[slot] != NULL;
}

/* ---- the loop ---- */

static void add_polled(struct polled *polled, uint32_t slot, int fd, short events)
{
    polled->slots[polled->n] = slot;
    polled->fds[polled->n++] = (struct pollfd){.fd = fd, .events = events};
}

/* Fills what to poll; the time until the nearest deadline. */
static int prepare(struct kiln_in_server *server, struct polled *polled)
{
    uint64_t now_ns = kiln_clock_mono_ns(), next_ns = UINT64_MAX, ms;
    bool pauses = server->accept_after_ns > now_ns;

    polled->n = 0;
    add_polled(polled, 0, pauses ? -1 : server->listener, POLLIN);
    if (pauses)
        next_ns = server->accept_after_ns;
    for (uint32_t i = 0; i < KILN_IN_PLACES; i++) {
        const struct kiln_in_conn *conn = server->conns[i];

        if (!conn)
            continue;
        add_polled(polled, i, conn->fd, kiln_in_conn_wants(conn));
        if (conn->deadline_ns < next_ns)
            next_ns = conn->deadline_ns;
    }
    ms = next_ns > now_ns ? (next_ns - now_ns) / KILN_NS_PER_MS + 1 : 0;
    return ms > LOOK_MS ? LOOK_MS : (int)ms;
}

static void run_conn(struct kiln_in_server *server, uint32_t slot, short events)
{
    struct kiln_in_conn *conn = server->conns[slot];

    bool late = conn->deadline_ns <= kiln_clock_mono_ns();

    if (events || late)
        kiln_in_conn_run(server, conn, late ? 0 : events);
    if (conn->state == KILN_IN_CONN_OVER)
        drop_conn(server, slot);
}

static void serve(struct kiln_in_server *server)
{
    struct polled polled;

    while (!atomic_load(&server->stop)) {
        int timeout = prepare(server, &polled);

        if (poll(polled.fds, polled.n, timeout) < 0 && errno != EINTR && errno != ENOMEM)
            break;
        for (nfds_t i = 1; i < polled.n; i++)
            run_conn(server, polled.slots[i], polled.fds[i].revents);
        if (polled.fds[0].revents)
            for (int i = 0; i < ACCEPTS_A_TURN && accept_one(server); i++)
                ;
    }
    for (uint32_t i = 0; i < KILN_IN_PLACES; i++)
        if (server->conns[i])
            drop_conn(server, i);
}

/* ---- start and stop ---- */

void kiln_in_server_unlink(struct kiln_in_server *server)
{
    if (server->unix_path)
        unlink(server->unix_path);
    kiln_free(server->unix_path);
    server->unix_path = NULL;
}

static int copy_path(struct kiln_in_server *server, const char *path)
{
    server->unix_path = kiln_malloc(strlen(path) + 1);
    if (!server->unix_path)
        return -ENOMEM;
    memcpy(server->unix_path, path, strlen(path) + 1);
    return 0;
}

/* The host as it was written, or the loopback, with the port that it became. */
static void note_address(struct kiln_in_server *server, const char *address, int listener)
{
    const char *colon = strrchr(address, ':');

    if (strncmp(address, "unix:", 5) == 0)
        snprintf(server->address, sizeof(server->address), "%s", address);
    else
        snprintf(server->address, sizeof(server->address), "%.*s:%u",
                 colon == address ? 9 : (int)(colon - address),
                 colon == address ? "127.0.0.1" : address, (unsigned)kiln_socket_port(listener));
}

/* What the thread begins with, and who waits to hear how that went. */
struct opening {
    struct kiln_in_server *server;
    const char *address;
    struct kiln_err *err;
    int result;
    sem_t done;
};

static int open_listener(struct opening *opening)
{
    struct kiln_socket_opts how = {
        .address = opening->address, .loopback = true, .unix_mode = 0600};
    struct kiln_in_server *server = opening->server;
    int r = kiln_socket_listen(&how, &server->listener, opening->err);

    if (r < 0)
        return r;
    note_address(server, opening->address, server->listener);
    if (strncmp(opening->address, "unix:", 5) == 0)
        r = copy_path(server, opening->address + 5);
    return r < 0 ? kiln_err_set(opening->err, r, opening->address, "%s", kiln_err_text(r)) : 0;
}

static void *run(void *arg)
{
    struct opening *opening = arg;
    struct kiln_in_server *server = opening->server;
    int r = open_listener(opening);

    opening->result = r;
    sem_post(&opening->done);
    if (r == 0)
        serve(server);
    if (server->listener >= 0)
        close(server->listener);
    return NULL;
}

static int open_server(struct opening *opening)
{
    struct kiln_in_server *server = opening->server;
    int r =
        kiln_in_helper_start("kiln-pprof", KILN_IN_HELPER_OWN_FILES, run, opening, &server->thread);

    if (r < 0)
        return kiln_err_set(opening->err, r, opening->address, "%s", kiln_err_text(r));
    while (sem_wait(&opening->done) < 0)
        ;
    if (opening->result < 0)
        pthread_join(server->thread, NULL);
    return opening->result;
}

int kiln_in_server_start(const struct kiln_in_server_opts *opts, struct kiln_in_server **ret_server,
                         struct kiln_err *err)
{
    struct opening opening = {
        .server = kiln_calloc(1, sizeof(**ret_server)), .address = opts->address, .err = err};
    int r;

    if (!opening.server)
        return kiln_err_set(err, -ENOMEM, opts->address, "%s", kiln_err_text(-ENOMEM));
    opening.server->pages = opts->pages;
    opening.server->listener = -1;
    sem_init(&opening.done, 0, 0);
    r = open_server(&opening);
    sem_destroy(&opening.done);
    if (r < 0) {
        kiln_free(opening.server);
        return r;
    }
    *ret_server = opening.server;
    return 0;
}

void kiln_in_server_stop(struct kiln_in_server *server)
{
    atomic_store(&server->stop, true);
    pthread_join(server->thread, NULL);
    kiln_in_server_unlink(server);
    kiln_free(server);
}

const char *kiln_in_server_address(const struct kiln_in_server *server)
{
    return server->address;
}

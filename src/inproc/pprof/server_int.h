/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_int - a connection of the server (conn.c), and what the loop (server.c) knows of it.
 */
#ifndef KILN_INPROC_PPROF_SERVER_INT_H
#define KILN_INPROC_PPROF_SERVER_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "inproc/pprof/server.h"

enum kiln_in_conn_state {
    KILN_IN_CONN_READ,
    KILN_IN_CONN_WAIT,  /* for the end of a window */
    KILN_IN_CONN_WRITE, /* an answer */
    KILN_IN_CONN_DRAIN, /* all is said: until the client has read it and closes */
    KILN_IN_CONN_OVER
};

struct kiln_in_conn {
    int fd;
    enum kiln_in_conn_state state;
    bool idle;         /* between requests; not before the first */
    bool has_body;     /* counted in n_bodies */
    bool close_after;  /* the answer */
    uint64_t since_ns; /* when the state began */
    uint64_t deadline_ns;
    struct kiln_in_reader reader;
    struct kiln_in_job job;
    struct kiln_buf head;       /* of the answer */
    struct kiln_in_reply reply; /* its body */
    size_t written;             /* of both */
    bool no_body;               /* HEAD: of the reply only its length is sent */
};

struct kiln_in_server {
    struct kiln_in_pages pages;
    char address[256];
    char *unix_path; /* NULL: none */
    int listener;
    _Atomic bool stop;
    pthread_t thread;
    uint64_t accept_after_ns; /* no descriptor was left: not before */
    uint32_t n_bodies;
    struct kiln_in_conn *conns[KILN_IN_PLACES]; /* behind KILN_IN_CONNS: who is turned away */
};

/* Takes the descriptor, also on failure (NULL). */
struct kiln_in_conn *kiln_in_conn_open(int fd);
void kiln_in_conn_free(struct kiln_in_server *server, struct kiln_in_conn *conn);

/* Events of poll() that it waits for; and: these came, or the deadline did (`events` 0). */
short kiln_in_conn_wants(const struct kiln_in_conn *conn);
void kiln_in_conn_run(struct kiln_in_server *server, struct kiln_in_conn *conn, short events);

/* Refuses it with a status and a sentence, and ends it. */
void kiln_in_conn_refuse(struct kiln_in_conn *conn, int status, const char *why);

#endif /* KILN_INPROC_PPROF_SERVER_INT_H */

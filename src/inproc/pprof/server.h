/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server - HTTP/1.1 on one thread: connections, deadlines, and windows that end.
 *
 *   accept ──▶ READ ──▶ (WAIT until the window ends) ──▶ WRITE ──▶ READ again, or CLOSE
 *
 * Nothing here waits for anybody: one poll() has all connections, the nearest deadline is its
 * time-out.  Bounds: KILN_IN_CONNS connections, of which one that idles makes room for another,
 * as does one whose request is not there within 1 s; it has to be there within 10 s in any case; an
 * answer has to be taken at 16 KiB/s; bodies are read from KILN_IN_BODIES connections at once.
 *
 * Threads: start, stop and unlink by one; `forked` in a child, where the thread is not.
 */
#ifndef KILN_INPROC_PPROF_SERVER_H
#define KILN_INPROC_PPROF_SERVER_H

#include "base/err.h"
#include "inproc/pprof/pages.h"

enum { KILN_IN_CONNS = 64, KILN_IN_PLACES = 2 * KILN_IN_CONNS, KILN_IN_BODIES = 4 };

struct kiln_in_server;

struct kiln_in_server_opts {
    const char *address; /* base/socket.h; ":port" is the loopback's */
    struct kiln_in_pages pages;
};

KILN_CHECK int kiln_in_server_start(const struct kiln_in_server_opts *opts,
                                    struct kiln_in_server **ret_server, struct kiln_err *err);
/* Connections are closed, whatever they wait for. */
void kiln_in_server_stop(struct kiln_in_server *server);

/* "127.0.0.1:6060" or "unix:/path": where it listens, with the real port. */
const char *kiln_in_server_address(const struct kiln_in_server *server);

/* Removes the file of a Unix socket: nobody else can connect.  Once. */
void kiln_in_server_unlink(struct kiln_in_server *server);

#endif /* KILN_INPROC_PPROF_SERVER_H */

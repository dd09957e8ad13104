/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockets - listening sockets that outlive the servers on them.
 *
 * A program that is told to read its configuration again ends one server and starts another at the
 * same address.  The socket stays here meanwhile: who connects in between waits in its queue, and
 * nobody else can take the port.
 *
 *   kiln_sockets_turn(sockets);     the next servers listen, each under a name of its own
 *   kiln_sockets_trim(sockets);     what none of them took is closed
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_NET_SOCKETS_H
#define KILN_NET_SOCKETS_H

#include "base/socket.h"

struct kiln_sockets;

KILN_CHECK int kiln_sockets_new(struct kiln_sockets **ret_sockets);
void kiln_sockets_free(struct kiln_sockets *sockets);

/*
 * A descriptor of the socket at this address, which is the caller's to close; opened as
 * kiln_socket_listen() does, unless it is here.  Port 0 stays the port that it was for a `name`.
 * One that was not taken since the last turn makes room for another address with its port.
 */
KILN_CHECK int kiln_sockets_listen(struct kiln_sockets *sockets, const char *name,
                                   const struct kiln_socket_opts *opts, int *ret_fd,
                                   struct kiln_err *err);

void kiln_sockets_turn(struct kiln_sockets *sockets);
void kiln_sockets_trim(struct kiln_sockets *sockets);

/* Tells of each that was taken since the last turn: its name, the address, and its port (0: a Unix
 * socket). */
void kiln_sockets_each(struct kiln_sockets *sockets,
                       void (*each)(void *context, const char *name, const char *address,
                                    uint16_t port),
                       void *context);

#endif /* KILN_NET_SOCKETS_H */

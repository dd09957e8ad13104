/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket - opens sockets to listen on, by the addresses that people write:
 *
 *   host:port   [ipv6]:port   :port   unix:/path
 *
 * They do not block and are closed by exec.
 *
 * Threads: no state; nothing of the process is changed, not even for a moment.
 */
#ifndef KILN_BASE_SOCKET_H
#define KILN_BASE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct kiln_socket_opts {
    const char *address;
    bool loopback;      /* ":port" is 127.0.0.1, not every address */
    uint32_t unix_mode; /* of the file of a Unix socket; 0: 0660 */
};

/*
 * A socket file that nobody listens on any more is replaced.  Returns 0 or a negative errno, with a
 * sentence: -EADDRINUSE where another has the port.
 */
KILN_CHECK int kiln_socket_listen(const struct kiln_socket_opts *opts, int *ret_fd,
                                  struct kiln_err *err);

/* The port that a socket of the internet listens on; 0 for others. */
uint16_t kiln_socket_port(int fd);

#endif /* KILN_BASE_SOCKET_H */

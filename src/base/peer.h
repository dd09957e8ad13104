/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks which user listens on a Unix socket that a client has connected to.
 *
 * A client that sends what only root may see must not send it to any user of the machine. The
 * listener is trusted if it runs as root, as the caller, or as the owner of the socket file in a
 * directory that nobody but root and that owner can change.
 *
 * Threads: no state.
 */
#ifndef KILN_BASE_PEER_H
#define KILN_BASE_PEER_H

#include "base/err.h"

/* 0, or a negative errno with a sentence: -EACCES for a listener that is not trusted. `fd` is
 * connected to `path`. */
KILN_CHECK int kiln_peer_check(int fd, const char *path, struct kiln_err *err);

#endif /* KILN_BASE_PEER_H */

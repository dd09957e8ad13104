/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse_server - a file system that a program of ours serves, over /dev/fuse and no library:
 * whatever name is looked up in its root is a file, all of them with the same content.  It can stop
 * answering, as servers do that hang.
 */
#ifndef KILN_TESTS_FUSE_SERVER_H
#define KILN_TESTS_FUSE_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"

struct fuse_server {
    pid_t pid;
    const char *point;
    _Atomic bool *hangs; /* shared with it */
};

/* Mounts it on a folder.  Negative errno: not here. */
int fuse_server_start(struct fuse_server *server, const char *point, struct kiln_str content);
/* From now on it takes requests and answers none. */
void fuse_server_hang(struct fuse_server *server);
/* Whoever waits for it gets an error. */
void fuse_server_stop(struct fuse_server *server);

#endif /* KILN_TESTS_FUSE_SERVER_H */

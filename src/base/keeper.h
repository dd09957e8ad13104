/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - a child process that keeps root's access to a few named files after this process became
 * an unprivileged user: certificates, tokens and rules that only root can read, the ready file, and
 * the file of the Unix socket.
 *
 * The child opens, writes and removes exactly the paths that it was started with; it opens them
 * anew for each request, so that a replaced file is seen.  Links that the unprivileged user made
 * are not followed (base/path.h), so that they lead it to no other file.  It has no other
 * descriptor than its socket, two capabilities and a list of system calls, and ends when this
 * process ends.
 *
 * Threads: start before there are others, stop after them; the rest from any.
 */
#ifndef KILN_BASE_KEEPER_H
#define KILN_BASE_KEEPER_H

#include <sys/types.h>

#include "base/attr.h"
#include "base/log.h"
#include "base/str.h"

enum { KILN_KEEPER_FILES_MAX = 256, KILN_KEEPER_SOCKETS_MAX = 2, KILN_KEEPER_TEXT_MAX = 4096 };

/* Borrowed until the child runs. */
struct kiln_keeper_opts {
    const char *const *read; /* files and directories that may be opened to be read */
    uint32_t n_read;
    const char *write;                           /* the file that may be replaced; NULL: none */
    const char *remove[KILN_KEEPER_SOCKETS_MAX]; /* sockets that may be removed; NULL: none */
    uid_t user;                                  /* that this process is going to be */
    struct kiln_log *log;                        /* says that the child died; NULL: nothing does */
};

/* Starts the child, which needs what this process has now.  -E2BIG: too many files. */
KILN_CHECK int kiln_keeper_start(const struct kiln_keeper_opts *opts);
/* Ends it, where there is one. */
void kiln_keeper_stop(void);
/* After a fork: the keeper is the parent's, and its descriptor's number may soon be another's. */
void kiln_keeper_forget(void);

/* Each is -EACCES where there is no child or the path is not one of its own. */
KILN_CHECK int kiln_keeper_open(const char *path); /* a descriptor to read from */
KILN_CHECK int kiln_keeper_write(const char *path, struct kiln_str text);
int kiln_keeper_remove(const char *path);

#endif /* KILN_BASE_KEEPER_H */

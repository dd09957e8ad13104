/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_user - the unprivileged user that a server which root started becomes.
 *
 * The user is the one of --user; else the owner of the data directory, if that is not root; else
 * `kiln`, if there is such a user; else the uid 61040, which neither systemd nor Debian assigns.
 * `--user root` changes nothing.
 *
 * Threads: before there are others.
 */
#ifndef KILN_CLI_SERVER_USER_H
#define KILN_CLI_SERVER_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/log.h"

enum { KILN_SERVER_UID = 61040 };

struct kiln_server_user {
    bool changes; /* false: the process keeps its user */
    uid_t uid;
    gid_t gid;
    char name[64]; /* "kiln"; of a uid without a name, the number */
};

/* `said`: what --user says, NULL: nothing; the directory exists.  -EINVAL: no such user. */
KILN_CHECK int kiln_server_user_find(const char *said, const char *data_dir,
                                     struct kiln_server_user *ret_user, struct kiln_err *err);

/* Whether this process has the capabilities to become the user and to give it files, and the user
 * namespace has its uid. */
bool kiln_server_user_possible(const struct kiln_server_user *user);

/* Gives the user what a store has in its directory.  -EPERM: the directory is no store's, or is
 * shared, and holds other things. */
KILN_CHECK int kiln_server_user_own(const struct kiln_server_user *user, const char *data_dir,
                                    struct kiln_log *log, struct kiln_err *err);

/* Becomes the user, in all threads, for good and without capabilities. */
KILN_CHECK int kiln_server_user_become(const struct kiln_server_user *user);

#endif /* KILN_CLI_SERVER_USER_H */

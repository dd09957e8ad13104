/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel reports the user that called listen() (SO_PEERCRED). Root and the caller's own user
 * could read everything the caller sends anyway. Any other user is compared with the owner of the
 * socket file, which proves something only if no third user can create or replace that file: each
 * directory of its real path belongs to root or to that user and is writable by its owner alone.
 */
#include "base/peer.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_kept_by(const char *folder, uid_t uid, struct stat *ret_st)
{
    return lstat(folder, ret_st) == 0 && S_ISDIR(ret_st->st_mode) &&
           (ret_st->st_uid == 0 || ret_st->st_uid == uid) && !(ret_st->st_mode & 022);
}

/* Cuts `path` back to "/", directory by directory. */
static bool are_folders_kept_by(char *path, uid_t uid)
{
    struct stat st;
    char *slash;

    while ((slash = strrchr(path, '/')) != NULL) {
        slash[slash == path] = '\0';
        if (!is_kept_by(path, uid, &st))
            return false;
        if (slash == path)
            return true;
    }
    return false;
}

static bool is_owner(const char *path, uid_t uid)
{
    char real[PATH_MAX];
    struct stat st;

    return realpath(path, real) && lstat(real, &st) == 0 && S_ISSOCK(st.st_mode) &&
           st.st_uid == uid && are_folders_kept_by(real, uid);
}

int kiln_peer_check(int fd, const char *path, struct kiln_err *err)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return kiln_err_set(err, -errno, path, "the user who listens is not known: %s",
                            kiln_err_text(-errno));
    if (peer.uid == 0 || peer.uid == geteuid() || is_owner(path, peer.uid))
        return 0;
    return kiln_err_set(err, -EACCES, path,
                        "user %u listens here, who is neither root nor the owner of the socket in "
                        "a directory that only root and that user can change",
                        (unsigned)peer.uid);
}
